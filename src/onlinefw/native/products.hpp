// Sums of products.
#pragma once
#include "base.hpp"

template <class A, class T, class S> inline Eight<A> eight_products(const T* x, const S* y) {
  return __builtin_convertvector(load(x), Eight<A>) * __builtin_convertvector(load(y), Eight<A>);
}

// The sum of x_k y_k in the precision A. The order of its terms depends on n alone.
template <class A, class T, class S> inline A dot(const T* x, const S* y, i64 n) {
  constexpr i64 FOUR = 4;  // chains, so that none waits for itself
  Eight<A> sum = {};
  i64 k = 0;
  if (n >= FOUR * EIGHT) {
    Eight<A> sums[FOUR] = {};
    for (; k + FOUR * EIGHT <= n; k += FOUR * EIGHT)
      for (i64 c = 0; c < FOUR; ++c) sums[c] += eight_products<A>(x + k + c * EIGHT, y + k + c * EIGHT);
    sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  for (; k + EIGHT <= n; k += EIGHT) sum += eight_products<A>(x + k, y + k);
  A rest = 0;
  for (; k < n; ++k) rest += A(x[k]) * A(y[k]);
  return total<A>(sum) + rest;
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
