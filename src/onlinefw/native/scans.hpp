// One pass over a batch, for its checks.
#pragma once
#include "base.hpp"

template <class T> struct Extent {
  i64 n;
  const i64* X;  // (n, 2): rows and columns; n is at least 1
  const T* y;
  mutable i64 low, row, column;  // what is found: the smallest index, the largest row and column ...
  mutable double largest;        // ... and the largest |y|; inf for NaN
};

template <class T> i64 extent_of_entries(const Extent<T>& e) {
  i64 low = e.X[0], row = e.X[0], column = e.X[1];
  T largest = 0;
  bool ordered = true;
  for (i64 k = 0; k < e.n; ++k) {
    const i64 i = e.X[2 * k], j = e.X[2 * k + 1];
    low = least(low, least(i, j));
    row = most(row, i);
    column = most(column, j);
    const T size = e.y[k] < 0 ? -e.y[k] : e.y[k];
    largest = size > largest ? size : largest;
    ordered &= size == size;
  }
  e.low = low;
  e.row = row;
  e.column = column;
  e.largest = ordered ? double(largest) : INFINITY;
  return 0;
}
