// Lists of ratings solved on a GPU: native/chains.hpp, where a block has a list and a chain (square loss).
//
// Before this are base.hpp, expected.hpp, random.hpp, and what Python defines: REAL, RANK, WIDTH (of a row of
// factors) and THREADS (of a block).

// A row of equations: the factors of an entry's other side, 1, what is left of the value, and the other's bias.
enum { ONE = RANK, TARGET, BIAS, COLUMNS };
constexpr int UNKNOWNS = RANK + 1, PAIRS = COLUMNS * (COLUMNS + 1) / 2;
// Sums of products that a thread has, and entries that are staged together.
constexpr int EACH = (PAIRS + THREADS - 1) / THREADS, STAGED = sizeof(REAL) == 4 ? 32 : 16;
// An odd number of columns: then numbers below each other are in different banks of shared memory.
constexpr int STRIDE = WIDTH + 1;
constexpr i64 PRIOR_SIZE = 5 * WIDTH * WIDTH + 8;

// Let L with LL' = A be below the diagonal, and in ``pivot``, where A was. One warp does it.
__device__ void factorise(double* A, double* pivot, int lane) {
  double largest = 1e-280;
  for (int j = 0; j < UNKNOWNS; ++j) largest = most(largest, pivot[j]);
  for (int j = 0; j < UNKNOWNS; ++j) {
    const double inverse = 1.0 / sqrt(most(pivot[j], 1e-15 * largest));
    __syncwarp();
    for (int r = j + 1 + lane; r < UNKNOWNS; r += 32) A[r * STRIDE + j] *= inverse;
    if (lane == 0) pivot[j] *= inverse;
    __syncwarp();
    for (int r = j + 1 + lane; r < UNKNOWNS; r += 32) {
      const double f = A[r * STRIDE + j];
      for (int c = j + 1; c < r; ++c) A[r * STRIDE + c] -= f * A[c * STRIDE + j];
      pivot[r] -= f * f;
    }
    __syncwarp();
  }
}

// Let M = A^-1 b and S = M + L'^-1 noise stand where b (``mean``) and noise (``sample``) were.
__device__ void solve(const double* L, const double* pivot, int lane, double* mean, double* sample) {
  for (int j = 0; j < UNKNOWNS; ++j) {
    const double x = mean[j] / pivot[j];
    __syncwarp();
    if (lane == 0) mean[j] = x;
    for (int r = j + 1 + lane; r < UNKNOWNS; r += 32) mean[r] -= x * L[r * STRIDE + j];
    __syncwarp();
  }
  for (int r = lane; r < UNKNOWNS; r += 32) sample[r] += mean[r];
  __syncwarp();
  for (int j = UNKNOWNS - 1; j >= 0; --j) {
    const double x = mean[j] / pivot[j], y = sample[j] / pivot[j];
    __syncwarp();
    if (lane == 0) mean[j] = x, sample[j] = y;
    for (int r = lane; r < j; r += 32) mean[r] -= x * L[j * STRIDE + r], sample[r] -= y * L[j * STRIDE + r];
    __syncwarp();
  }
  for (int r = lane; r < UNKNOWNS; r += 32) mean[r] = tame(mean[r]), sample[r] = tame(sample[r]);
  __syncwarp();
}

// sum (t - <s, x>)^2 = sum t^2 - 2 <s, sum t x> + s' sum x x' s: what a lane adds to it.
__device__ double part_of_squares(const double* normal, const double* s, int lane) {
  double sum = 0.0;
  for (int a = lane; a < UNKNOWNS; a += 32) {
    const double* row = normal + a * STRIDE;
    double its = 0.5 * row[a] * s[a] - row[TARGET];
    for (int b = a + 1; b < UNKNOWNS; ++b) its += row[b] * s[b];
    sum += 2.0 * s[a] * its;
  }
  return lane == 0 ? sum + normal[TARGET * STRIDE + TARGET] : sum;
}

// Block (k, chain) solves list which[k]; entries of list i are from start[i] on. ``samples`` are those of the
// other side. Weights are in units of a new observation once they are multiplied with ``heavy``; 0: all are 1.
extern "C" __global__ void __launch_bounds__(THREADS) solve_lists(
    const i64* which, const i64* numbers, const i64* start, const u32* other, const REAL* value,
    const REAL* weight, double heavy, const REAL* samples, const double* priors, const double* precisions,
    const i64* solved, i64 seed, i64 side, i64 biased, double centre, double scale, REAL* means_out,
    REAL* samples_out, REAL* features_out, double* errors_out) {
  // Sums of products stand on and above the diagonal; below it A and then its factor.
  __shared__ double normal[WIDTH * STRIDE], f[WIDTH], expected[WIDTH], pivot[WIDTH], mean[WIDTH], sample[WIDTH];
  __shared__ REAL panel[STAGED * WIDTH], weights[STAGED];
  __shared__ double squares[32];
  const int t = threadIdx.x;
  const i64 k = blockIdx.x, chain = blockIdx.y, count = gridDim.y, i = which[k];
  const double *B = priors + chain * PRIOR_SIZE, *Lambda = B + WIDTH * WIDTH, p = precisions[chain];

  int left[EACH], right[EACH];
  double total[EACH];
  for (int m = 0; m < EACH; ++m) {
    int a = 0, b = least(t + m * THREADS, PAIRS - 1);
    while (b >= COLUMNS - a) b -= COLUMNS - a++;
    left[m] = a, right[m] = a + b, total[m] = 0.0;
  }
  for (i64 from = start[i]; from < start[i + 1]; from += STAGED) {
    const int n = int(least(i64(STAGED), start[i + 1] - from));
    for (int at = t; at < n * WIDTH; at += THREADS) {
      const int q = at / WIDTH, c = at % WIDTH;
      if (c > RANK) continue;
      const REAL x = samples[(i64(other[from + q]) * count + chain) * WIDTH + c];
      if (c < RANK) {
        panel[at] = x;
        continue;
      }
      panel[at] = REAL(1);
      panel[at + 1] = REAL((double(value[from + q]) - centre) * scale) - x;
      panel[at + 2] = x;
      weights[q] = heavy > 0.0 ? weight[from + q] * REAL(heavy) : REAL(1);
    }
    __syncthreads();
    REAL sums[EACH];
    for (int m = 0; m < EACH; ++m) sums[m] = REAL(0);
    for (int q = 0; q < n; ++q) {
      const REAL *row = panel + q * WIDTH, w = weights[q];
      for (int m = 0; m < EACH; ++m) sums[m] += row[left[m]] * (w * row[right[m]]);
    }
    for (int m = 0; m < EACH; ++m) total[m] += sums[m];
    __syncthreads();
  }
  for (int m = 0; m < EACH; ++m) normal[left[m] * STRIDE + right[m]] = total[m];
  if (t == THREADS - 1) normals(u64(seed), u64(side * count + chain), u64(solved[chain] + numbers[k]), UNKNOWNS, sample);
  __syncthreads();

  const double n = normal[ONE * STRIDE + ONE];
  for (int c = t; c < WIDTH; c += THREADS) {
    const double sum = c == 0 || c > RANK ? normal[ONE * STRIDE + BIAS] : normal[(c - 1) * STRIDE + ONE];
    f[c] = c == 0 ? 1.0 : c <= RANK + 1 ? of_sum(sum, n) : c == RANK + 2 ? of_count(n) : 0.0;
  }
  __syncthreads();
  for (int b = t; b < UNKNOWNS; b += THREADS) {
    double sum = 0.0;
    for (int a = 0; a < COLUMNS; ++a) sum += f[a] * B[a * WIDTH + b];
    expected[b] = sensible(sum);
  }
  __syncthreads();
  for (int at = t; at < UNKNOWNS * UNKNOWNS; at += THREADS) {
    const int a = at / UNKNOWNS, b = at % UNKNOWNS;
    if (b > a) continue;
    double sum = Lambda[b * WIDTH + a] + p * normal[b * STRIDE + a];
    if (!biased && a == RANK) sum = a == b;
    (a == b ? pivot[a] : normal[a * STRIDE + b]) = sum;
  }
  for (int a = t; a < UNKNOWNS; a += THREADS) {
    double sum = p * normal[a * STRIDE + TARGET];
    for (int b = 0; b < UNKNOWNS; ++b) sum += Lambda[a * WIDTH + b] * expected[b];
    mean[a] = sum;
    if (!biased && a == RANK) mean[a] = sample[a] = 0.0;
  }
  __syncthreads();

  if (t < 32) {
    factorise(normal, pivot, t);
    solve(normal, pivot, t, mean, sample);
    squares[t] = part_of_squares(normal, sample, t);
  }
  __syncthreads();
  const i64 at = k * count + chain;
  if (t == 0) {
    double sum = 0.0;
    for (int lane = 0; lane < 32; ++lane) sum += squares[lane];
    errors_out[2 * at] = most(sum, 0.0);
    errors_out[2 * at + 1] = n;
  }
  for (int c = t; c < WIDTH; c += THREADS) {
    means_out[at * WIDTH + c] = REAL(c < UNKNOWNS ? mean[c] : 0.0);
    samples_out[at * WIDTH + c] = REAL(c < UNKNOWNS ? sample[c] : 0.0);
    features_out[at * WIDTH + c] = REAL(f[c]);
  }
}

// Block (part, chain) adds up f f', f s', s s' and errors of its part of n lists, always in the same order.
extern "C" __global__ void __launch_bounds__(256) sum_lists(
    long long n, const REAL* features, const REAL* samples, const double* errors, double* out) {
  constexpr int SQUARE_SIZE = WIDTH * WIDTH, AT_ONCE = 8;
  const i64 part = blockIdx.x, parts = gridDim.x, chain = blockIdx.y, count = gridDim.y;
  const i64 first = n * part / parts, last = n * (part + 1) / parts;
  double* to = out + (part * count + chain) * (3 * SQUARE_SIZE + 2);
  for (int base = threadIdx.x; base < 3 * SQUARE_SIZE; base += 256 * AT_ONCE) {
    double sums[AT_ONCE];
    for (int m = 0; m < AT_ONCE; ++m) sums[m] = 0.0;
    for (i64 k = first; k < last; ++k) {
      const REAL *f = features + (k * count + chain) * WIDTH, *s = samples + (k * count + chain) * WIDTH;
      for (int m = 0; m < AT_ONCE; ++m) {
        const int which = least(base + 256 * m, 3 * SQUARE_SIZE - 1), of = which / SQUARE_SIZE;
        const int a = which % SQUARE_SIZE / WIDTH, b = which % WIDTH;
        sums[m] += double(of < 2 ? f[a] : s[a]) * double(of < 1 ? f[b] : s[b]);
      }
    }
    for (int m = 0; m < AT_ONCE; ++m)
      if (base + 256 * m < 3 * SQUARE_SIZE) to[base + 256 * m] = sums[m];
  }
  if (threadIdx.x < 2) {
    double sum = 0.0;
    for (i64 k = first; k < last; ++k) sum += errors[2 * (k * count + chain) + threadIdx.x];
    to[3 * SQUARE_SIZE + threadIdx.x] = sum;
  }
}

// Block i writes list i with new entries at its end. Lists began at before[i], and got more[i] to more[i + 1].
extern "C" __global__ void extend_lists(
    const i64* before, const i64* more, const u32* other, const REAL* value, const REAL* weight,
    const u32* new_other, const REAL* new_value, const REAL* new_weight, i64 weighted, u32* other_out,
    REAL* value_out, REAL* weight_out) {
  const i64 i = blockIdx.x, old = before[i + 1] - before[i], n = old + more[i + 1] - more[i];
  for (i64 q = threadIdx.x; q < n; q += blockDim.x) {
    const bool is_old = q < old;
    const i64 from = is_old ? before[i] + q : more[i] + q - old, to = before[i] + more[i] + q;
    other_out[to] = is_old ? other[from] : new_other[from];
    value_out[to] = is_old ? value[from] : new_value[from];
    if (weighted) weight_out[to] = is_old ? weight[from] : new_weight[from];
  }
}
