// The loops as Python calls them. Each takes one struct, is there for single and for double precision, and
// returns a number.
#include "chains.hpp"
#include "clicks.hpp"
#include "lists.hpp"
#include "processor.hpp"
#include "ridge.hpp"

#if defined(_WIN32)
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif
#define LOOP(name, Call)                                                \
  EXPORT i64 name##_f32(const Call<float>* call) { return name(*call); } \
  EXPORT i64 name##_f64(const Call<double>* call) { return name(*call); }

EXPORT i64 processor_level() { return level_of_processor(); }

LOOP(centre_of_chains, ChainEntries)
LOOP(learn_chains, ChainEvents)
LOOP(predict_chains, ChainEntries)
LOOP(renew_chains, ChainLists)
LOOP(solve_chains, ChainLists)
LOOP(sum_chains, ChainLists)
LOOP(append_all, Entries)
LOOP(solve_ridge, RidgeRows)
LOOP(remove_row, Removal)

LOOP(total_weight, Weighing)

LOOP(learn_clicks, clicks::Events)
LOOP(predict_clicks, clicks::Events)
LOOP(judge_clicks, clicks::Events)
LOOP(solve_clicks, clicks::Some)
LOOP(add_click_products, clicks::Some)
LOOP(start_click_factors, clicks::Some)
LOOP(click_tastes, clicks::Some)
LOOP(click_taste_of, clicks::History)
LOOP(click_arm, clicks::History)
