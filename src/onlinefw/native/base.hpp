// Types, and the few functions that all loops share. Nothing here needs a C++ library, so that what is
// built depends on the C library alone. CUDA kernels include this file, too.
#pragma once
#ifndef __CUDACC_RTC__
#include <math.h>
#include <stdint.h>
#include <string.h>
#endif

#ifdef __CUDACC__
#define HERE __host__ __device__ inline
#else
#define HERE inline
#endif

using i64 = long long;
using u64 = unsigned long long;
using i32 = int;
using u32 = unsigned int;
using u8 = unsigned char;

template <class A> HERE A least(A a, A b) { return b < a ? b : a; }
template <class A> HERE A most(A a, A b) { return a < b ? b : a; }
template <class A> HERE A clamped(A x, A low, A high) { return least(most(x, low), high); }
template <class A> HERE A square(A x) { return x * x; }
template <class A> HERE void exchange(A& a, A& b) { A c = a; a = b; b = c; }
template <class A> HERE void fill(A* to, i64 n, A value) { for (i64 k = 0; k < n; ++k) to[k] = value; }
template <class A> HERE void copy(const A* from, i64 n, A* to) { for (i64 k = 0; k < n; ++k) to[k] = from[k]; }

#ifndef __CUDACC__
// Eight numbers that the processor treats as one; arrays need not be aligned.
constexpr i64 EIGHT = 8;
template <class T> struct Pack { typedef T type __attribute__((vector_size(EIGHT * sizeof(T)), aligned(sizeof(T)), may_alias)); };
template <class T> using Eight = typename Pack<T>::type;
template <class T> inline Eight<T> load(const T* from) { return *reinterpret_cast<const Eight<T>*>(from); }
template <class T> inline void store(T* to, Eight<T> x) { *reinterpret_cast<Eight<T>*>(to) = x; }
template <class T> inline Eight<double> in_double(Eight<T> x) { return __builtin_convertvector(x, Eight<double>); }
template <class T> inline T total(Eight<T> x) { return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7])); }
// The product of two rows of a width that is a multiple of eight.
template <class T> inline double product(i64 width, const T* a, const T* b) {
  Eight<T> sums = {};
  for (i64 k = 0; k < width; k += EIGHT) sums += load(a + k) * load(b + k);
  return double(total<T>(sums));
}
// The smallest multiple of eight that is not below n.
inline i64 in_eights(i64 n) { return (n + EIGHT - 1) / EIGHT * EIGHT; }
#endif
