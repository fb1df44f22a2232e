// A matrix that is held as left diag(weights) right'.
#pragma once
#include "base.hpp"

template <class T> struct FactorEntries {
  i64 first, last;
  const i64* blocks;                   // of the entries
  i64 terms, left_width, right_width;  // factors may have space for more terms than there are
  const T *left, *right, *weights;
  const i64 *rows, *cols;
  T* out;
};

// out_i = sum over k of left[rows_i, k] weights_k right[cols_i, k]; products are of type T, sums double.
template <class T> i64 factor_entries(const FactorEntries<T>& e) {
  for (i64 i = e.blocks[e.first]; i < e.blocks[e.last]; ++i) {
    const T *left = e.left + e.rows[i] * e.left_width, *right = e.right + e.cols[i] * e.right_width;
    Eight<double> sums = {};
    i64 k = 0;
    for (; k + EIGHT <= e.terms; k += EIGHT) sums += in_double<T>(load(left + k) * load(e.weights + k) * load(right + k));
    double sum = total<double>(sums);
    for (; k < e.terms; ++k) sum += double(left[k] * e.weights[k] * right[k]);
    e.out[i] = T(sum);
  }
  return 0;
}
