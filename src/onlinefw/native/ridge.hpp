// Ridge regressions of rows on the factors of their columns (or the other way round), offsets held fixed.
#pragma once
#include "equations.hpp"
#include "lists.hpp"
#include "losses.hpp"

template <class T> struct RidgeRows {
  i64 from, until, rank;
  const Lists<T>* lists;
  T* own;            // what is solved, and from where parabolas of other losses touch
  const T* others;
  const double *offsets, *other_offsets, *penalty;  // of each row, of each column; what |x|^2 / 2 costs a row
  i64 kind;
  double parameter;
  double* work;  // two matrices as wide as a panel
  T* panel;
};

// Let each x minimise sum w loss(offset + <x, f>, y) + penalty |x|^2 / 2; of losses other than the square,
// with the parabolas that touch them where x was.
template <class T> i64 solve_ridge(const RidgeRows<T>& r) {
  const i64 rank = r.rank, width = width_of(rank);
  const Loss loss{r.kind, r.parameter};
  T *left = r.panel, *right = left + PANEL * width;
  double *normal = r.work, *x = normal + width * width;
  for (i64 i = r.from; i < r.until; ++i) {
    const i64 start = r.lists->start[i], n = r.lists->length[i];
    T* own = r.own + i * rank;
    fill(normal, width * width, 0.0);
    for (i64 from = 0; from < n; from += PANEL) {
      const i64 some = least(n - from, PANEL);
      for (i64 q = 0; q < some; ++q) {
        const i64 k = start + from + q, j = r.lists->other[k];
        const T* f = r.others + j * rank;
        const double offset = r.offsets[i] + r.other_offsets[j], y = double(r.lists->value[k]);
        double bend = 1.0, target = y - offset;
        if (r.kind != SQUARE) {
          double mine = 0.0;
          for (i64 p = 0; p < rank; ++p) mine += double(own[p]) * double(f[p]);
          bend = clamped(loss.bend(offset + mine, y), 1e-6, 1e6);
          target = mine - clamped(loss.slope(offset + mine, y) / bend, -1e6, 1e6);
        }
        const T weight = T(r.lists->weight_at(k) * bend);
        for (i64 p = 0; p < rank; ++p) left[q * width + p] = f[p], right[q * width + p] = weight * f[p];
        for (i64 p = rank; p < width; ++p) left[q * width + p] = right[q * width + p] = T(0);
        left[q * width + rank + 1] = T(target);
      }
      add_panel(normal, rank, width, left, right, some);
    }
    for (i64 p = 0; p < rank; ++p) {
      x[p] = normal[(rank + 1) * width + p];
      normal[p * width + p] += r.penalty[i];
      for (i64 b = rank; b < width; ++b) normal[p * width + b] = 0.0;
    }
    factorise(normal, rank, width);
    solve_lower(normal, rank, width, x);
    solve_upper(normal, rank, width, x);
    for (i64 p = 0; p < rank; ++p) own[p] = T(x[p]);
  }
  return r.until - r.from;
}
