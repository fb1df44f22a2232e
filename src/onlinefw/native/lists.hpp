// Lists that grow one entry at a time: what has been observed in each row, or in each column.
//
// All lists of one side share the memory of a few arrays. A list that is full moves to a stretch twice
// as long, and its old stretch is for others of that length. So an entry is added in constant time, on
// average, and lists take one and a half to two times the memory of their entries.
#pragma once
#include "base.hpp"

// The shortest stretch. The first two numbers of a free one say where the next one is.
constexpr i64 SHORTEST = 2;

template <class T> struct Lists {
  i64 *start, *length, *space;  // of each list: where it begins, its entries, how many it has space for
  u32* other;                   // an entry's column in a list of rows, or its row
  T *value, *weight;            // weight is null while all weigh 1
  i64* free;                    // the first free stretch of each length, plus 1; 0 if there is none
  i64* end;                     // one number: where the memory that was never used begins
  i64 memory;                   // how many entries all arrays have space for

  double weight_at(i64 k) const { return weight ? double(weight[k]) : 1.0; }

  static int size_class(i64 space) { int which = 0; while ((SHORTEST << which) < space) ++which; return which; }

  // Whether list i can take one more entry without more memory.
  bool has_space(i64 i) const {
    if (length[i] < space[i]) return true;
    i64 longer = most(SHORTEST, 2 * space[i]);
    return free[size_class(longer)] > 0 || end[0] + longer <= memory;
  }

  // Move list i to a stretch twice as long, or longer.
  void lengthen(i64 i, i64 least_space = 0) const {
    i64 n = space[i], old = start[i];
    int which = size_class(most(least_space, most(SHORTEST, 2 * n)));
    i64 longer = SHORTEST << which;
    i64 at = free[which] - 1;
    if (at >= 0) {
      free[which] = i64(other[at]) | (i64(other[at + 1]) << 32);
    } else {
      at = end[0];
      end[0] = at + longer;
    }
    copy(other + old, n, other + at);
    copy(value + old, n, value + at);
    if (weight) copy(weight + old, n, weight + at);
    if (n > 0) {
      i64* first = free + size_class(n);
      other[old] = u32(*first & 0xFFFFFFFF);
      other[old + 1] = u32(*first >> 32);
      *first = old + 1;
    }
    start[i] = at;
    space[i] = longer;
  }

  // Add an entry to list i, which has_space.
  void append(i64 i, i64 its_other, double y, double w) const {
    if (length[i] == space[i]) lengthen(i);
    i64 at = start[i] + length[i];
    other[at] = u32(its_other);
    value[at] = T(y);
    if (weight) weight[at] = T(w);
    length[i] += 1;
  }

  // Where in list i an entry is, counted from its beginning; -1 if it is not there.
  i64 position(i64 i, i64 its_other) const {
    const u32 *at = other + start[i], wanted = u32(its_other);
    i64 n = length[i], k = 0;
    for (; k + 16 <= n; k += 16) {  // without a jump for each, which takes several times as long
      u32 found = 0;
      for (i64 q = 0; q < 16; ++q) found |= u32(at[k + q] == wanted);
      if (found) break;
    }
    for (; k < n; ++k) if (at[k] == wanted) return k;
    return -1;
  }

  // Observe an entry of list i again: weights add up, and its value is the weighted mean.
  void add_weight(i64 i, i64 its_position, double y, double w) const {
    i64 k = start[i] + its_position;
    double before = double(weight[k]), total = before + w;
    if (total > 0.0) value[k] = T((before * double(value[k]) + w * y) / total);
    weight[k] = T(total);
  }

  // Take out of list i all that belongs to one row (or column) of the other side; others keep their order.
  void remove(i64 i, i64 its_other) const {
    i64 first = start[i], left = 0;
    for (i64 k = first; k < first + length[i]; ++k) {
      if (other[k] == u32(its_other)) continue;
      other[first + left] = other[k];
      value[first + left] = value[k];
      if (weight) weight[first + left] = weight[k];
      ++left;
    }
    length[i] = left;
  }
};

// Whether an entry is in the lists of both sides; the shorter one says.
template <class T> bool is_there(const Lists<T>& by_row, const Lists<T>& by_column, i64 i, i64 j) {
  if (by_row.length[i] <= by_column.length[j]) return by_row.position(i, j) >= 0;
  return by_column.position(j, i) >= 0;
}

template <class T> struct Entries {
  i64 first, n;
  const i64 *which, *others;
  const double *y, *w;  // w is null if all weigh 1
  const Lists<T>* lists;
};

// Add entries to the lists of one side, from the first on; return how many are in, fewer than n if they need
// more memory.
template <class T> i64 append_all(const Entries<T>& e) {
  for (i64 t = e.first; t < e.n; ++t) {
    if (!e.lists->has_space(e.which[t])) return t;
    e.lists->append(e.which[t], e.others[t], e.y[t], e.w ? e.w[t] : 1.0);
  }
  return e.n;
}

template <class T> struct Reserve {
  const Lists<T>* lists;
  i64 n;
  const i64* more;
};

// Give each of the first n lists space for so many more entries; there is memory for that.
template <class T> i64 reserve_lists(const Reserve<T>& r) {
  for (i64 i = 0; i < r.n; ++i) {
    i64 needed = r.lists->length[i] + r.more[i];
    if (needed > r.lists->space[i]) r.lists->lengthen(i, needed);
  }
  return r.n;
}

template <class T> struct Removal {
  i64 row;
  const Lists<T> *by_row, *by_column;
};

// Empty a row's list, and take its entries out of those of columns; return how many there were.
template <class T> i64 remove_row(const Removal<T>& r) {
  const i64 first = r.by_row->start[r.row], n = r.by_row->length[r.row];
  for (i64 k = first; k < first + n; ++k) r.by_column->remove(r.by_row->other[k], r.row);
  r.by_row->length[r.row] = 0;
  return n;
}

template <class T> struct Weighing {
  const Lists<T>* lists;
  i64 n;
  double* out;
};

// Write the weight of all entries of n lists.
template <class T> i64 total_weight(const Weighing<T>& call) {
  const Lists<T>& lists = *call.lists;
  double total = 0.0;
  for (i64 i = 0; i < call.n; ++i)
    for (i64 k = lists.start[i]; k < lists.start[i] + lists.length[i]; ++k) total += lists.weight_at(k);
  *call.out = total;
  return call.n;
}
