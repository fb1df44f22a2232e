// The n largest of many scores: one pass, with a short heap that most scores do not enter.
#pragma once
#include "base.hpp"
#include "products.hpp"

// The worst is on top; of equal scores, the latest item.
template <class T> struct Heap {
  i64* items;
  T* scores;
  i64 n;

  void begin() const {
    fill(items, n, i64(-1));
    fill(scores, n, T(-INFINITY));
  }

  bool is_worse(i64 a, i64 b) const {
    return scores[a] < scores[b] || (scores[a] == scores[b] && items[a] > items[b]);
  }

  // Put an item that is better in the place of the worst of the first m, and let it sink.
  void replace(i64 item, T score, i64 m) const {
    i64 at = 0;
    for (i64 child; (child = 2 * at + 1) < m; at = child) {
      if (child + 1 < m && is_worse(child + 1, child)) ++child;
      if (!(scores[child] < score || (scores[child] == score && items[child] > item))) break;
      items[at] = items[child];
      scores[at] = scores[child];
    }
    items[at] = item;
    scores[at] = score;
  }

  void offer(i64 item, T score) const {
    if (n > 0 && score > scores[0]) replace(item, score, n);
  }

  // Sort: the best first.
  void sort() const {
    for (i64 m = n - 1; m > 0; --m) {
      const i64 item = items[m];
      const T score = scores[m];
      items[m] = items[0];
      scores[m] = scores[0];
      replace(item, score, m);
    }
  }
};

// Items and scores have a row of n for each row of the table, or for each block. What is -inf is left out;
// where fewer are left, the item is -1. Of equal scores the first items are the best.
template <class T> struct BestInRows {
  i64 first, last;
  const i64* blocks;  // of the rows
  i64 columns, n;
  const T* table;
  i64* items;
  T* scores;
};

template <class T> i64 best_in_rows(const BestInRows<T>& b) {
  for (i64 r = b.blocks[b.first]; r < b.blocks[b.last]; ++r) {
    const Heap<T> best{b.items + r * b.n, b.scores + r * b.n, b.n};
    const T* row = b.table + r * b.columns;
    best.begin();
    for (i64 j = 0; j < b.columns; ++j) best.offer(j, row[j]);
    best.sort();
  }
  return 0;
}

template <class T> struct BestOfProducts {
  i64 first, last;
  const i64* blocks;  // of the items; each has a best of its own
  i64 rank, n;
  const T *factors, *offsets, *vector;
  i64* items;
  T* scores;
};

// The best items j by <factors_j, vector> + offsets_j; an offset of -inf leaves j out.
template <class T> i64 best_of_products(const BestOfProducts<T>& b) {
  for (i64 block = b.first; block < b.last; ++block) {
    const Heap<T> best{b.items + block * b.n, b.scores + block * b.n, b.n};
    best.begin();
    const i64 end = b.blocks[block + 1], rank = b.rank;
    const T *factors = b.factors, *offsets = b.offsets, *vector = b.vector;
    for (i64 j = b.blocks[block]; j < end; ++j)
      if (offsets[j] != T(-INFINITY)) best.offer(j, dot<T>(factors + j * rank, vector, rank) + offsets[j]);
    best.sort();
  }
  return 0;
}
