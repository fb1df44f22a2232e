// Which of the three libraries a processor can run.
#pragma once
#include "base.hpp"

#if defined(__x86_64__)
inline void ask_processor(u32 leaf, u32 sub, u32* a, u32* b, u32* c, u32* d) {
  __asm__ volatile("cpuid" : "=a"(*a), "=b"(*b), "=c"(*c), "=d"(*d) : "a"(leaf), "c"(sub));
}

// 0, 1, 2: x86-64, x86-64-v3, x86-64-v4. The system must keep the registers, too.
inline i64 level_of_processor() {
  u32 a, b, c, d, low, high;
  ask_processor(0, 0, &a, &b, &c, &d);
  if (a < 7) return 0;
  ask_processor(1, 0, &a, &b, &c, &d);
  const u32 of_v3 = 1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29;  // fma movbe osxsave avx f16c
  if ((c & of_v3) != of_v3) return 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & 6) != 6) return 0;
  ask_processor(0x80000001, 0, &a, &b, &c, &d);
  if (!(c & 1u << 5)) return 0;  // lzcnt
  ask_processor(7, 0, &a, &b, &c, &d);
  const u32 more = 1u << 3 | 1u << 5 | 1u << 8;  // bmi1 avx2 bmi2
  if ((b & more) != more) return 0;
  const u32 of_v4 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;  // avx512 f dq cd bw vl
  return (b & of_v4) == of_v4 && (low & 0xE0) == 0xE0 ? 2 : 1;
}
#else
inline i64 level_of_processor() { return 0; }
#endif
