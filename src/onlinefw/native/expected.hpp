// What is expected of a row or a column before its values: it follows from which others it has rated. CUDA
// kernels include this file, too.
#pragma once
#include "base.hpp"

// What may be expected of a factor or a bias, and what they can be at all.
constexpr double MOST_EXPECTED = 2.0, LARGEST_FACTOR = 1000.0;
constexpr double MOST_RATED = 100.0, OF_RATED = 0.375, MORE_RATED = 8.0, OF_COUNT = 0.2;

// f = (1, 0.375 sum x / sqrt(n + 8), 0.2 log(1 + n)): what a sum of others becomes, and a count.
HERE double of_sum(double sum, double n) {
  return clamped(OF_RATED / sqrt(n + MORE_RATED) * sum, -MOST_RATED, MOST_RATED);
}
HERE double of_count(double n) { return OF_COUNT * log1p(n); }
HERE double sensible(double x) { return clamped(x, -MOST_EXPECTED, MOST_EXPECTED); }

// Values and weights beyond all reason leave factors that are numbers.
HERE double tame(double x) { return x == x ? clamped(x, -LARGEST_FACTOR, LARGEST_FACTOR) : 0.0; }
