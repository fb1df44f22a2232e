// A tournament of rules, scored by what each would have said before something was learned.
#pragma once
#include "base.hpp"

struct Contest {
  double* wins;   // of each rule; the first one is in use unless another is clearly ahead
  i64 count;
  double season;  // the wins of about so many latest trials count
  double clear;   // a lead is clear if it is so many times the root of the first one's wins

  // Score a trial: the bits of ``won`` are the rules that have won it.
  void score(u32 won) const {
    for (i64 k = 0; k < count; ++k) wins[k] += double((won >> k) & 1) - wins[k] / season;
  }

  // Which rule has won most; without a clear lead the first. Where an order says nothing, one of the others
  // would be ahead by chance.
  i64 leader() const {
    i64 best = 0;
    for (i64 k = 1; k < count; ++k) if (wins[k] > wins[best]) best = k;
    return wins[best] < wins[0] + clear * sqrt(wins[0]) ? 0 : best;
  }
};
