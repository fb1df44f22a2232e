// Kernels over the observed entries of a matrix.
//
// Rows (and, transposed, columns) are cut into segments of bounded length, so that a popular column
// is not one thread's work. A warp takes a segment and writes its sum; the sums of a row's segments
// are then added up in order. So products of the sorted entries do not depend on timing. Those of
// the tail, a few unsorted entries, are added atomically.
//
// REAL is float or double. Sums over a segment are in it, sums of segments in double. All whole
// numbers that are passed are long long, which is what CuPy makes of Python's.

#define LANES 8
typedef REAL real;
typedef unsigned int index_t;

enum { QUADRATIC, BERNOULLI, POISSON, EXPONENTIAL, LOGISTIC, SIGMOID, CORRENTROPY };

__device__ __forceinline__ double expit(double z) {
    double e = exp(-fabs(z));
    return (z >= 0.0 ? 1.0 : e) / (1.0 + e);
}

// The derivative of one entry's total loss at z. The parameter p of the square loss is what its
// weight c is less by: the weight of entries that were not observed.
__device__ __forceinline__ double general_slope(
    long long kind, double p, double z, double c, double s) {
    if (kind == QUADRATIC) return (c - p) * z - s;
    if (kind == BERNOULLI) return c * expit(z) - s;
    if (kind == POISSON) return c * exp(z) - s;
    if (kind == EXPONENTIAL)
        return (z <= -p ? -c / z : c * (1.0 / p + (z + p) / (p * p))) - s;
    if (kind == LOGISTIC) return -c * s * expit(-s * z);
    if (kind == SIGMOID) {
        double e = exp(-fabs(p * z));
        return -c * p * s * (e / ((1.0 + e) * (1.0 + e)));
    }
    double e = z - s;
    return c * e / p * exp(-0.5 * e * e / p);
}

__device__ __forceinline__ real slope(long long kind, double p, real z, real c, real s) {
    return kind == QUADRATIC ? (c - (real)p) * z - s : (real)general_slope(kind, p, z, c, s);
}

// One entry's total loss at z; for the square loss, without the part that does not depend on z.
__device__ __forceinline__ double total_loss(
    long long kind, double p, double z, double c, double s) {
    if (kind == QUADRATIC) return (0.5 * (c - p) * z - s) * z;
    if (kind == BERNOULLI) return c * (fmax(z, 0.0) + log1p(exp(-fabs(z)))) - s * z;
    if (kind == POISSON) return c * exp(z) - s * z;
    if (kind == EXPONENTIAL) {
        double d = (z + p) / p;
        return c * (z <= -p ? -log(-z) : -log(p) + d + 0.5 * d * d) - s * z;
    }
    if (kind == LOGISTIC) return c * (fmax(-s * z, 0.0) + log1p(exp(-fabs(z))));
    if (kind == SIGMOID) return c * expit(-p * s * z);
    double e = z - s;
    return c * -expm1(-0.5 * e * e / p);
}

template <typename S>
__device__ __forceinline__ S warp_sum(S x) {
    for (int d = 16; d > 0; d >>= 1) x += __shfl_down_sync(0xffffffffu, x, d);
    return x;
}

// sums[segment] = sum over its entries of g_k x[col_k]
extern "C" __global__ void segment_dots(
    long long n, const long long* first, const long long* last, const index_t* col,
    const real* g, const real* x, real* sums) {
    long long segment = (blockIdx.x * (long long)blockDim.x + threadIdx.x) >> 5;
    if (segment >= n) return;
    int lane = threadIdx.x & 31;
    real total = 0;
    for (long long k = first[segment] + lane; k < last[segment]; k += 32)
        total += g[k] * x[col[k]];
    total = warp_sum(total);
    if (lane == 0) sums[segment] = total;
}

// y[i] = sum of the sums of row i's segments
extern "C" __global__ void add_segments(
    long long n, const int* indptr, const real* sums, real* y) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    double total = 0.0;
    for (int q = indptr[i]; q < indptr[i + 1]; ++q) total += sums[q];
    y[i] = (real)total;
}

// The same with blocks of LANES vectors. A thread takes an entry.
__device__ __forceinline__ void add_block(real* total, real g, const real* x) {
    #pragma unroll
    for (int q = 0; q < LANES; ++q) total[q] += g * x[q];
}

__device__ __forceinline__ void write_block(real* total, real* out, int lane) {
    #pragma unroll
    for (int q = 0; q < LANES; ++q) total[q] = warp_sum(total[q]);
    if (lane == 0) {
        #pragma unroll
        for (int q = 0; q < LANES; ++q) out[q] = total[q];
    }
}

extern "C" __global__ void segment_block(
    long long n, const long long* first, const long long* last, const index_t* col,
    const real* g, const real* x, real* sums) {
    long long segment = (blockIdx.x * (long long)blockDim.x + threadIdx.x) >> 5;
    if (segment >= n) return;
    int lane = threadIdx.x & 31;
    real total[LANES] = {0};
    for (long long k = first[segment] + lane; k < last[segment]; k += 32) {
        index_t j = col[k];
        add_block(total, g[k], x + (long long)j * LANES);
    }
    write_block(total, sums + segment * LANES, lane);
}

// The same with slopes from[position[k]], which are written to g.
extern "C" __global__ void gathered_block(
    long long n, const long long* first, const long long* last, const index_t* col,
    const index_t* position, const real* from, real* g, const real* x, real* sums) {
    long long segment = (blockIdx.x * (long long)blockDim.x + threadIdx.x) >> 5;
    if (segment >= n) return;
    int lane = threadIdx.x & 31;
    real total[LANES] = {0};
    for (long long k = first[segment] + lane; k < last[segment]; k += 32) {
        real gk = from[position[k]];
        g[k] = gk;
        add_block(total, gk, x + (long long)col[k] * LANES);
    }
    write_block(total, sums + segment * LANES, lane);
}

extern "C" __global__ void add_segment_blocks(
    long long n, const int* indptr, const real* sums, real* y) {
    long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    long long i = at / LANES, q = at % LANES;
    if (i >= n) return;
    double total = 0.0;
    for (int k = indptr[i]; k < indptr[i + 1]; ++k) total += sums[(long long)k * LANES + q];
    y[(long long)i * LANES + q] = (real)total;
}

// Move every prediction, renew the slopes, and multiply a block: one read of everything.
extern "C" __global__ void move_and_multiply(
    long long n, const long long* first, const long long* last, const index_t* row,
    const index_t* col, real* z, const real* c, const real* s, real* g, real keep, const real* u,
    const real* right,
    const real* row_offset, const real* col_offset, long long kind, double p,
    const real* x, real* sums, double* z_dot_g) {
    long long segment = (blockIdx.x * (long long)blockDim.x + threadIdx.x) >> 5;
    if (segment >= n) return;
    int lane = threadIdx.x & 31;
    index_t i = row[segment];
    real u_i = u ? u[i] : 0, offset = row_offset[i];
    real total[LANES] = {0};
    double zg = 0.0;
    for (long long k = first[segment] + lane; k < last[segment]; k += 32) {
        index_t j = col[k];
        real zk = z[k];
        if (u) { zk = keep * zk + u_i * right[j]; z[k] = zk; }
        real gk = slope(kind, p, zk + (offset + col_offset[j]), c[k], s[k]);
        g[k] = gk;
        zg += (double)(zk * gk);
        if (x) add_block(total, gk, x + (long long)j * LANES);
    }
    zg = warp_sum(zg);
    if (lane == 0) z_dot_g[segment] = zg;
    if (x) write_block(total, sums + segment * LANES, lane);
}

// z = keep z + left_i . right_j
extern "C" __global__ void factor_segments(
    long long n, const long long* first, const long long* last, const index_t* row,
    const index_t* col, real* z, real keep, const real* left, const real* right, long long rank) {
    long long segment = (blockIdx.x * (long long)blockDim.x + threadIdx.x) >> 5;
    if (segment >= n) return;
    int lane = threadIdx.x & 31;
    const real* a = left + (long long)row[segment] * rank;
    for (long long k = first[segment] + lane; k < last[segment]; k += 32) {
        const real* b = right + (long long)col[k] * rank;
        real total = 0;
        for (int q = 0; q < rank; ++q) total += a[q] * b[q];
        z[k] = keep * z[k] + total;
    }
}

// The sums of a column of numbers over each segment, in double precision.
extern "C" __global__ void segment_sums(
    long long n, const long long* first, const long long* last, const double* x, double* sums) {
    long long segment = (blockIdx.x * (long long)blockDim.x + threadIdx.x) >> 5;
    if (segment >= n) return;
    int lane = threadIdx.x & 31;
    double total = 0.0;
    for (long long k = first[segment] + lane; k < last[segment]; k += 32) total += x[k];
    total = warp_sum(total);
    if (lane == 0) sums[segment] = total;
}

extern "C" __global__ void add_double_segments(
    long long n, const int* indptr, const double* sums, double* y) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    double total = 0.0;
    for (int q = indptr[i]; q < indptr[i + 1]; ++q) total += sums[q];
    y[i] = total;
}

// The tail ----------------------------------------------------------------------------------------

extern "C" __global__ void tail_factor(
    long long n, const index_t* row, const index_t* col, real* z, real keep, const real* left,
    const real* right, long long rank) {
    long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (k >= n) return;
    const real* a = left + (long long)row[k] * rank;
    const real* b = right + (long long)col[k] * rank;
    real total = 0;
    for (int q = 0; q < rank; ++q) total += a[q] * b[q];
    z[k] = keep * z[k] + total;
}

// Move the first ``moved`` predictions, and renew the slopes of all. An entry that is there several
// times weighs less once: where ``first`` is 1 (a null pointer: everywhere).
extern "C" __global__ void tail_slopes(
    long long n, long long moved, const index_t* row, const index_t* col, real* z, const real* c,
    const real* s, real* g, const real* first, real keep, const real* u, const real* right, const real* row_offset,
    const real* col_offset, long long kind, double p, double* z_dot_g) {
    long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    double zg = 0.0;
    if (k < n) {
        index_t i = row[k], j = col[k];
        real zk = z[k];
        if (k < moved) { zk = keep * zk + u[i] * right[j]; z[k] = zk; }
        double less = kind == QUADRATIC && first ? p * first[k] : p;
        real gk = slope(kind, less, zk + (row_offset[i] + col_offset[j]), c[k], s[k]);
        g[k] = gk;
        zg = (double)(zk * gk);
    }
    zg = warp_sum(zg);
    if ((threadIdx.x & 31) == 0) atomicAdd(z_dot_g, zg);
}

// y[to] += g x[from], one vector or a block; one thread per number.
extern "C" __global__ void tail_multiply(
    long long n, long long lanes, const index_t* to, const index_t* from, const real* g,
    const real* x,
    real* y) {
    long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    long long k = at / lanes;
    long long q = at % lanes;
    if (k >= n) return;
    atomicAdd(y + (long long)to[k] * lanes + q, g[k] * x[(long long)from[k] * lanes + q]);
}

// Along a line ------------------------------------------------------------------------------------

extern "C" __global__ void directions(
    long long n, const index_t* row, const index_t* col, const real* z, const real* u,
    const real* right,
    real* out) {
    long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (k < n) out[k] = u[row[k]] * right[col[k]] - z[k];
}

// Loss and slope at x + t d, in double precision: a sum for each block of threads.
extern "C" __global__ void line_sums(
    long long n, const real* x, const real* d, const real* c, const real* s, const real* first,
    double t, long long kind, double p, double* sums) {
    __shared__ double shared[3][8];
    double value = 0.0, slope_sum = 0.0, second = 0.0;
    for (long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x; k < n;
         k += (long long)gridDim.x * blockDim.x) {
        double dk = d ? (double)d[k] : 0.0, at = (double)x[k] + t * dk, ck = c[k], sk = s[k];
        double pk = kind == QUADRATIC && first ? p * first[k] : p;
        value += total_loss(kind, pk, at, ck, sk);
        slope_sum += dk * general_slope(kind, pk, at, ck, sk);
        second += (ck - pk) * dk * dk;  // of the square loss, the only one that is a parabola
    }
    value = warp_sum(value); slope_sum = warp_sum(slope_sum); second = warp_sum(second);
    int warp = threadIdx.x >> 5;
    if ((threadIdx.x & 31) == 0) {
        shared[0][warp] = value; shared[1][warp] = slope_sum; shared[2][warp] = second;
    }
    __syncthreads();
    if (threadIdx.x < 3) {
        double total = 0.0;
        for (int q = 0; q < (blockDim.x >> 5); ++q) total += shared[threadIdx.x][q];
        sums[blockIdx.x * 3 + threadIdx.x] = total;
    }
}

// Entries of theta, and merging ------------------------------------------------------------------

extern "C" __global__ void factor_entries(
    long long n, const index_t* row, const index_t* col, const real* left, long long left_stride,
    const real* right, long long right_stride, const real* weights, long long rank, real* out) {
    long long k = (blockIdx.x * (long long)blockDim.x + threadIdx.x) >> 5;
    if (k >= n) return;
    int lane = threadIdx.x & 31;
    const real* a = left + row[k] * left_stride;
    const real* b = right + col[k] * right_stride;
    real total = 0;
    for (int q = lane; q < rank; q += 32) total += a[q] * weights[q] * b[q];
    total = warp_sum(total);
    if (lane == 0) out[k] = total;
}

// New entries at the end of the tail, with theta there. The piece has rows, columns, weights and
// targets of n entries, then theta's weights.
extern "C" __global__ void admit(
    long long n, const real* piece, const real* left, long long left_stride, const real* right,
    long long right_stride, long long rank, index_t* row, index_t* col, real* z, real* c,
    real* s) {
    long long k = (blockIdx.x * (long long)blockDim.x + threadIdx.x) >> 5;
    if (k >= n) return;
    int lane = threadIdx.x & 31;
    index_t i = ((const index_t*)piece)[k], j = ((const index_t*)(piece + n))[k];
    const real *a = left + i * left_stride, *b = right + j * right_stride;
    const real* weights = piece + 4 * n;
    real total = 0;
    for (int q = lane; q < rank; q += 32) total += a[q] * weights[q] * b[q];
    total = warp_sum(total);
    if (lane == 0) {
        row[k] = i; col[k] = j; z[k] = total; c[k] = piece[2 * n + k]; s[k] = piece[3 * n + k];
    }
}

// Where an entry belongs among the sorted ones of its row.
extern "C" __global__ void lower_bounds(
    long long n, const index_t* row, const index_t* col, const long long* indptr,
    const index_t* sorted_col, long long after, long long* out) {
    long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (k >= n) return;
    long long low = indptr[row[k]], high = indptr[row[k] + 1];
    while (low < high) {
        long long middle = (low + high) / 2;
        index_t j = sorted_col[middle];
        if (j < col[k] || (after && j == col[k])) low = middle + 1; else high = middle;
    }
    out[k] = low;
}

// Put the sorted entries where they are after a merge: each ``shift`` positions further.
extern "C" __global__ void spread_out(
    long long n, const int* shift, const index_t* row, const index_t* col, const real* z,
    const real* c, const real* s, index_t* new_row, index_t* new_col, real* new_z, real* new_c,
    real* new_s) {
    long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (k >= n) return;
    long long at = k + shift[k];
    new_row[at] = row[k]; new_col[at] = col[k];
    new_z[at] = z[k]; new_c[at] = c[k]; new_s[at] = s[k];
}

// Several small products in one call, since calls take the time ----------------------------------

// Parts of V' W, W' W and Y' Y, one for each block of threads; V and W have n rows, Y has m.
extern "C" __global__ void grams(
    long long m, long long n, const double* v, const double* w, const real* y, long long blocks,
    double* parts) {
    __shared__ double rows[3][32][LANES];
    int pair = threadIdx.x & 63, group = threadIdx.x >> 6;  // four groups of 64 pairs
    int a = pair / LANES, b = pair % LANES;
    double vw = 0.0, ww = 0.0, yy = 0.0;
    long long longest = m > n ? m : n;
    for (long long start = blockIdx.x * 32LL; start < longest; start += blocks * 32) {
        __syncthreads();
        long long i = start + (threadIdx.x >> 3);
        int q = threadIdx.x & 7, r = threadIdx.x >> 3;
        rows[0][r][q] = i < n ? v[i * LANES + q] : 0.0;
        rows[1][r][q] = i < n ? w[i * LANES + q] : 0.0;
        rows[2][r][q] = i < m ? (double)y[i * LANES + q] : 0.0;
        __syncthreads();
        for (int k = group; k < 32; k += 4) {
            vw += rows[0][k][a] * rows[1][k][b];
            ww += rows[1][k][a] * rows[1][k][b];
            yy += rows[2][k][a] * rows[2][k][b];
        }
    }
    __syncthreads();
    double* sums = &rows[0][0][0];  // 3 * 256 numbers
    sums[threadIdx.x] = vw; sums[256 + threadIdx.x] = ww; sums[512 + threadIdx.x] = yy;
    __syncthreads();
    if (threadIdx.x < 192) {
        const double* of = sums + 256 * (threadIdx.x / 64) + threadIdx.x % 64;
        parts[threadIdx.x * blocks + blockIdx.x] = of[0] + of[64] + of[128] + of[192];
    }
}

// out[b] = the sum of parts[b] for b < n, and out[n] = the sum of x; one block of threads for each.
extern "C" __global__ void add_parts(
    long long n, long long blocks, const double* parts, long long size, const double* x,
    double* out) {
    __shared__ double shared[8];
    const double* of = blockIdx.x < n ? parts + blockIdx.x * blocks : x;
    long long length = blockIdx.x < n ? blocks : size;
    double total = 0.0;
    for (long long k = threadIdx.x; k < length; k += blockDim.x) total += of[k];
    total = warp_sum(total);
    if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = total;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int q = 1; q < 8; ++q) total += shared[q];
        out[blockIdx.x] = total;
    }
}

// u = Y f and right = W F, where the factors are f and the columns of F.
extern "C" __global__ void mix(
    long long m, long long n, long long k, const real* y, const double* w, const double* factors,
    double* u, double* right) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < m) {
        double total = 0.0;
        for (int q = 0; q < LANES; ++q) total += (double)y[i * LANES + q] * factors[q];
        u[i] = total;
    } else if (i < m + n) {
        i -= m;
        for (int p = 0; p < k; ++p) {
            double total = 0.0;
            const double* f = factors + LANES * (p + 1);
            for (int q = 0; q < LANES; ++q) total += w[i * LANES + q] * f[q];
            right[i * k + p] = total;
        }
    }
}

extern "C" __global__ void cast_pair(
    long long m, long long n, const double* u, const double* v, real* to_u, real* to_v) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < m) to_u[i] = (real)u[i];
    else if (i < m + n) to_v[i - m] = (real)v[i - m];
}

// left[:, k] = u and right[:, k] = v
extern "C" __global__ void set_columns(
    long long m, long long n, const double* u, const double* v, real* left, long long left_stride,
    real* right, long long right_stride, long long k) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < m) left[i * left_stride + k] = (real)u[i];
    else if (i < m + n) right[(i - m) * right_stride + k] = (real)v[i - m];
}
