// The loops as Python calls them. Each takes one struct, is there for single and for double precision, and
// returns a number.
#include "lists.hpp"
#include "low_rank.hpp"
#include "processor.hpp"
#include "products.hpp"
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
#define SIZE_OF(Struct) \
  EXPORT i64 size_of_##Struct() { return sizeof(Struct<double>); }

EXPORT i64 processor_level() { return level_of_processor(); }

LOOP(append_all, Entries)
LOOP(remove_row, Removal)

SIZE_OF(Lists)
SIZE_OF(Entries)
SIZE_OF(Removal)

LOOP(factor_entries, FactorEntries)
SIZE_OF(FactorEntries)

LOOP(products, Products)
EXPORT i64 products_u8(const Products<u8>* call) { return products(*call); }
SIZE_OF(Products)

LOOP(extent_of_entries, Extent)
SIZE_OF(Extent)

LOOP(best_in_rows, BestInRows)
LOOP(best_of_products, BestOfProducts)
SIZE_OF(BestInRows)
SIZE_OF(BestOfProducts)
