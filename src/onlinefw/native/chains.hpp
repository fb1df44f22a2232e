// Ratings, one after another: several Bayesian factor models ("chains"), sampled as ratings come.
//
// In each chain a row and a column have a bias and k factors, as a mean M and as a sample S. A rating is
// predicted by the mean over chains of b_i + b_j + <M_i, M_j>. It is learned by solving its row, then its
// column, on all that they have seen, against the *samples* of the other side:
//
//     A = Lambda + p sum x x',   A M = Lambda B'f + p sum t x,   S = M + A^(-1/2) noise,
//
// with x = (factors, 1) of the others, t what is left of the value, and p the precision of values. The prior
// mean B'f knows which others were rated: f = (1, 0.375 sum x / sqrt(n + 8), 0.2 log(1 + n)). B, Lambda and p
// are found from sums that fade, and renewed every 50 solutions.
//
// Below, "it" is a row or a column, "others" are those of the other side. Values are in units of their
// standard deviation. Other losses take the parabola at their minimum.
#pragma once
#include "equations.hpp"
#include "expected.hpp"
#include "lists.hpp"
#include "losses.hpp"
#include "random.hpp"

// Solve at every rating while there are fewer than so many, then ever more rarely.
constexpr i64 OFTEN = 64;
// A list longer than this is read piece by piece, so that no single rating takes long.
constexpr i64 LONG = 2048;
// Of prior knowledge: how many rows' worth it is, and the variances of factors and of biases.
constexpr double PRIOR_ROWS = 50.0, FACTOR_VARIANCE = 0.1, BIAS_VARIANCE = 0.2, PRIOR_RATINGS = 20.0;
// Where rows and columns drive each other on and on, what is known of all begins anew at this mean square.
constexpr double WIDEST = 2.0;
constexpr double B_RIDGE = 1.0, LARGEST_B = 5.0;
constexpr i64 RENEW = 50;
// A mood: two means of a row's latest errors, how they fade, what they are shrunken by, and a ridge.
constexpr double FADES[2] = {0.7, 0.93}, SHRINK[2] = {1.0, 3.0}, MOOD_RIDGE = 100.0, MOST_ERROR = 5.0;
// Other losses: parabolas at most, and how often a step is halved.
constexpr i64 STEPS = 4, HALVES = 5;
// Losses whose means have no bound predict at most so many times the largest value.
constexpr double MOST_OF_LARGEST = 5.0;

enum Moments { WEIGHT, MEAN, SQUARES, LOW, HIGH, NEWEST, MOMENTS };
enum Noise { NOISE_SQUARES, NOISE_NUMBER, PRECISION, NOISE };
enum MoodFit { H00, H01, H11, G0, G1, MOOD_FIT };

// One side: rows, or columns.
template <class T> struct ChainSide {
  const Lists<T>* lists;
  T *means, *samples;  // of each row, for each chain: factors, bias, zeros
  i64* place;          // which of the long lists it is, plus 1; 0 for a short one
  double* sums;        // of each long list: equations and features, read as far as ...
  i64* read;           // ... so many entries, for this chain
  i64 places;          // how many long lists there is memory for
  i64* used;           // and how many there are
  double* priors;      // of each chain, see Prior
  i64* solved;         // of each chain: how often it was solved, which numbers the random draws
  i64* seen;           // one number: how many rows have been rated
};

template <class T> struct Chains {
  i64 rank, count, biased, clipped, seed;
  i64 kind;
  double parameter;
  ChainSide<T>*rows, *columns;
  double *noise, *moments, *mood_fit;
  T* moods;  // of each row: for both means the sum and the weight of errors
  double fade;  // what is left of the fit of moods after a rating
  double* work;  // for solving
  T* panel;

  i64 width() const { return in_eights(features()); }
  i64 unknowns() const { return rank + 1; }
  i64 features() const { return rank + 3; }
  Loss loss() const { return Loss{kind, parameter}; }
  double unit() const {
    double variance = kind == SQUARE && moments[WEIGHT] > 0 ? moments[SQUARES] / moments[WEIGHT] : 0.0;
    return variance > 0.0 ? sqrt(variance) : 1.0;
  }
  // What is predicted, where no mean may be beyond a few times the largest value seen.
  double bounded(double z) const {
    if (!(moments[WEIGHT] > 0.0)) return z;
    if (kind == POISSON) return least(z, log(MOST_OF_LARGEST * (moments[HIGH] + 1.0)));
    if (kind == EXPONENTIAL) return least(z, -1.0 / (MOST_OF_LARGEST * moments[HIGH]));
    return z;
  }
  double centre() const {
    return biased ? loss().centre(moments[MEAN], moments[WEIGHT] / moments[NEWEST]) : 0.0;
  }
};

// What is known of all rows: S is about B'f, with precision Lambda. The others are sums that fade.
struct Prior {
  double *B, *Lambda, *FF, *FS, *SS, *number;
  Prior(double* at, i64 width) : B(at), Lambda(B + width * width), FF(Lambda + width * width), FS(FF + width * width), SS(FS + width * width), number(SS + width * width) {}
};
// How many numbers a prior has.
inline i64 prior_size(i64 width) { return 5 * width * width + 8; }
// How many the equations of a long list have: with the sum of the others' factors and biases beside them.
inline i64 equations_size(i64 width) { return width * width + width; }

template <class T> struct Workspace {
  double *normal, *sums, *A, *mean, *sample, *prior_mean, *f, *there;
  T *left, *right;
  Workspace(const Chains<T>& c) {
    const i64 w = c.width();
    normal = c.work, sums = normal + w * w, A = sums + w, mean = A + w * w, sample = mean + w, prior_mean = sample + w;
    f = prior_mean + w, there = f + w;
    left = c.panel, right = left + PANEL * w;
  }
};
inline i64 work_size(i64 width) { return 2 * width * width + 8 * width; }

template <class T> inline double dot(const T* a, const T* b, i64 n) {
  Eight<T> sum = {};
  i64 p = 0;
  for (; p + EIGHT <= n; p += EIGHT) sum += load(a + p) * load(b + p);
  double rest = 0.0;
  for (; p < n; ++p) rest += double(a[p]) * double(b[p]);
  return double(total<T>(sum)) + rest;
}

// Equations ------------------------------------------------------------------------------------------------

// Add some entries of a list to its equations (``to``), and what they say of which others were rated.
template <class T>
void add_entries(const Chains<T>& c, i64 chain, const ChainSide<T>& its, const ChainSide<T>& others, i64 i, i64 from, i64 until, const T* own, double* to, const Workspace<T>& w) {
  const i64 rank = c.rank, width = c.width(), start = its.lists->start[i];
  const u32* other = its.lists->other + start;
  const T *value = its.lists->value + start, *weight = its.lists->weight ? its.lists->weight + start : nullptr;
  const double mean = c.centre(), scale = 1.0 / c.unit();
  const T one_newest = T(1.0 / c.moments[NEWEST]);
  const bool squares = c.kind == SQUARE;
  double* sums = to + width * width;
  for (; from < until; from += PANEL) {
    const i64 n = least(until - from, PANEL);
    double biases = 0.0;
    for (i64 q = 0; q < n; ++q) {
      const T* x = others.samples + (i64(other[from + q]) * c.count + chain) * width;
      T *left = w.left + q * width, *right = w.right + q * width;
      for (i64 b = 0; b < width; b += EIGHT) store(left + b, load(x + b));
      const T bias = x[rank], heavy = weight ? weight[from + q] * one_newest : T(1);
      biases += double(heavy * bias);
      left[rank] = T(1);
      if (squares) {
        left[rank + 1] = T((double(value[from + q]) - mean) * scale) - bias;
        if (weight) for (i64 b = 0; b < width; b += EIGHT) store(right + b, heavy * load(left + b));
      } else {
        // The parabola that touches the loss at what is predicted now.
        const double mine = dot(own, x, rank) + double(own[rank]), z = mean + double(bias) + mine, y = double(value[from + q]);
        const Loss loss = c.loss();
        const double bend = clamped(loss.bend(z, y), 1e-6, 1e6);
        left[rank + 1] = T(mine - clamped(loss.slope(z, y) / bend, -1e6, 1e6));
        const T much = heavy * T(bend);
        for (i64 b = 0; b < width; b += EIGHT) store(right + b, much * load(left + b));
        for (i64 p = 0; p < rank; ++p) sums[p] += double(heavy * x[p]);
        sums[rank + 1] += double(heavy);
      }
    }
    sums[rank] += biases;
    add_panel(to, rank, width, w.left, squares && !weight ? w.left : w.right, n);
  }
  if (squares) {  // they are among the equations
    const double* ones = to + rank * width;
    for (i64 p = 0; p < rank; ++p) sums[p] = ones[p];
    sums[rank + 1] = ones[rank];
  }
}

// Solving --------------------------------------------------------------------------------------------------

// Let f say which others were rated, and prior_mean be B'f; with n = 0 that of somebody unknown.
inline void expect(const Prior& prior, i64 rank, i64 width, const double* sums, double* f, double* prior_mean) {
  const double n = sums[rank + 1];
  f[0] = 1.0;
  for (i64 p = 0; p <= rank; ++p) f[1 + p] = of_sum(sums[p], n);
  f[rank + 2] = of_count(n);
  fill(prior_mean, width, 0.0);
  for (i64 a = 0; a < rank + 3; ++a)
    for (i64 b = 0; b < width; b += EIGHT) store(prior_mean + b, load(prior_mean + b) + f[a] * load(prior.B + a * width + b));
  for (i64 p = 0; p <= rank; ++p) prior_mean[p] = sensible(prior_mean[p]);
}

// Let M and S (``mean`` and ``sample``) be those of equations that have been added up.
template <class T> void draw(const Chains<T>& c, const Prior& prior, double precision, u64 stream, u64 number, const Workspace<T>& w) {
  const i64 rank = c.rank, d = c.unknowns(), width = c.width();
  const double* target = w.normal + (rank + 1) * width;
  for (i64 a = 0; a < d; ++a) {
    const double *ones = w.normal + rank * width, *row = a < rank ? w.normal + a * width : ones, *of_prior = prior.Lambda + a * width;
    double* to = w.A + a * width;
    Eight<double> sum = {};
    for (i64 b = 0; b < width; b += EIGHT) {
      store(to + b, load(of_prior + b) + precision * load(row + b));
      sum += load(of_prior + b) * load(w.prior_mean + b);
    }
    if (a < rank) to[rank] = of_prior[rank] + precision * ones[a];
    for (i64 b = d; b < width; ++b) to[b] = 0.0;
    w.mean[a] = total<double>(sum) + precision * target[a];
  }
  normals(u64(c.seed), stream, number, d, w.sample);
  if (!c.biased) {
    for (i64 a = 0; a < rank; ++a) w.A[a * width + rank] = 0.0;
    w.A[rank * width + rank] = 1.0;
    w.mean[rank] = w.sample[rank] = 0.0;
  }
  factorise(w.A, d, width);
  solve_lower(w.A, d, width, w.mean);
  for (i64 a = 0; a < d; ++a) w.sample[a] += w.mean[a];
  solve_upper(w.A, d, width, w.mean);
  solve_upper(w.A, d, width, w.sample);
  for (i64 a = 0; a < d; ++a) w.mean[a] = tame(w.mean[a]), w.sample[a] = tame(w.sample[a]);
}

// Add a new sample to the sums behind the prior and the precision, in which older ones fade.
template <class T> void remember(const Chains<T>& c, const Prior& prior, double* noise, double keep, const Workspace<T>& w) {
  const i64 rank = c.rank, d = c.unknowns(), width = c.width();
  double* s = w.sample;
  for (i64 b = d; b < width; ++b) s[b] = 0.0;
  for (i64 b = rank + 3; b < width; ++b) w.f[b] = 0.0;
  for (i64 a = 0; a < c.features(); ++a)
    for (i64 b = 0; b < width; b += EIGHT) {
      double *ff = prior.FF + a * width + b, *fs = prior.FS + a * width + b;
      store(ff, keep * load(ff) + w.f[a] * load(w.f + b));
      store(fs, keep * load(fs) + w.f[a] * load(s + b));
    }
  for (i64 a = 0; a < d; ++a)
    for (i64 b = 0; b < width; b += EIGHT) {
      double* ss = prior.SS + a * width + b;
      store(ss, keep * load(ss) + s[a] * load(s + b));
    }
  prior.number[0] = keep * prior.number[0] + 1.0;
  if (c.kind != SQUARE) return;
  // sum (t - <s, x>)^2 = sum t^2 - 2 <s, sum t x> + s' sum x x' s, with upper triangles.
  const double *ones = w.normal + rank * width, *target = ones + width;
  double left = target[rank + 1];
  for (i64 a = 0; a < rank; ++a) {
    const double* row = w.normal + a * width;
    double sum = 0.5 * row[a] * s[a] + ones[a] * s[rank] - target[a];
    for (i64 b = a + 1; b < rank; ++b) sum += row[b] * s[b];
    left += 2.0 * s[a] * sum;
  }
  left += s[rank] * (ones[rank] * s[rank] - 2.0 * target[rank]);
  noise[NOISE_SQUARES] = keep * noise[NOISE_SQUARES] + most(left, 0.0);
  noise[NOISE_NUMBER] = keep * noise[NOISE_NUMBER] + ones[rank];
}

// The losses of a list, and how far x is from what was expected.
template <class T>
double cost(const Chains<T>& c, i64 chain, const ChainSide<T>& its, const ChainSide<T>& others, i64 i, const Prior& prior, const double* x, const Workspace<T>& w) {
  const i64 rank = c.rank, width = c.width(), start = its.lists->start[i], n = its.lists->length[i];
  const double mean = c.centre(), one = c.moments[NEWEST];
  const Loss loss = c.loss();
  double all = 0.0;
  for (i64 k = start; k < start + n; ++k) {
    const T* o = others.samples + (i64(its.lists->other[k]) * c.count + chain) * width;
    double z = mean + double(o[rank]) + x[rank];
    for (i64 p = 0; p < rank; ++p) z += x[p] * double(o[p]);
    all += its.lists->weight_at(k) / one * loss.value(z, double(its.lists->value[k]));
  }
  for (i64 a = 0; a <= rank; ++a)
    for (i64 b = 0; b <= rank; ++b) all += 0.5 * (x[a] - w.prior_mean[a]) * prior.Lambda[a * width + b] * (x[b] - w.prior_mean[b]);
  return all;
}

// Solve a list in one chain on all its entries: of another loss by a few parabolas, each no worse.
template <class T>
void solve_whole(const Chains<T>& c, i64 chain, const ChainSide<T>& its, const ChainSide<T>& others, i64 i, u64 stream, u64 number, const Workspace<T>& w) {
  const i64 width = c.width(), d = c.unknowns(), n = its.lists->length[i];
  const Prior prior(its.priors + chain * prior_size(width), width);
  const double precision = c.noise[chain * NOISE + PRECISION];
  T* own = its.means + (i * c.count + chain) * width;
  for (i64 step = 0; step < (c.kind == SQUARE ? 1 : STEPS); ++step) {
    fill(w.normal, equations_size(width), 0.0);
    add_entries(c, chain, its, others, i, 0, n, own, w.normal, w);
    expect(prior, c.rank, width, w.sums, w.f, w.prior_mean);
    draw(c, prior, precision, stream, number, w);
    if (c.kind != SQUARE) {
      for (i64 a = 0; a < d; ++a) w.there[a] = double(own[a]);
      const double before = cost(c, chain, its, others, i, prior, w.there, w);
      double after = cost(c, chain, its, others, i, prior, w.mean, w);
      for (i64 half = 0; !(after <= before) && half < HALVES; ++half) {
        for (i64 a = 0; a < d; ++a) {
          const double back = 0.5 * (w.mean[a] - w.there[a]);
          w.mean[a] -= back, w.sample[a] -= back;
        }
        after = cost(c, chain, its, others, i, prior, w.mean, w);
      }
      if (!(after <= before)) {
        for (i64 a = 0; a < d; ++a) w.sample[a] += w.there[a] - w.mean[a], w.mean[a] = w.there[a];
      }
      for (i64 a = 0; a < d; ++a) own[a] = T(w.mean[a]);
      if (!(before - after > 1e-3 * fabs(before))) break;
    }
  }
}

template <class T> void publish(const Chains<T>& c, i64 chain, const ChainSide<T>& its, i64 i, const Workspace<T>& w) {
  const i64 at = (i * c.count + chain) * c.width();
  for (i64 a = 0; a < c.unknowns(); ++a) {
    its.means[at + a] = T(w.mean[a]);
    its.samples[at + a] = T(w.sample[a]);
  }
}

// Find B, Lambda and the precision anew from the sums.
template <class T> void renew(const Chains<T>& c, i64 chain, const ChainSide<T>& its) {
  const i64 d = c.unknowns(), F = c.features(), width = c.width();
  const Workspace<T> w(c);
  Prior prior(its.priors + chain * prior_size(width), width);
  double *U = w.A, *R = w.normal, large = 0.0;
  copy(prior.FF, width * width, U);
  for (i64 a = 0; a < F; ++a) {
    U[a * width + a] += B_RIDGE;
    for (i64 b = F; b < width; ++b) U[a * width + b] = 0.0;
  }
  factorise(U, F, width);
  for (i64 p = 0; p < d; ++p) {  // a column of B
    for (i64 a = 0; a < F; ++a) w.f[a] = prior.FS[a * width + p];
    solve_lower(U, F, width, w.f);
    solve_upper(U, F, width, w.f);
    for (i64 a = 0; a < F; ++a) prior.B[a * width + p] = w.f[a], large = most(large, fabs(w.f[a]));
  }
  double wide = 0.0;
  for (i64 a = 0; a < d; ++a) wide = most(wide, prior.SS[a * width + a]);
  if (!(large < LARGEST_B) || !(wide < WIDEST * (prior.number[0] + 10.0))) {  // it ran away: begin anew
    fill(prior.B, prior_size(width), 0.0);
    for (i64 a = 0; a < d; ++a) prior.Lambda[a * width + a] = 1.0 / (a < c.rank ? FACTOR_VARIANCE : BIAS_VARIANCE);
    return;
  }
  // The scatter of samples about B'f: SS - FS'B - ridge B'B.
  fill(R, width * width, 0.0);
  const double number = prior.number[0] + PRIOR_ROWS;
  for (i64 a = 0; a < d; ++a)
    for (i64 b = a; b < d; ++b) {
      double sum = prior.SS[a * width + b];
      for (i64 f = 0; f < F; ++f) sum -= (prior.FS[f * width + a] + B_RIDGE * prior.B[f * width + a]) * prior.B[f * width + b];
      if (a == b) sum += PRIOR_ROWS * (a < c.rank ? FACTOR_VARIANCE : BIAS_VARIANCE) + 1e-3;
      R[a * width + b] = sum / number;
    }
  factorise(R, d, width);
  for (i64 p = 0; p < d; ++p) {
    for (i64 a = 0; a < d; ++a) w.mean[a] = a == p;
    solve_lower(R, d, width, w.mean);
    solve_upper(R, d, width, w.mean);
    for (i64 a = 0; a < d; ++a) prior.Lambda[p * width + a] = w.mean[a];
  }
  double* noise = c.noise + chain * NOISE;
  if (c.kind == SQUARE) noise[PRECISION] = (noise[NOISE_NUMBER] + PRIOR_RATINGS) / (noise[NOISE_SQUARES] + PRIOR_RATINGS);
}

// Whatever has been added up for a list in one chain becomes its M and S, and is remembered.
template <class T> void finish(const Chains<T>& c, i64 chain, const ChainSide<T>& its, i64 i, const Workspace<T>& w) {
  const i64 width = c.width();
  publish(c, chain, its, i, w);
  const Prior prior(its.priors + chain * prior_size(width), width);
  remember(c, prior, c.noise + chain * NOISE, 1.0 - 1.0 / (2.0 * double(its.seen[0]) + PRIOR_ROWS), w);
  its.solved[chain] += 1;
  if (its.solved[chain] % RENEW == 0) renew(c, chain, its);
}

// A list that is too long to be read at once is read a piece at each rating, for one chain after another.
template <class T> void solve_piece(const Chains<T>& c, const ChainSide<T>& its, const ChainSide<T>& others, i64 i, u64 side, const Workspace<T>& w) {
  const i64 width = c.width(), size = equations_size(width), at = its.place[i] - 1, n = its.lists->length[i];
  double* sums = its.sums + at * size;
  i64 *until = its.read + 2 * at, *chain = until + 1, left = OFTEN * c.count;
  while (left > 0) {
    const i64 more = least(left, n - *until);
    const T* own = its.means + (i * c.count + *chain) * width;
    add_entries(c, *chain, its, others, i, *until, *until + more, own, sums, w);
    *until += more;
    left -= more;
    if (*until < n) return;
    copy(sums, size, w.normal);
    const Prior prior(its.priors + *chain * prior_size(width), width);
    expect(prior, c.rank, width, w.sums, w.f, w.prior_mean);
    draw(c, prior, c.noise[*chain * NOISE + PRECISION], side * u64(c.count) + u64(*chain), u64(its.solved[*chain]), w);
    finish(c, *chain, its, i, w);
    fill(sums, size, 0.0);
    *until = 0;
    *chain = (*chain + 1) % c.count;
  }
}

// Solve a list after a rating, in the chains whose turn it is.
template <class T> void solve_in_turn(const Chains<T>& c, const ChainSide<T>& its, const ChainSide<T>& others, i64 i, u64 side, const Workspace<T>& w) {
  const i64 n = its.lists->length[i], period = 1 + n / OFTEN;
  if (its.place[i]) return solve_piece(c, its, others, i, side, w);
  for (i64 chain = 0; chain < c.count; ++chain) {
    if ((n + chain * period / c.count) % period) continue;
    solve_whole(c, chain, its, others, i, side * u64(c.count) + u64(chain), u64(its.solved[chain]), w);
    finish(c, chain, its, i, w);
  }
}

// Events ---------------------------------------------------------------------------------------------------

// What the chains say of an entry, in standard units and about the centre; of who is unknown the prior.
template <class T> double mean_of_chains(const Chains<T>& c, i64 i, i64 j, bool known_row, bool known_column, T* spare) {
  const i64 rank = c.rank, width = c.width();
  double sum = 0.0;
  for (i64 chain = 0; chain < c.count; ++chain) {
    const T *a = spare, *b = spare + width;
    if (known_row) a = c.rows->means + (i * c.count + chain) * width;
    else for (i64 p = 0; p <= rank; ++p) spare[p] = T(c.rows->priors[chain * prior_size(width) + p]);
    if (known_column) b = c.columns->means + (j * c.count + chain) * width;
    else for (i64 p = 0; p <= rank; ++p) spare[width + p] = T(c.columns->priors[chain * prior_size(width) + p]);
    sum += dot(a, b, rank) + double(a[rank]) + double(b[rank]);
  }
  return sum / double(c.count);
}

// The two means of a row's latest errors.
template <class T> void mood_of(const Chains<T>& c, i64 i, double* x) {
  for (i64 k = 0; k < 2; ++k) x[k] = double(c.moods[4 * i + k]) / (double(c.moods[4 * i + 2 + k]) + SHRINK[k]);
}

// What these add to a prediction, with weights that explain errors best.
inline double mood_worth(const double* fit, const double* x) {
  const double a = fit[H00] + MOOD_RIDGE, b = fit[H01], d = fit[H11] + MOOD_RIDGE, determinant = a * d - b * b;
  return ((d * fit[G0] - b * fit[G1]) * x[0] + (a * fit[G1] - b * fit[G0]) * x[1]) / determinant;
}

template <class T> void note_mood(const Chains<T>& c, i64 i, const double* x, double error) {
  double* fit = c.mood_fit;
  for (i64 k = 0; k < MOOD_FIT; ++k) fit[k] *= c.fade;
  fit[H00] += x[0] * x[0], fit[H01] += x[0] * x[1], fit[H11] += x[1] * x[1];
  fit[G0] += x[0] * error, fit[G1] += x[1] * error;
  for (i64 k = 0; k < 2; ++k) {
    T *sum = c.moods + 4 * i + k, *weight = sum + 2;
    *sum = T(FADES[k] * double(*sum) + error);
    *weight = T(FADES[k] * double(*weight) + 1.0);
  }
}

inline void note_value(double* moments, double y, double w) {
  moments[WEIGHT] += w;
  const double before = y - moments[MEAN];
  moments[MEAN] += before * w / moments[WEIGHT];
  moments[SQUARES] += w * before * (y - moments[MEAN]);
}

template <class T> struct ChainEvents {
  i64 first, n;
  const i64 *rows, *cols;
  const double *y, *w, *units;  // weights, and what an observation of weight 1 weighs; null: 1
  i64 solving;                  // whether each is learned before the next; else they are only added
  const double* said;           // what the chains say of each, if that is known; null: it is not
  const Chains<T>* chains;
  double* out;                  // what was predicted for each before it was learned
};

// Whether a list has a place if the next entry makes it long.
template <class T> bool has_place(const ChainSide<T>& its, i64 i) {
  if (its.lists->length[i] < LONG || its.place[i] > 0) return true;
  if (its.used[0] == its.places) return false;
  its.place[i] = ++its.used[0];
  return true;
}

// Predict and learn observations one after another; return how many, fewer than n if they need more memory.
template <class T> i64 learn_chains(const ChainEvents<T>& e) {
  const Chains<T>& c = *e.chains;
  const ChainSide<T>&rows = *c.rows, &columns = *c.columns;
  const Workspace<T> w(c);
  for (i64 t = e.first; t < e.n; ++t) {
    const i64 i = e.rows[t], j = e.cols[t];
    if (!rows.lists->has_space(i) || !columns.lists->has_space(j)) return t;
    if (!has_place(rows, i) || !has_place(columns, j)) return t;
    if (e.units) c.moments[NEWEST] = e.units[t];
    const double y = e.y[t], weight = (e.w ? e.w[t] : 1.0) * c.moments[NEWEST], unit = c.unit();
    const i64 n_row = rows.lists->length[i], n_column = columns.lists->length[j];
    const double said = e.said ? e.said[t] : mean_of_chains(c, i, j, n_row > 0, n_column > 0, w.left);
    double x[2], mood = 0.0;
    const double z = c.centre() + unit * said;
    if (c.kind == SQUARE) {
      mood_of(c, i, x);
      mood = unit * mood_worth(c.mood_fit, x);
    }
    const bool known = c.moments[WEIGHT] > 0.0;
    const double predicted = c.bounded(z + mood);
    e.out[t] = c.clipped && known ? clamped(predicted, c.moments[LOW], c.moments[HIGH]) : predicted;
    if (!(weight > 0.0)) continue;
    // The first few values may have nearly no deviation.
    if (c.kind == SQUARE && known) note_mood(c, i, x, clamped((y - z) / unit, -MOST_ERROR, MOST_ERROR));
    c.moments[LOW] = least(c.moments[LOW], y);
    c.moments[HIGH] = most(c.moments[HIGH], y);
    note_value(c.moments, y, weight);
    rows.seen[0] += n_row == 0;
    columns.seen[0] += n_column == 0;
    rows.lists->append(i, j, y - mood, weight);
    columns.lists->append(j, i, y - mood, weight);
    if (!e.solving) continue;
    solve_in_turn(c, rows, columns, i, 0, w);
    solve_in_turn(c, columns, rows, j, 1, w);
  }
  return e.n;
}

template <class T> struct ChainLists {
  i64 from, until;
  const i64 *which, *numbers;  // of their draws, counted from how often all were solved before
  i64 of_rows;
  const Chains<T>* chains;  // with a workspace of its own
  double *priors, *noise;   // what the solutions add to the sums behind these
};

// Solve these lists on all their entries, in all chains; their sums are added up and do not fade.
template <class T> i64 solve_chains(const ChainLists<T>& call) {
  const Chains<T>& c = *call.chains;
  const ChainSide<T>&its = call.of_rows ? *c.rows : *c.columns, &others = call.of_rows ? *c.columns : *c.rows;
  const Workspace<T> w(c);
  const u64 side = call.of_rows ? 0 : 1;
  const i64 width = c.width();
  for (i64 k = call.from; k < call.until; ++k) {
    const i64 i = call.which[k];
    if (its.lists->length[i] == 0) continue;
    for (i64 chain = 0; chain < c.count; ++chain) {
      solve_whole(c, chain, its, others, i, side * u64(c.count) + u64(chain), u64(its.solved[chain] + call.numbers[k]), w);
      publish(c, chain, its, i, w);
      remember(c, Prior(call.priors + chain * prior_size(width), width), call.noise + chain * NOISE, 1.0, w);
    }
  }
  return call.until - call.from;
}

// Add up what is behind priors for these lists, with their means and samples as they are.
template <class T> i64 sum_chains(const ChainLists<T>& call) {
  const Chains<T>& c = *call.chains;
  const ChainSide<T>&its = call.of_rows ? *c.rows : *c.columns, &others = call.of_rows ? *c.columns : *c.rows;
  const Workspace<T> w(c);
  const i64 width = c.width();
  for (i64 k = call.from; k < call.until; ++k)
    for (i64 chain = 0; chain < c.count; ++chain) {
      const i64 i = call.which[k], at = (i * c.count + chain) * width;
      const Prior prior(call.priors + chain * prior_size(width), width);
      fill(w.normal, equations_size(width), 0.0);
      add_entries(c, chain, its, others, i, 0, its.lists->length[i], its.means + at, w.normal, w);
      expect(prior, c.rank, width, w.sums, w.f, w.prior_mean);
      for (i64 a = 0; a < c.unknowns(); ++a) w.sample[a] = double(its.samples[at + a]);
      remember(c, prior, call.noise + chain * NOISE, 1.0, w);
    }
  return call.until - call.from;
}

// Find the priors of one side anew, in all chains.
template <class T> i64 renew_chains(const ChainLists<T>& call) {
  const Chains<T>& c = *call.chains;
  for (i64 chain = 0; chain < c.count; ++chain) renew(c, chain, call.of_rows ? *c.rows : *c.columns);
  return c.count;
}

template <class T> struct ChainEntries {
  i64 n;
  const i64 *rows, *cols;
  const Chains<T>* chains;
  double* out;
};

// Say what the chains say of entries, in standard units and about the centre.
template <class T> i64 say_chains(const ChainEntries<T>& e) {
  const Chains<T>& c = *e.chains;
  const Workspace<T> w(c);
  for (i64 t = 0; t < e.n; ++t) {
    const i64 i = e.rows[t], j = e.cols[t];
    e.out[t] = mean_of_chains(c, i, j, c.rows->lists->length[i] > 0, c.columns->lists->length[j] > 0, w.left);
  }
  return e.n;
}

// What is predicted for all.
template <class T> i64 centre_of_chains(const ChainEntries<T>& e) {
  e.out[0] = e.chains->centre();
  return 1;
}

// Predict entries of the matrix, with moods, and not clipped; rows and columns that are not in it are -1.
template <class T> i64 predict_chains(const ChainEntries<T>& e) {
  const Chains<T>& c = *e.chains;
  const Workspace<T> w(c);
  for (i64 t = 0; t < e.n; ++t) {
    const i64 i = e.rows[t], j = e.cols[t];
    const bool row = i >= 0 && c.rows->lists->length[i] > 0, column = j >= 0 && c.columns->lists->length[j] > 0;
    double said = mean_of_chains(c, i, j, row, column, w.left), x[2];
    if (c.kind == SQUARE && i >= 0) {
      mood_of(c, i, x);
      said += mood_worth(c.mood_fit, x);
    }
    e.out[t] = c.bounded(c.centre() + c.unit() * said);
  }
  return e.n;
}
