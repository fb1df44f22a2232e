// Passes over sparse rows of NUMBER (float or double): rows in compressed rows, the older ones also
// in compressed columns; the newest are the tail. All sums are doubles.

// out_i <- keep out_i + step <x_i, v>. One warp per row.
extern "C" __global__ void row_dots(
    const long long* indptr, const int* indices, const NUMBER* data, long long n_rows,
    const double* v, double keep, double step, double* out) {
    const int lane = threadIdx.x % 32;
    const long long warps = (long long)gridDim.x * (blockDim.x / 32);
    for (long long i = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32; i < n_rows;
         i += warps) {
        double dot = 0.0;
        for (long long k = indptr[i] + lane; k < indptr[i + 1]; k += 32)
            dot += (double)data[k] * v[indices[k]];
        dot = warp_sum(dot);
        if (lane == 0) out[i] = (keep == 0.0 ? 0.0 : keep * out[i]) + step * dot;
    }
}

// Columns differ in length by orders of magnitude, so they are cut into segments of bounded length.
// sums[s] = sum over the segment of data_k r[indices_k]. One warp per segment.
extern "C" __global__ void segment_dots(
    const long long* cuts, long long n_segments, const int* indices, const NUMBER* data,
    const double* r, double* sums) {
    const int lane = threadIdx.x % 32;
    const long long warps = (long long)gridDim.x * (blockDim.x / 32);
    for (long long s = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32; s < n_segments;
         s += warps) {
        double dot = 0.0;
        for (long long k = cuts[s] + lane; k < cuts[s + 1]; k += 32)
            dot += (double)data[k] * r[indices[k]];
        dot = warp_sum(dot);
        if (lane == 0) sums[s] = dot;
    }
}

// out_j = the sum of the column's segments, in order. One thread per column.
extern "C" __global__ void add_segments(
    const long long* segments, long long n_columns, const double* sums, double* out) {
    long long j = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= n_columns) return;
    double total = 0.0;
    for (long long s = segments[j]; s < segments[j + 1]; s++) total += sums[s];
    out[j] = total;
}

// out += sum over the rows from `first` on of r_i x_i. One warp per row, in no fixed order.
extern "C" __global__ void scatter_tail(
    const long long* indptr, const int* indices, const NUMBER* data, long long first,
    long long n_rows, const double* r, double* out) {
    const int lane = threadIdx.x % 32;
    const long long warps = (long long)gridDim.x * (blockDim.x / 32);
    for (long long i = first + ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32; i < n_rows;
         i += warps)
        for (long long k = indptr[i] + lane; k < indptr[i + 1]; k += 32)
            atomicAdd(out + indices[k], r[i] * (double)data[k]);
}

// out_i = x_i[j] where that is not 0: a column of the older rows, then the tail.
extern "C" __global__ void sparse_column(
    long long j, const long long* column_ptr, const int* row_indices, const NUMBER* column_data,
    const long long* indptr, const int* indices, const NUMBER* data, long long first,
    long long n_rows, double* out) {
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long threads = (long long)gridDim.x * blockDim.x;
    for (long long k = column_ptr[j] + thread; k < column_ptr[j + 1]; k += threads)
        out[row_indices[k]] = (double)column_data[k];
    const int lane = threadIdx.x % 32;
    for (long long i = first + thread / 32; i < n_rows; i += threads / 32)
        for (long long k = indptr[i] + lane; k < indptr[i + 1]; k += 32)
            if (indices[k] == j) out[i] = (double)data[k];
}

// out[i - first, position[j]] = x_i[j] for the columns j with position[j] >= 0. One warp per row.
extern "C" __global__ void gather_columns(
    const long long* indptr, const int* indices, const NUMBER* data, long long first,
    long long n_rows, const int* position, int n_chosen, double* out) {
    const int lane = threadIdx.x % 32;
    const long long warps = (long long)gridDim.x * (blockDim.x / 32);
    for (long long i = first + ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32; i < n_rows;
         i += warps)
        for (long long k = indptr[i] + lane; k < indptr[i + 1]; k += 32)
            if (position[indices[k]] >= 0)
                out[(i - first) * n_chosen + position[indices[k]]] = (double)data[k];
}
