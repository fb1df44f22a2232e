// Clicks, an event at a time: a matrix of low rank in which every entry counts, and what to recommend from it.
//
// An entry that was not observed is a 0 of weight alpha. So the normal equations of a row on the factors Q of
// the columns are
//
//     (alpha Q'Q + sum over the row's entries of (c - alpha) q q' + penalty I) p = sum of c y q.
//
// Q'Q, the gram, changes with every column that is solved, by two products of a vector with itself: an entry
// that was not observed costs nothing. Lists have each entry once; events that repeat add to its weight c.
//
// What is recommended are scores: the product of a row's taste with the factors of a column, plus a multiple of
// the share that the column has of the latest events. A taste is that of all of a row's entries, or of its
// latest. What counts how much is a tournament: candidates, the arms, rank events before these are learned.
#pragma once
#include "contest.hpp"
#include "equations.hpp"
#include "lists.hpp"

namespace clicks {

// A list of so many entries has running sums of its equations, to which an entry is added with the factors that
// the other side has at that moment. Beside them they are made anew from the beginning, a piece with every
// regression, and replace the old ones when they are complete. So the time of an event is bounded, and no factor
// in a sum is older than two rounds through the list.
constexpr i64 LONG = 1024;
// So many entries of the sums made anew with each regression, or so many times those that came since the last one.
constexpr i64 PIECE = 64, FASTER = 4;
// Which sums there are of a list: of c q q', with c y q and the weight of the list beside it, and of q q'.
constexpr i64 WEIGHTED = 0, PLAIN = 1, KINDS = 2;
// Factors of columns begin with numbers of about this size; those of rows are 0.
constexpr double START = 0.1;

// After so many events some more rows and columns are solved, all in turn: one of each, or as many as it takes to
// come to all of them while the events double, but no more than MOST_TURNS.
constexpr i64 EVERY = 8, MOST_TURNS = 2 * EVERY;

// What somebody did just now may say most of what comes next: in a present taste an entry counts this much for
// each later one, and only the latest do ...
constexpr double FRESH = 0.7;
constexpr i64 LATEST = 16;
// ... and so may what all do: the share that a column has of the last LATELY events, or so. Counts are made
// smaller after PERIODS times as many, by powers of e.
constexpr double LATELY = 1000.0, PERIODS = 8.0;
// How much of a score is the present taste, the rest being that of all entries, and what a share is worth, which
// is never nothing: it ranks what is new. Each pair is an arm of the tournament.
constexpr double PRESENT[] = {0.0, 0.5, 1.0}, WORTH[] = {0.01, 2.5, 5.0, 10.0};
constexpr i64 WORTHS = 4, ARMS = 3 * WORTHS;
// An arm wins if the event's column beats this share of the columns, of which so many are drawn at most, and the
// wins of the last SEASON that were judged, or so, count. A lead is clear if it is CLEAR times its root.
constexpr double DRAWN = 0.1, SEASON = 5000.0, CLEAR = 1.0;
constexpr i64 MOST_DRAWN = 1000;

template <class T> struct Side {  // all rows, or all columns
  const Lists<T>* lists;
  T* factors;    // (n, width), 0 beyond the rank
  double* gram;  // (width, width): the sum of f f' over all factors f; tiles on and above the diagonal
  i64* number;   // (n,): which sums are those of a list, counted from 1; 0 if it is not long
  double* sums;  // (capacity, 2, KINDS, width, width): those in use, and those made anew
  i64* added;    // (capacity, 2): how many entries of the list are in each
  i64* used;     // one number: how many lists have sums
  i64 capacity;

  // Let list i have sums, if it is so long; false if there is no memory for them.
  bool has_sums(i64 i, i64 length) const {
    if (length < LONG || number[i] > 0) return true;
    if (used[0] == capacity) return false;
    number[i] = ++used[0];
    return true;
  }
};

enum Known { WEIGHT, NEWEST, LASTING };  // of all observations; of a new one; as how many new ones a long past counts
enum Turns { EVENTS, ROW, COLUMN, LAST_ROW, LAST_COLUMN };  // how many came; solved last; the largest that came

template <class T> struct Model {
  i64 rank;
  double unobserved;    // what an entry weighs that was not observed, if a new observation weighs 1
  const double* ridge;  // a, b and c of the penalty
  double* known;        // numbers, as above
  i64* turns;           // as above
  double* wins;         // of each arm
  T* trend;             // counts of columns, of which later ones are larger
  u8* taken;            // of each column: 0, but while a row's are marked
  const Side<T> *rows, *columns;
};

struct Work {  // memory for one regression
  void *left, *right;  // panels
  double *normal, *scaled, *solution, *current;
};

struct Whole {  // what a regression knows of the matrix as a whole
  i64 n_rows, n_columns;  // up to the last that an event had
  double weight, one, zero;  // of all observations; of a new one; of an entry that was not observed
};

template <class T> Whole whole_of(const Model<T>& m) {
  double one = m.known[NEWEST];
  return {m.turns[LAST_ROW] + 1, m.turns[LAST_COLUMN] + 1, m.known[WEIGHT], one, m.unobserved * one};
}

// The penalty of a row, or column, of weight n, which has so many entries at most: with a ridge (a, b, c), if a
// new observation weighs 1, a + b (n + zeros) + c noise. A matrix of independent events has a spectral norm of
// about the root of what a row has, plus the root of what a column has: so much is noise. Of a row that is its
// own n, and the mean of all columns.
inline double penalty_of(const double* ridge, double n, i64 n_other, const Whole& whole) {
  double noise = sqrt(whole.one * n) + sqrt(whole.one * whole.weight / double(most(n_other, i64(1))));
  return ridge[0] * whole.one + ridge[1] * (n + whole.zero * double(n_other)) + ridge[2] * noise;
}

// Equations -------------------------------------------------------------------------------------------------

// Add n entries to equations, of weights c - less (plain: 1, and no targets), and beside them, in the last row
// and column that a rank has, the sum of c.
template <class T>
void add_entries(double* normal, i64 rank, const Lists<T>& lists, i64 first, i64 n, const T* factors, double less,
                 bool plain, const Work& work) {
  const i64 width = width_of(rank);
  Panel<T> panel{normal, static_cast<T*>(work.left), static_cast<T*>(work.right), rank, width};
  double total = 0.0;
  for (i64 k = first; k < first + n; ++k) {
    T c = lists.weight[k];
    const T w = plain ? T(1) : T(double(c) - less), target = plain ? T(0) : c * lists.value[k];
    panel.add(factors + i64(lists.other[k]) * width, w, target);
    total += double(c);
  }
  panel.finish();
  if (!plain) normal[(rank + 1) * width + rank + 1] += total;
}

// Let ``work.normal`` be the equations of list i, without the zeros everywhere.
template <class T>
void equations(const Side<T>& own, i64 i, const T* factors, i64 rank, double less, bool anew, const Work& work) {
  const Lists<T>& lists = *own.lists;
  const i64 start = lists.start[i], n = lists.length[i], at = own.number[i] - 1, size = square(width_of(rank));
  if (at < 0) {
    fill(work.normal, size, 0.0);
    add_entries(work.normal, rank, lists, start, n, factors, less, false, work);
    return;
  }
  double *in_use = own.sums + at * 2 * KINDS * size, *made_anew = in_use + KINDS * size;
  i64 *added = own.added + 2 * at, had = added[0], made = added[1];
  auto add_both = [&](double* both, i64 from, i64 some) {
    add_entries(both + WEIGHTED * size, rank, lists, start + from, some, factors, 0.0, false, work);
    add_entries(both + PLAIN * size, rank, lists, start + from, some, factors, 0.0, true, work);
  };
  if (anew || n <= LONG * (n - had)) {
    fill(in_use, 2 * KINDS * size, 0.0);
    add_both(in_use, 0, n);
    made = 0;
  } else {
    add_both(in_use, had, n - had);
    i64 more = least(most(PIECE, FASTER * (n - had)), n - made);
    add_both(made_anew, made, more);
    made += more;
    if (made == n) {
      copy(made_anew, KINDS * size, in_use);
      fill(made_anew, KINDS * size, 0.0);
      made = 0;
    }
  }
  added[0] = n;
  added[1] = made;
  for (i64 b = 0; b < size; b += EIGHT)
    store(work.normal + b, load(in_use + WEIGHTED * size + b) - less * load(in_use + PLAIN * size + b));
}

// Solve ``work.normal`` for all entries of the matrix; what is known of them has weight n.
inline void solve_equations(i64 rank, const double* gram, const double* ridge, double n, i64 n_other,
                            const Whole& whole, const Work& work) {
  const i64 width = width_of(rank);
  const double penalty = penalty_of(ridge, n, n_other, whole);
  for (i64 p = 0; p < rank; ++p) {
    double* row = work.normal + p * width;
    for (i64 b = p / EIGHT * EIGHT; b < width; b += EIGHT)
      store(row + b, load(row + b) + whole.zero * load(gram + p * width + b));
    row[p] += penalty;
  }
  eliminate(work.normal, work.scaled, rank, width, penalty);
  substitute(work.normal, rank, width, work.solution);
}

// Solve the regression of list i on the other side's factors. Whoever calls it keeps the gram of its own side.
template <class T>
void solve(const Model<T>& m, bool of_rows, i64 i, const Whole& whole, bool anew, const Work& work) {
  const Side<T>&own = of_rows ? *m.rows : *m.columns, &other = of_rows ? *m.columns : *m.rows;
  const i64 width = width_of(m.rank), n_other = of_rows ? whole.n_columns : whole.n_rows;
  equations(own, i, other.factors, m.rank, whole.zero, anew, work);
  const double n = work.normal[(m.rank + 1) * width + m.rank + 1];
  solve_equations(m.rank, other.gram, m.ridge, n, n_other, whole, work);
  T* to = own.factors + i * width;
  for (i64 p = 0; p < m.rank; ++p) to[p] = T(work.solution[p]);
}

// Add the product of a vector with itself to a gram, or take it off.
template <class T> void add_product(double* gram, i64 rank, const T* x, double sign) {
  const i64 width = width_of(rank);
  for (i64 p = 0; p < rank; ++p)
    for (i64 b = p / EIGHT * EIGHT; b < width; b += EIGHT) {
      double* to = gram + p * width + b;
      store(to, load(to) + (sign * double(x[p])) * in_double<T>(load(x + b)));
    }
}

// Solve row or column i, and keep the gram of its side up to date.
template <class T> void solve_one(const Model<T>& m, bool of_rows, i64 i, const Whole& whole, const Work& work) {
  const Side<T>& own = of_rows ? *m.rows : *m.columns;
  const T* its = own.factors + i * width_of(m.rank);
  add_product(own.gram, m.rank, its, -1.0);
  solve(m, of_rows, i, whole, false, work);
  add_product(own.gram, m.rank, its, 1.0);
}

// Fill some factors of a column that has its first entry with small numbers: a hash of column and factor.
template <class T> void start_factors(T* factors, i64 width, i64 j, i64 from, i64 to) {
  for (i64 p = from; p < to; ++p) {
    u64 x = ((u64(j) << 20) + u64(p + 1)) * 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    x ^= x >> 31;
    double share = double(x >> 11) / 9007199254740992.0;
    factors[j * width + p] = T(START * (2.0 * share - 1.0) * sqrt(3.0));
  }
}

// Tastes and scores -----------------------------------------------------------------------------------------

// Let ``work.solution`` be what somebody likes who has had these columns, the latest last: the regression of a
// row of the latest entries, in which each counts ``fresh`` times as much as the next.
template <class T, class W>
void find_taste(const Model<T>& m, const u32* columns, const T* values, const W* weights, i64 n, double fresh,
                i64 latest, const Whole& whole, const Work& work) {
  const i64 width = width_of(m.rank);
  fill(work.normal, square(width), 0.0);
  Panel<double> panel{work.normal, static_cast<double*>(work.left), static_cast<double*>(work.right), m.rank, width};
  double total = 0.0, age = 1.0;
  for (i64 k = n; k-- > most(n - latest, i64(0));) {
    double c = age * double(weights[k]), y = values ? double(values[k]) : 1.0;
    panel.add(m.columns->factors + i64(columns[k]) * width, most(c - whole.zero, 0.0), c * y);
    total += c;
    age *= fresh;
  }
  panel.finish();
  solve_equations(m.rank, m.columns->gram, m.ridge, total, whole.n_columns, whole, work);
}

// Let ``work.solution`` be what row i likes now.
template <class T> void find_present(const Model<T>& m, i64 i, const Whole& whole, const Work& work) {
  const Lists<T>& lists = *m.rows->lists;
  const i64 start = lists.start[i];
  find_taste(m, lists.other + start, lists.value + start, lists.weight + start, lists.length[i], FRESH, LATEST,
             whole, work);
}

struct Arm { double present, worth; };

inline Contest of_arms(double* wins) { return {wins, ARMS, SEASON, CLEAR}; }

// The share of the present taste, and the worth of the trend, of the arm that leads; the first is all entries.
inline Arm arm_in_use(double* wins) {
  const i64 best = of_arms(wins).leader();
  return {PRESENT[best / WORTHS], WORTH[best % WORTHS]};
}

// Let ``work.solution`` be the taste of row i: of all its entries, and its present one.
template <class T>
void find_mixed(const Model<T>& m, i64 i, const Whole& whole, double share, const Work& work) {
  const i64 width = width_of(m.rank);
  if (share > 0.0) find_present(m, i, whole, work);
  else fill(work.solution, width, 0.0);
  for (i64 b = 0; b < width; b += EIGHT) {
    Eight<double> all = in_double<T>(load(m.rows->factors + i * width + b));
    store(work.solution + b, share * load(work.solution + b) + (1.0 - share) * all);
  }
}

// What a column's count is multiplied with after so many events: its share then.
inline double trend_of(i64 event) { return exp(-fmod(double(event), PERIODS * LATELY) / LATELY) / LATELY; }

// Count an event of a column; earlier ones count less, by a factor of e after LATELY more. Later ones are counted
// with growing weights instead, and now and then all are made smaller.
template <class T> void note_trend(const Model<T>& m, i64 j) {
  const double phase = fmod(double(m.turns[EVENTS]), PERIODS * LATELY);
  if (phase == 0.0)
    for (i64 q = 0; q <= m.turns[LAST_COLUMN]; ++q) m.trend[q] *= T(exp(-PERIODS));
  m.trend[j] = T(double(m.trend[j]) + exp(phase / LATELY));
}

// The product of a taste with the factors of a column.
template <class T> double liking(i64 width, const double* taste, const T* factors) {
  Eight<double> sums = {};
  for (i64 b = 0; b < width; b += EIGHT) sums += load(taste + b) * in_double<T>(load(factors + b));
  return total<double>(sums);
}

// Mark the columns that row i has had.
template <class T> void mark_taken(const Model<T>& m, i64 i, u8 as) {
  const Lists<T>& lists = *m.rows->lists;
  for (i64 k = lists.start[i]; k < lists.start[i] + lists.length[i]; ++k) m.taken[lists.other[k]] = as;
}

// The place that column j has for row i, 1 the best, among the columns that have been seen and that the row has
// not had; nan if it is new to all, or not to i. Where scores are equal, the column with more entries comes first.
template <class T> double place_of(const Model<T>& m, i64 i, i64 j, const Whole& whole, const Work& work) {
  const i64 width = width_of(m.rank), *length = m.columns->lists->length;
  if (length[j] == 0) return NAN;
  mark_taken(m, i, 1);
  const bool had = m.taken[j];
  i64 better = 0;
  if (!had) {
    const Arm arm = arm_in_use(m.wins);
    find_mixed(m, i, whole, arm.present, work);
    const double trend = arm.worth * trend_of(m.turns[EVENTS]);
    auto score = [&](i64 q) {
      return liking(width, work.solution, m.columns->factors + q * width) + trend * double(m.trend[q]);
    };
    const double its = score(j);
    for (i64 q = 0; q < whole.n_columns; ++q) {
      if (length[q] == 0 || m.taken[q]) continue;
      double other = score(q);
      bool tie = other == its && (length[q] > length[j] || (length[q] == length[j] && j > q));
      better += other > its || tie;
    }
  }
  mark_taken(m, i, 0);
  return had ? NAN : double(1 + better);
}

// Which arms have column j before all that are drawn, as bits.
template <class T>
u32 winners(const Model<T>& m, i64 i, i64 j, i64 seed, const Whole& whole, const Work& work) {
  const i64 width = width_of(m.rank), *length = m.columns->lists->length;
  find_present(m, i, whole, work);
  const T* all = m.rows->factors + i * width;
  for (i64 b = 0; b < width; b += EIGHT) store(work.current + b, in_double<T>(load(all + b)));
  const T* factors = m.columns->factors;
  const double trend = trend_of(m.turns[EVENTS]);
  const double by_all = liking(width, work.current, factors + j * width);
  const double by_present = liking(width, work.solution, factors + j * width);
  u32 won = (1u << ARMS) - 1;
  u64 x = u64(seed);
  const i64 draws = least(most(i64(DRAWN * double(whole.n_columns)), i64(1)), MOST_DRAWN);
  for (i64 draw = 0; draw < draws && won; ++draw) {
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    const i64 q = i64((x >> 33) % u64(whole.n_columns));
    if (q == j || length[q] == 0 || m.taken[q]) continue;
    const double all_apart = by_all - liking(width, work.current, factors + q * width);
    const double present_apart = by_present - liking(width, work.solution, factors + q * width);
    const double trend_apart = trend * (double(m.trend[j]) - double(m.trend[q]));
    for (i64 arm = 0; arm < ARMS; ++arm) {
      const double share = PRESENT[arm / WORTHS], worth = WORTH[arm % WORTHS];
      if ((1.0 - share) * all_apart + share * present_apart + worth * trend_apart <= 0.0) won &= ~(1u << arm);
    }
  }
  return won;
}

// Let all arms rank an event's column, unless it is new or the row has had it, among some that ``seed`` draws.
template <class T> void judge(const Model<T>& m, i64 i, i64 j, i64 seed, const Whole& whole, const Work& work) {
  if (m.columns->lists->length[j] == 0) return;
  mark_taken(m, i, 1);
  if (!m.taken[j]) {
    const u32 won = winners(m, i, j, seed, whole, work);
    of_arms(m.wins).score(won);
  }
  mark_taken(m, i, 0);
}

// Events ----------------------------------------------------------------------------------------------------

// Observe an entry of a long list again, whose factors on the other side are x.
template <class T> void add_to_sums(const Side<T>& own, i64 i, i64 position, i64 rank, const T* x, double y, double w) {
  const i64 width = width_of(rank), size = square(width), at = own.number[i] - 1;
  if (at < 0) return;
  for (i64 which = 0; which < 2; ++which) {
    if (position >= own.added[2 * at + which]) continue;
    double* normal = own.sums + ((2 * at + which) * KINDS + WEIGHTED) * size;
    add_product(normal, rank, x, w);
    for (i64 p = 0; p < rank; ++p) normal[p * width + rank] += w * y * double(x[p]);
    normal[(rank + 1) * width + rank + 1] += w;
  }
}

// Add weight to an entry that is there.
template <class T> void observe_again(const Model<T>& m, i64 i, i64 j, double y, double w) {
  auto add = [&](const Side<T>& own, i64 k, i64 its_other, const Side<T>& other) {
    const i64 at = own.lists->position(k, its_other);
    if (at < 0) return;
    own.lists->add_weight(k, at, y, w);
    add_to_sums(own, k, at, m.rank, other.factors + its_other * width_of(m.rank), y, w);
  };
  add(*m.rows, i, j, *m.columns);
  add(*m.columns, j, i, *m.rows);
}

// Add an event to the lists of its row and its column, or to its entry that is there.
template <class T> void add_event(const Model<T>& m, i64 i, i64 j, double y, double w, bool again) {
  if (again) {
    observe_again(m, i, j, y, w);
  } else {
    const i64 width = width_of(m.rank);
    if (m.columns->lists->length[j] == 0) {
      start_factors(m.columns->factors, width, j, 0, m.rank);
      add_product(m.columns->gram, m.rank, m.columns->factors + j * width, 1.0);
    }
    m.rows->lists->append(i, j, y, w);
    m.columns->lists->append(j, i, y, w);
  }
  m.known[WEIGHT] += w;
  m.turns[EVENTS] += 1;
  m.turns[LAST_ROW] = most(m.turns[LAST_ROW], i);
  m.turns[LAST_COLUMN] = most(m.turns[LAST_COLUMN], j);
  note_trend(m, j);
}

// Solve some more rows and columns, those whose turn it is. Factors of the other side have changed since a row
// had its last observation. To solve all rows and columns whenever the events have doubled helps; in turns nobody
// waits for that. With 2 EVERY n / events of n after EVERY events, n ln 4 come while the events double.
template <class T> void solve_in_turn(const Model<T>& m, const Whole& whole, const Work& work) {
  const i64 events = double(m.turns[EVENTS]) < m.known[LASTING] ? m.turns[EVENTS] : i64(m.known[LASTING]);
  for (i64 side = 0; side < 2; ++side) {
    const bool of_rows = side == 0;
    i64& turn = m.turns[of_rows ? ROW : COLUMN];
    const i64 last = m.turns[of_rows ? LAST_ROW : LAST_COLUMN];
    const i64 now = clamped((2 * EVERY * (last + 1) + events - 1) / events, i64(1), MOST_TURNS);
    for (i64 k = 0; k < now; ++k) {
      turn = turn < last ? turn + 1 : 0;
      if ((of_rows ? m.rows : m.columns)->lists->length[turn] > 0) solve_one(m, of_rows, turn, whole, work);
    }
  }
}

template <class T> struct Events {
  i64 first, n;
  i64 solving, ranking;
  const i64 *rows, *cols;
  const double *y, *w;      // w is null if all weigh 1
  const double* units;      // what a new observation weighs when each comes; null: what it does
  double *out, *ranks;
  const Model<T>* model;
  const Work* work;
};

// Learn events one after another, from the first on; return how many are learned, fewer than n if lists or sums
// need more memory.
//
// Each is predicted into ``out`` before it is learned, and ranked, if that is wanted. Without ``solving`` they are
// added to the lists, and nothing else.
template <class T> i64 learn_clicks(const Events<T>& e) {
  const Model<T>& m = *e.model;
  const Lists<T>&by_row = *m.rows->lists, &by_column = *m.columns->lists;
  const i64 width = width_of(m.rank);
  for (i64 t = e.first; t < e.n; ++t) {
    const i64 i = e.rows[t], j = e.cols[t];
    const bool again = is_there(by_row, by_column, i, j);
    if (!again && !(by_row.has_space(i) && by_column.has_space(j) && m.rows->has_sums(i, by_row.length[i] + 1) &&
                    m.columns->has_sums(j, by_column.length[j] + 1)))
      return t;
    if (e.units) m.known[NEWEST] = e.units[t];
    if (e.solving) {
      const Whole whole = whole_of(m);
      e.out[t] = product(width, m.rows->factors + i * width, m.columns->factors + j * width);
      if (e.ranking) e.ranks[t] = place_of(m, i, j, whole, *e.work);
      if (!again) judge(m, i, j, m.turns[EVENTS], whole, *e.work);
    }
    add_event(m, i, j, e.y[t], e.w ? e.w[t] : 1.0, again);
    if (e.solving) {
      const Whole whole = whole_of(m);
      solve_one(m, true, i, whole, *e.work);
      solve_one(m, false, j, whole, *e.work);
      if (m.turns[EVENTS] % EVERY == 0) solve_in_turn(m, whole, *e.work);
    }
  }
  return e.n;
}

// Predict entries.
template <class T> i64 predict_clicks(const Events<T>& e) {
  const i64 width = width_of(e.model->rank);
  const T *rows = e.model->rows->factors, *columns = e.model->columns->factors;
  for (i64 t = e.first; t < e.n; ++t) e.out[t] = product(width, rows + e.rows[t] * width, columns + e.cols[t] * width);
  return e.n;
}

// Let all arms rank events, with what is known before all of them: none knows more.
template <class T> i64 judge_clicks(const Events<T>& e) {
  const Whole whole = whole_of(*e.model);
  for (i64 t = e.first; t < e.n; ++t)
    judge(*e.model, e.rows[t], e.cols[t], e.model->turns[EVENTS] + t, whole, *e.work);
  return e.n;
}

// Some rows or columns --------------------------------------------------------------------------------------

template <class T> struct Some {
  i64 first, n;
  const i64* which;
  i64 of_rows, anew;
  i64 from;       // the first factor that is started
  double sign;
  double* out;    // (n, rank)
  const Model<T>* model;
  const Work* work;
};

// Solve the regressions of rows, or of columns; the grams stay as they are.
template <class T> i64 solve_clicks(const Some<T>& s) {
  const Whole whole = whole_of(*s.model);
  const Lists<T>& lists = *(s.of_rows ? s.model->rows : s.model->columns)->lists;
  for (i64 k = s.first; k < s.n; ++k)
    if (lists.length[s.which[k]] > 0) solve(*s.model, s.of_rows, s.which[k], whole, s.anew, *s.work);
  return s.n;
}

// Add the products of the factors of rows, or of columns, to their gram, or take them off.
template <class T> i64 add_click_products(const Some<T>& s) {
  const Side<T>& own = s.of_rows ? *s.model->rows : *s.model->columns;
  const i64 rank = s.model->rank;
  for (i64 k = s.first; k < s.n; ++k) add_product(own.gram, rank, own.factors + s.which[k] * width_of(rank), s.sign);
  return s.n;
}

// Start factors of columns from one of them on.
template <class T> i64 start_click_factors(const Some<T>& s) {
  const i64 rank = s.model->rank;
  for (i64 k = s.first; k < s.n; ++k)
    start_factors(s.model->columns->factors, width_of(rank), s.which[k], s.from, rank);
  return s.n;
}

// Write the tastes of rows; 0 for one without entries.
template <class T> i64 click_tastes(const Some<T>& s) {
  const Model<T>& m = *s.model;
  const Whole whole = whole_of(m);
  const double share = arm_in_use(m.wins).present;
  for (i64 k = s.first; k < s.n; ++k) {
    if (m.rows->lists->length[s.which[k]] == 0) continue;
    find_mixed(m, s.which[k], whole, share, *s.work);
    copy(s.work->solution, m.rank, s.out + k * m.rank);
  }
  return s.n;
}

template <class T> struct History {
  i64 n;
  const u32* columns;
  const double* weights;
  double* out;
  const Model<T>* model;
  const Work* work;
};

// Write the taste of somebody who is not in the model, and has had these columns, the latest last.
template <class T> i64 click_taste_of(const History<T>& h) {
  const Model<T>& m = *h.model;
  const Whole whole = whole_of(m);
  const double share = arm_in_use(m.wins).present;
  const T* ones = nullptr;
  find_taste(m, h.columns, ones, h.weights, h.n, FRESH, LATEST, whole, *h.work);
  for (i64 p = 0; p < m.rank; ++p) h.out[p] = share * h.work->solution[p];
  find_taste(m, h.columns, ones, h.weights, h.n, 1.0, h.n, whole, *h.work);
  for (i64 p = 0; p < m.rank; ++p) h.out[p] += (1.0 - share) * h.work->solution[p];
  return h.n;
}

// Write the arm in use, and what the counts of columns are multiplied with to be shares of the latest events.
template <class T> i64 click_arm(const History<T>& h) {
  const Arm arm = arm_in_use(h.model->wins);
  h.out[0] = arm.present;
  h.out[1] = arm.worth;
  h.out[2] = trend_of(h.model->turns[EVENTS]);
  return ARMS;
}

}  // namespace clicks
