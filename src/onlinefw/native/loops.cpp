// The loops as Python calls them. Each takes one struct, is there for single and for double precision, and
// returns a number.
#include "chains.hpp"
#include "clicks.hpp"
#include "lists.hpp"
#include "low_rank.hpp"
#include "processor.hpp"
#include "products.hpp"
#include "ridge.hpp"
#include "scans.hpp"
#include "top_n.hpp"

#if defined(_WIN32)
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif
#define LOOP(name, Call)                                                \
  EXPORT i64 name##_f32(const Call<float>* call) { return name(*call); } \
  EXPORT i64 name##_f64(const Call<double>* call) { return name(*call); }
// A test compares with the struct of this name in Python.
#define SIZE_OF(name, Struct) \
  EXPORT i64 size_of_##name() { return sizeof(Struct); }

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
LOOP(reserve_lists, Reserve)
LOOP(say_chains, ChainEntries)

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

SIZE_OF(Chains, Chains<double>)
SIZE_OF(ChainEntries, ChainEntries<double>)
SIZE_OF(ChainEvents, ChainEvents<double>)
SIZE_OF(ChainLists, ChainLists<double>)
SIZE_OF(ChainSide, ChainSide<double>)
SIZE_OF(ClickEvents, clicks::Events<double>)
SIZE_OF(ClickHistory, clicks::History<double>)
SIZE_OF(ClickModel, clicks::Model<double>)
SIZE_OF(ClickSide, clicks::Side<double>)
SIZE_OF(ClickSome, clicks::Some<double>)
SIZE_OF(ClickWork, clicks::Work)
SIZE_OF(Entries, Entries<double>)
SIZE_OF(Lists, Lists<double>)
SIZE_OF(Removal, Removal<double>)
SIZE_OF(Reserve, Reserve<double>)
SIZE_OF(RidgeRows, RidgeRows<double>)
SIZE_OF(Weighing, Weighing<double>)

LOOP(factor_entries, FactorEntries)
SIZE_OF(FactorEntries, FactorEntries<double>)

LOOP(products, Products)
EXPORT i64 products_u8(const Products<u8>* call) { return products(*call); }
SIZE_OF(Products, Products<double>)

LOOP(extent_of_entries, Extent)
SIZE_OF(Extent, Extent<double>)

LOOP(best_in_rows, BestInRows)
LOOP(best_of_products, BestOfProducts)
SIZE_OF(BestInRows, BestInRows<double>)
SIZE_OF(BestOfProducts, BestOfProducts<double>)
