// The normal equations of some rows (or columns) of observed entries, in several models.
//
// A row is cut into segments. A block of threads takes a segment in one model: it brings the
// features of a few dozen entries into shared memory, a panel, and each thread adds up some of the
// products. Sums over a panel are in REAL, sums of panels and of segments in double. The order of
// all of them is fixed, so results do not depend on timing.
//
// Defined are REAL (float or double), RANK, PANEL, THREADS and PACKED, the size of the upper
// triangle of [A | b]. All whole numbers that are passed are long long.

typedef REAL real;
typedef unsigned int index_t;

#define UNKNOWNS (RANK + 1)
#define COLUMNS (RANK + 2)
#define EACH ((PACKED + THREADS - 1) / THREADS)

// parts[segment][model] = the upper triangle of [A | b] of the segment's entries, row by row.
// Features are the factors of the other side and 1; the targets are s / c less offsets and mean.
// ``ordered`` says that entry k of a segment is the one at order[k].
extern "C" __global__ void segment_equations(
    const long long* first, const long long* last, long long ordered, const index_t* order,
    const index_t* other, const real* c, const real* s, long long models, long long width,
    const real* factors, const real* offsets, double mean, double* parts) {
    __shared__ real left[PANEL][COLUMNS];
    __shared__ real right[PANEL][COLUMNS];
    long long segment = blockIdx.x, model = blockIdx.y;
    int row[EACH], column[EACH];
    double sums[EACH];
    for (int e = 0; e < EACH; ++e) {
        int rest = threadIdx.x + e * THREADS, a = 0;
        while (a < UNKNOWNS && rest >= COLUMNS - a) rest -= COLUMNS - a++;
        row[e] = a;
        column[e] = a + rest;
        sums[e] = 0.0;
    }
    long long end = last[segment];
    for (long long start = first[segment]; start < end; start += PANEL) {
        int n = end - start < PANEL ? (int)(end - start) : PANEL;
        __syncthreads();
        for (int t = threadIdx.x; t < n * COLUMNS; t += THREADS) {
            int q = t / COLUMNS, p = t % COLUMNS;
            long long k = ordered ? (long long)order[start + q] : start + q, j = other[k];
            if (p < UNKNOWNS) {
                real x = p < RANK ? factors[j * models * width + model * width + p] : (real)1;
                left[q][p] = x;
                right[q][p] = c[k] * x;
            } else {
                double offset = (double)offsets[j * models + model] + mean;
                right[q][p] = (real)((double)s[k] - (double)c[k] * offset);
            }
        }
        __syncthreads();
        for (int e = 0; e < EACH; ++e) {
            if (row[e] >= UNKNOWNS) continue;
            real total = 0;
            for (int q = 0; q < n; ++q) total += left[q][row[e]] * right[q][column[e]];
            sums[e] += (double)total;
        }
    }
    double* out = parts + (segment * models + model) * PACKED;
    for (int e = 0; e < EACH; ++e)
        if (row[e] < UNKNOWNS) out[threadIdx.x + e * THREADS] = sums[e];
}

// out[i] += the sum of the parts of row i's segments; ``size`` numbers each.
extern "C" __global__ void add_equations(
    long long n, long long size, const long long* segments, const double* parts, double* out) {
    long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (at >= n * size) return;
    long long i = at / size, p = at % size;
    double total = 0.0;
    for (long long q = segments[i]; q < segments[i + 1]; ++q) total += parts[q * size + p];
    out[at] += total;
}
