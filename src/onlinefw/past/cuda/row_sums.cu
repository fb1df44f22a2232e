// Sums of a loss over all rows, from predictions alone. One thread per row, 256 threads per block.

// out[block, :] = its sums of w phi, w phi', w phi'', w phi' d and w phi'' d^2 at z + c d + b.
extern "C" __global__ void row_sums(
    int kind, double parameter, long long n_rows, const double* z, const double* d, double c,
    const double* y, const double* w, double b, double* out) {
    __shared__ double shared[8][5];
    double sums[5] = {0.0, 0.0, 0.0, 0.0, 0.0};
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n_rows; i += step) {
        if (w[i] == 0.0) continue;
        double along = c == 0.0 ? 0.0 : c * d[i], at = z[i] + along + b;
        double slope = w[i] * row_slope(kind, parameter, at, y[i]);
        double bend = w[i] * row_bend(kind, parameter, at, y[i]);
        sums[0] += w[i] * row_value(kind, parameter, at, y[i]);
        sums[1] += slope;
        sums[2] += bend;
        sums[3] += slope * d[i];
        sums[4] += bend * d[i] * d[i];
    }
    for (int k = 0; k < 5; k++) {
        double total = warp_sum(sums[k]);
        if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32][k] = total;
    }
    __syncthreads();
    if (threadIdx.x < 5) {
        double total = 0.0;
        for (int warp = 0; warp < 8; warp++) total += shared[warp][threadIdx.x];
        out[blockIdx.x * 5 + threadIdx.x] = total;
    }
}

// out_i = w_i phi'(z_i + b, y_i)
extern "C" __global__ void row_slopes(
    int kind, double parameter, long long n_rows, const double* z, const double* y,
    const double* w, double b, double* out) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n_rows) out[i] = w[i] * row_slope(kind, parameter, z[i] + b, y[i]);
}

// out_i = w_i times a curvature >= 0 of phi at (z_i + b, y_i)
extern "C" __global__ void row_bends(
    int kind, double parameter, long long n_rows, const double* z, const double* y,
    const double* w, double b, double* out) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n_rows) out[i] = w[i] * row_model_bend(kind, parameter, z[i] + b, y[i]);
}
