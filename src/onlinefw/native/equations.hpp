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
  for (i64 j = 0; j < n; ++j) {
    double* row = A + j * stride;
    double inverse = 1.0 / sqrt(most(row[j], 1e-300));
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
