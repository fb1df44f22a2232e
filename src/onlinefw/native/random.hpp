// Random numbers from counters: the same (seed, stream, number) is always the same draw, so a run in pieces
// is the run at once, bit for bit, and threads need not share a generator.
#pragma once
#include "base.hpp"

// A number whose bits all depend on all bits of x (Stafford's thirteenth mixer, as in SplitMix64).
HERE u64 mixed(u64 x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// Write n standard normal numbers: the draw of this number in a stream of a seed (Box and Muller).
HERE void normals(u64 seed, u64 stream, u64 number, i64 n, double* to) {
  u64 key = mixed(mixed(seed ^ (stream << 48)) ^ number);
  for (i64 k = 0; k < n; k += 2) {
    u64 bits = mixed(key + u64(k));
    float u = (float(u32(bits >> 32)) + 0.5f) * 2.3283064e-10f, turn = float(u32(bits)) * 1.4629180792671596e-09f;
    float radius = sqrtf(-2.0f * logf(least(u, 0.99999994f)));
    to[k] = double(radius * cosf(turn));
    if (k + 1 < n) to[k + 1] = double(radius * sinf(turn));
  }
}
