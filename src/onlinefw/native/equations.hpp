// Normal equations of one row on the factors of its columns (or the other way round), and their solution.
//
// A panel holds up to 64 entries as rows [factors | 1 | target | 0 ...], and again times their weights. Its
// products are added tile by tile in the panel's precision, and to the sums in double precision.
#pragma once
#include "base.hpp"

constexpr i64 PANEL = 64;

// How long a row of a panel, and of normal equations, of so many factors is.
inline i64 width_of(i64 rank) { return in_eights(rank + 2); }

// Add the products of columns a.. with columns b.. of n rows to eight rows of a matrix, or to fewer.
template <i64 ROWS, class T>
inline void add_tile(double* normal, const T* left, const T* right, i64 width, i64 n, i64 a, i64 b) {
  Eight<T> sums[ROWS] = {};
  for (i64 q = 0; q < n; ++q) {
    Eight<T> x = load(right + q * width + b);
    const T* f = left + q * width + a;
    for (i64 m = 0; m < ROWS; ++m) sums[m] += f[m] * x;
  }
  for (i64 m = 0; m < ROWS; ++m) {
    double* to = normal + (a + m) * width + b;
    store(to, load(to) + in_double<T>(sums[m]));
  }
}

// Add a panel to equations: the upper triangle of the factors' products, and below it the whole rows of
// the ones and of the targets. ``right`` is the panel times the weights.
template <class T> inline void add_panel(double* normal, i64 rank, i64 width, const T* left, const T* right, i64 n) {
  const i64 factors = in_eights(rank);
  for (i64 a = 0; a < factors; a += EIGHT)
    for (i64 b = a; b < factors; b += EIGHT) add_tile<EIGHT>(normal, left, right, width, n, a, b);
  if (rank % EIGHT == 0)  // else those tiles have had what follows, or a part of it
    for (i64 b = 0; b < width; b += EIGHT) add_tile<2>(normal, left, right, width, n, rank, b);
  else
    for (i64 m = rank; m < rank + 2; ++m) {
      for (i64 b = 0; b < width; b += EIGHT) {
        if (m < factors && b >= m / EIGHT * EIGHT) continue;
        add_tile<1>(normal, left, right, width, n, m, b);
      }
    }
}

// Let U with U'U = A stand in the upper triangle of a positive definite matrix. Rows are ``stride`` apart, a
// multiple of eight, and what is between n and the stride is 0. What is below the diagonal is lost.
inline void factorise(double* A, i64 n, i64 stride) {
  double largest = 1e-280;
  for (i64 j = 0; j < n; ++j) largest = most(largest, A[j * stride + j]);
  const double least_pivot = 1e-15 * largest;  // below that there is rounding only
  for (i64 j = 0; j < n; ++j) {
    double* row = A + j * stride;
    double inverse = 1.0 / sqrt(most(row[j], least_pivot));
    for (i64 b = j / EIGHT * EIGHT; b < stride; b += EIGHT) store(row + b, inverse * load(row + b));
    for (i64 i = j + 1; i < n; ++i) {
      double f = row[i], *to = A + i * stride;
      for (i64 b = i / EIGHT * EIGHT; b < stride; b += EIGHT) store(to + b, load(to + b) - f * load(row + b));
    }
  }
}

// Solve U'y = x, in place.
inline void solve_lower(const double* U, i64 n, i64 stride, double* x) {
  for (i64 i = 0; i < n; ++i) {
    const double* row = U + i * stride;
    double y = x[i] / row[i];
    x[i] = y;
    for (i64 p = i + 1; p < n; ++p) x[p] -= y * row[p];
  }
}

// Solve U y = x, in place.
inline void solve_upper(const double* U, i64 n, i64 stride, double* x) {
  for (i64 i = n; i-- > 0;) {
    const double* row = U + i * stride;
    double y = x[i];
    for (i64 p = i + 1; p < n; ++p) y -= row[p] * x[p];
    x[i] = y / row[i];
  }
}

// Equations [A | b] in the making, without ones: b is column ``rank``. Entries x of weight w add w x x' to A
// (the tiles on and above its diagonal) and target x to b, a panel at a time.
template <class P> struct Panel {
  double* normal;
  P *left, *right;
  i64 rank, width, n = 0;

  template <class T> void add(const T* x, P w, P target) {
    P *l = left + n * width, *r = right + n * width;
    for (i64 b = 0; b < width; b += EIGHT) {
      Eight<P> some = __builtin_convertvector(load(x + b), Eight<P>);
      store(l + b, some);
      store(r + b, w * some);
    }
    r[rank] = target;
    if (++n == PANEL) finish();
  }

  void finish() {
    for (i64 a = 0; a < rank; a += EIGHT)
      for (i64 b = a; b < width; b += EIGHT) add_tile<EIGHT>(normal, left, right, width, n, a, b);
    n = 0;
  }
};

// Bring [A | b] into upper triangular form, in place: Cholesky without square roots, which solves for b on the
// way. ``least`` is positive, and no eigenvalue is smaller. So no pivot is, but for rounding; where that has
// left less than half of it, the unknown will be 0. What is below the diagonal is lost.
//
// Eight rows at a time: what earlier rows take off them is a product of tiles. ``scaled`` has rows divided by
// minus their pivots.
inline void eliminate(double* normal, double* scaled, i64 rank, i64 width, double least) {
  for (i64 first = 0; first < rank; first += EIGHT) {
    for (i64 b = first; b < width; b += EIGHT) add_tile<EIGHT>(normal, scaled, normal, width, first, first, b);
    const i64 last = ::least(first + EIGHT, rank);
    for (i64 j = first; j < last; ++j) {
      double *row = normal + j * width, *of_pivot = scaled + j * width;
      if (row[j] < 0.5 * least) row[j] = INFINITY;
      const double pivot = -1.0 / row[j];
      for (i64 b = first; b < width; b += EIGHT) store(of_pivot + b, pivot * load(row + b));
      for (i64 i = j + 1; i < last; ++i) {
        double f = of_pivot[i], *to = normal + i * width;
        for (i64 b = first; b < width; b += EIGHT) store(to + b, load(to + b) + f * load(row + b));
      }
    }
  }
}

// Solve what ``eliminate`` has left. x is as long as a row, and 0 from ``rank`` on.
inline void substitute(const double* normal, i64 rank, i64 width, double* x) {
  fill(x + rank, width - rank, 0.0);
  for (i64 i = rank; i-- > 0;) {
    const double* row = normal + i * width;
    const i64 end = in_eights(i + 1);
    Eight<double> sums = {};
    for (i64 b = end; b < width; b += EIGHT) sums += load(row + b) * load(x + b);
    double y = row[rank] - total<double>(sums);
    for (i64 b = i + 1; b < least(end, rank); ++b) y -= row[b] * x[b];
    x[i] = y / row[i];
  }
}
