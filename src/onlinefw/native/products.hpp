// Sums of products.
#pragma once
#include "base.hpp"

template <class A, class T, class S> inline Eight<A> eight_products(const T* x, const S* y) {
  return __builtin_convertvector(load(x), Eight<A>) * __builtin_convertvector(load(y), Eight<A>);
}

// The sum of x_k y_k in the precision A. The order of its terms depends on n alone.
template <class A, class T, class S> inline A dot(const T* x, const S* y, i64 n) {
  constexpr i64 FOUR = 4;  // chains, so that none waits for itself
  Eight<A> sums[FOUR] = {};
  i64 k = 0;
  for (; k + FOUR * EIGHT <= n; k += FOUR * EIGHT)
    for (i64 c = 0; c < FOUR; ++c) sums[c] += eight_products<A>(x + k + c * EIGHT, y + k + c * EIGHT);
  for (; k + EIGHT <= n; k += EIGHT) sums[0] += eight_products<A>(x + k, y + k);
  A sum = total<A>((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; k < n; ++k) sum += A(x[k]) * A(y[k]);
  return sum;
}

template <class T> struct Products {
  i64 rows, columns, models;
  const T* X;             // (rows, columns)
  const double* thetas;   // (models, columns)
  double* out;            // (rows, models)
};

// out = X thetas', where the numbers of a row are the same whatever rows stand beside it.
template <class T> i64 products(const Products<T>& p) {
  for (i64 i = 0; i < p.rows; ++i)
    for (i64 m = 0; m < p.models; ++m)
      p.out[i * p.models + m] = dot<double>(p.X + i * p.columns, p.thetas + m * p.columns, p.columns);
  return 0;
}
