// Passes over dense rows. A row is `stride` numbers, the last ones 0, so that it consists of whole
// words of WIDTH numbers. Rows are NUMBER (unsigned char, float or double); all sums are doubles.
//
// Compiled for each NUMBER; fused_rows also for each CHUNKS (words a lane holds of a row), and
// slope_sums for each LANES (vectors at once).

#if BYTES
typedef unsigned int Word;
// 2^52 + byte has the byte in its last bits, which saves a conversion: a GPU does few per clock.
__device__ double number(const Word& word, int k) {
    return __hiloint2double(0x43300000, (word >> (8 * k)) & 255u) - 4503599627370496.0;
}
__device__ Word no_word() { return 0u; }
#elif SINGLES
typedef float4 Word;
__device__ double number(const Word& word, int k) {
    return k == 0 ? word.x : k == 1 ? word.y : k == 2 ? word.z : word.w;
}
__device__ Word no_word() { return make_float4(0.0f, 0.0f, 0.0f, 0.0f); }
#else
typedef double2 Word;
__device__ double number(const Word& word, int k) { return k == 0 ? word.x : word.y; }
__device__ Word no_word() { return make_double2(0.0, 0.0); }
#endif

#define WARPS 8

// z_i <- keep z_i + step <x_i, a> for i < moved, then the block's part of
// sum_i w_i phi'(z_i + b, y_i) x_i. Every row is read once: a warp holds ROWS of them in registers
// while it multiplies them by a, and adds them to its sums when their slopes are known.
#ifdef CHUNKS
extern "C" __global__ void __launch_bounds__(32 * WARPS) fused_rows(
    const NUMBER* X, long long n_rows, int stride, long long moved, double keep, double step,
    const double* a, double* z, const double* y, const double* w, double b, int kind,
    double parameter, double* parts) {
    // One slot for each number of a row, ordered so that a warp reads 32 neighbours at once.
    __shared__ double shared[CHUNKS * WIDTH * 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, words = stride / WIDTH;
    for (int slot = threadIdx.x; slot < CHUNKS * WIDTH * 32; slot += blockDim.x) {
        int column = (slot % 32 + slot / 32 / WIDTH * 32) * WIDTH + slot / 32 % WIDTH;
        shared[slot] = column < stride ? a[column] : 0.0;
    }
    __syncthreads();

    double sums[CHUNKS * WIDTH];
#pragma unroll
    for (int k = 0; k < CHUNKS * WIDTH; k++) sums[k] = 0.0;
    const long long first = n_rows * blockIdx.x / gridDim.x;
    const long long end = n_rows * (blockIdx.x + 1) / gridDim.x;
    for (long long i = first + ROWS * warp; i < end; i += ROWS * WARPS) {
        Word held[ROWS][CHUNKS];
        double slopes[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const Word* row = (const Word*)(X + (i + r) * stride);
#pragma unroll
            for (int c = 0; c < CHUNKS; c++) {
                int word = lane + 32 * c;
                held[r][c] = i + r < end && word < words ? row[word] : no_word();
            }
        }
        double dots[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) dots[r] = 0.0;
        if (i < moved) {
#pragma unroll
            for (int c = 0; c < CHUNKS; c++)
#pragma unroll
                for (int k = 0; k < WIDTH; k++) {
                    double a_k = shared[(c * WIDTH + k) * 32 + lane];
#pragma unroll
                    for (int r = 0; r < ROWS; r++) dots[r] += a_k * number(held[r][c], k);
                }
#pragma unroll
            for (int r = 0; r < ROWS; r++) dots[r] = warp_sum(dots[r]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            slopes[r] = 0.0;
            if (i + r < end) {
                double at = z[i + r];
                if (i + r < moved) at = keep * at + step * dots[r];
                slopes[r] = w[i + r] * row_slope(kind, parameter, at + b, y[i + r]);
                __syncwarp();  // all lanes have read z before one of them changes it
                if (lane == 0 && i + r < moved) z[i + r] = at;
            }
        }
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
#pragma unroll
            for (int k = 0; k < WIDTH; k++)
#pragma unroll
                for (int r = 0; r < ROWS; r++)
                    sums[c * WIDTH + k] += slopes[r] * number(held[r][c], k);
    }

    // Warp after warp, so that the order of the sum does not depend on timing.
    __syncthreads();
    for (int turn = 0; turn < WARPS; turn++) {
        if (warp == turn)
#pragma unroll
            for (int k = 0; k < CHUNKS * WIDTH; k++)
                shared[k * 32 + lane] = (turn ? shared[k * 32 + lane] : 0.0) + sums[k];
        __syncthreads();
    }
    for (int slot = threadIdx.x; slot < CHUNKS * WIDTH * 32; slot += blockDim.x) {
        int column = (slot % 32 + slot / 32 / WIDTH * 32) * WIDTH + slot / 32 % WIDTH;
        if (column < stride) parts[(long long)blockIdx.x * stride + column] = shared[slot];
    }
}
#endif

// z_i <- keep z_i + step <x_i, a>. One warp per row.
extern "C" __global__ void move_rows(
    const NUMBER* X, long long n_rows, int stride, double keep, double step, const double* a,
    double* z) {
    const int lane = threadIdx.x % 32, words = stride / WIDTH;
    const long long warps = (long long)gridDim.x * (blockDim.x / 32);
    for (long long i = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32; i < n_rows;
         i += warps) {
        const Word* row = (const Word*)(X + i * stride);
        double dot = 0.0;
        for (int word = lane; word < words; word += 32) {
            Word here = row[word];
#pragma unroll
            for (int k = 0; k < WIDTH; k++) dot += a[word * WIDTH + k] * number(here, k);
        }
        dot = warp_sum(dot);
        if (lane == 0) z[i] = (keep == 0.0 ? 0.0 : keep * z[i]) + step * dot;
    }
}

// parts[part, l, :] = the part's share of sum_i s[l, i] x_i for l < LANES. One thread per word.
#ifdef LANES
extern "C" __global__ void slope_sums(
    const NUMBER* X, long long n_rows, int stride, const double* s, double* parts) {
    const int word = blockIdx.x * blockDim.x + threadIdx.x, words = stride / WIDTH;
    const long long first = n_rows * blockIdx.y / gridDim.y;
    const long long end = n_rows * (blockIdx.y + 1) / gridDim.y;
    if (word >= words) return;
    double sums[LANES][WIDTH];
#pragma unroll
    for (int l = 0; l < LANES; l++)
#pragma unroll
        for (int k = 0; k < WIDTH; k++) sums[l][k] = 0.0;
#pragma unroll 4
    for (long long i = first; i < end; i++) {
        Word here = ((const Word*)(X + i * stride))[word];
#pragma unroll
        for (int l = 0; l < LANES; l++)
#pragma unroll
            for (int k = 0; k < WIDTH; k++) sums[l][k] += s[l * n_rows + i] * number(here, k);
    }
#pragma unroll
    for (int l = 0; l < LANES; l++)
#pragma unroll
        for (int k = 0; k < WIDTH; k++)
            parts[((long long)blockIdx.y * LANES + l) * stride + word * WIDTH + k] = sums[l][k];
}
#endif

// out_i = sum_k values_k x_i[indices_k]. One thread per row.
extern "C" __global__ void some_columns(
    const NUMBER* X, long long n_rows, int stride, int n_chosen, const int* indices,
    const double* values, double* out) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n_rows) return;
    double total = 0.0;
    for (int k = 0; k < n_chosen; k++) total += values[k] * (double)X[i * stride + indices[k]];
    out[i] = total;
}

// out_j = sum over parts of parts[part, j], in order. Blocks of 32 x 8 threads.
extern "C" __global__ void add_parts(const double* parts, int n_parts, long long n, double* out) {
    __shared__ double shared[8][32];
    const long long j = (long long)blockIdx.x * 32 + threadIdx.x;
    double total = 0.0;
    if (j < n)
        for (int p = n_parts * threadIdx.y / 8; p < n_parts * (int)(threadIdx.y + 1) / 8; p++)
            total += parts[p * n + j];
    shared[threadIdx.y][threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.y == 0 && j < n) {
        total = 0.0;
        for (int k = 0; k < 8; k++) total += shared[k][threadIdx.x];
        out[j] = total;
    }
}
