// Enough of CUDA to run a kernel on a CPU, one block after the other.
//
// The threads of a block are coroutines of one thread: each runs until it waits for others. So a
// block's shared memory can be static, and a run repeats exactly.

#include <ucontext.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#define __global__
#define __device__ static inline
#define __shared__ static
#define __launch_bounds__(threads)

struct float4 { float x, y, z, w; };
struct double2 { double x, y; };
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline double2 make_double2(double x, double y) { return {x, y}; }
struct Index { unsigned x, y, z; };
static Index threadIdx, blockIdx, blockDim, gridDim;

using std::isinf;

static inline double __hiloint2double(int high, int low) {
    unsigned long long bits = ((unsigned long long)(unsigned)high << 32) | (unsigned)low;
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

namespace emulation {
struct Coroutine {
    ucontext_t context;
    std::vector<char> stack;
    Index index;
    bool done;
};
static std::vector<Coroutine> coroutines;
static ucontext_t scheduler;
static unsigned current;
static std::function<void()> body;

static void let_others_run() { swapcontext(&coroutines[current].context, &scheduler); }

struct Barrier {
    unsigned waiting = 0, passed = 0;
    void wait(unsigned members) {
        unsigned now = passed;
        if (++waiting == members) {
            waiting = 0;
            passed++;
        } else
            while (passed == now) let_others_run();
    }
};
static Barrier block;
static std::vector<Barrier> warps;
static std::vector<double> exchanged;

static void start() {
    body();
    coroutines[current].done = true;
    let_others_run();
}

static void run_block() {
    unsigned threads = blockDim.x * blockDim.y;
    coroutines.resize(threads);
    block = Barrier();
    warps.assign((threads + 31) / 32, Barrier());
    exchanged.assign(threads, 0.0);
    for (unsigned k = 0; k < threads; k++) {
        Coroutine& one = coroutines[k];
        one.stack.resize(1 << 16);
        one.done = false;
        one.index = {k % blockDim.x, k / blockDim.x, 0};
        getcontext(&one.context);
        one.context.uc_stack.ss_sp = one.stack.data();
        one.context.uc_stack.ss_size = one.stack.size();
        one.context.uc_link = nullptr;
        makecontext(&one.context, start, 0);
    }
    for (unsigned left = threads; left;) {
        left = 0;
        for (current = 0; current < threads; current++) {
            if (coroutines[current].done) continue;
            left++;
            threadIdx = coroutines[current].index;
            swapcontext(&scheduler, &coroutines[current].context);
        }
    }
}

template <class... A, size_t... I>
void call(void (*kernel)(A...), void** args, std::index_sequence<I...>) {
    kernel(*(A*)args[I]...);
}

template <class... A>
void run(void (*kernel)(A...), const unsigned* grid, const unsigned* threads, void** args) {
    gridDim = {grid[0], grid[1], 1};
    blockDim = {threads[0], threads[1], 1};
    body = [=] { call(kernel, args, std::index_sequence_for<A...>()); };
    for (unsigned y = 0; y < grid[1]; y++)
        for (unsigned x = 0; x < grid[0]; x++) {
            blockIdx = {x, y, 0};
            run_block();
        }
}
}  // namespace emulation

static inline void __syncthreads() {
    emulation::block.wait(blockDim.x * blockDim.y);
    threadIdx = emulation::coroutines[emulation::current].index;
}

static inline void __syncwarp() {
    emulation::warps[emulation::current / 32].wait(32);
    threadIdx = emulation::coroutines[emulation::current].index;
}

static inline double __shfl_xor_sync(unsigned, double value, int apart) {
    emulation::exchanged[emulation::current] = value;
    __syncwarp();
    double other = emulation::exchanged[emulation::current ^ apart];
    __syncwarp();
    return other;
}

static inline void atomicAdd(double* where, double value) { *where += value; }
