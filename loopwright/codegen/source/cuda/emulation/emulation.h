// What a text of CUDA C++ means on a CPU: threads are fibers (emulation.cpp), shared memory is static, since blocks run
// one after the other. It includes nothing of the system's, as the text defines types of its own.
#pragma once

#include "warpgroups.h"

#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
// All shared memory lies in one section, which is filled before each block.
#define __shared__ static __attribute__((section("lw_shared"), aligned(16)))

struct lw_dim3 {
    unsigned x, y, z;
};
extern lw_dim3 threadIdx, blockIdx, blockDim, gridDim;  // of the thread that runs

struct __align__(8) float2 { float x, y; };
struct __align__(16) float4 { float x, y, z, w; };
struct __align__(16) double2 { double x, y; };
struct __align__(8) int2 { int x, y; };
struct __align__(16) int4 { int x, y, z, w; };
struct __align__(8) uint2 { unsigned x, y; };
struct __align__(16) uint4 { unsigned x, y, z, w; };

extern "C" {
void lw_block_barrier(int line);
void lw_warp_barrier(int line, unsigned mask);  // of the lanes in the mask
void *lw_lane(unsigned lane);  // 8 bytes of a lane of this thread's warp, for what it shows to the others
unsigned lw_own_lane(void);
int lw_is_running(unsigned lane);
unsigned lw_running_lanes(void);
[[noreturn]] void lw_trap(int line);
[[noreturn]] void lw_wrong_status(int line, const char *what);
void lw_mbarrier_init(int line, void *barrier, int arrivals);
void lw_mbarrier_arrive(int line, void *barrier);
void lw_mbarrier_wait(int line, void *barrier, int parity);
void lw_bulk_copy_async(int line, void *target, const void *source, long long bytes, void *barrier);
void lw_role_barrier(int line, int number, int threads);
void lw_cp_async(int line, void *target, const void *source, unsigned bytes, unsigned alignment);
void lw_commit_group(void);
void lw_wait_group_but(int count);
unsigned char *lw_dynamic_shared(void);
int lw_emulate(
    const char *kernel, void (*body)(void *), void *arguments, const long long *extents, unsigned long long dynamic_bytes,
    unsigned long long stack_bytes, int has_barriers, int uses_proxy);

void *memcpy(void *, const void *, __SIZE_TYPE__);
float sqrtf(float), floorf(float), ceilf(float), truncf(float), roundf(float), nearbyintf(float), fabsf(float);
float fmaf(float, float, float), copysignf(float, float), fmodf(float, float);
double sqrt(double), floor(double), ceil(double), trunc(double), round(double), nearbyint(double), fabs(double);
double fma(double, double, double), copysign(double, double), fmod(double, double);
double acos(double), acosh(double), asin(double), asinh(double), atan(double), atan2(double, double), atanh(double);
double cbrt(double), cos(double), cosh(double), erf(double), erfc(double), exp(double), exp2(double), expm1(double);
double hypot(double, double), ldexp(double, int), lgamma(double), log(double), log10(double), log1p(double);
double log2(double), nextafter(double, double), pow(double, double), rint(double), sin(double), sinh(double);
double tan(double), tanh(double), tgamma(double), exp10(double);
}

#define __syncthreads() lw_block_barrier(__LINE__)
#define __syncwarp() lw_warp_barrier(__LINE__, ~0u)
#define __trap() lw_trap(__LINE__)
#define signbit(x) (__builtin_signbit(x) != 0)

static inline float __int_as_float(int bits) {
    float x;
    __builtin_memcpy(&x, &bits, 4);
    return x;
}

// What a lane outside the mask, or one that has ended, gives is no value: all bits are set.
template <typename T>
static inline T lw_shuffle(unsigned mask, T value, unsigned from, int line) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    __builtin_memcpy(lw_lane(lw_own_lane()), &value, sizeof value);
    lw_warp_barrier(line, mask);
    const bool takes_part = mask >> from & 1 && lw_is_running(from);
    if (takes_part)
        __builtin_memcpy(&value, lw_lane(from), sizeof value);
    else
        __builtin_memset(&value, 0xff, sizeof value);
    lw_warp_barrier(line, mask);
    return value;
}
template <typename T>
static inline T lw_shfl(int line, unsigned mask, T value, int lane, int width = 32) {
    return lw_shuffle(mask, value, (lw_own_lane() & ~(width - 1)) | (lane & (width - 1)), line);
}
template <typename T>
static inline T lw_shfl_xor(int line, unsigned mask, T value, int lanes, int width = 32) {
    const unsigned own = lw_own_lane(), other = own ^ (unsigned)lanes;
    return lw_shuffle(mask, value, other > (own | (unsigned)(width - 1)) ? own : other, line);
}
template <typename T>
static inline T lw_shfl_down(int line, unsigned mask, T value, unsigned by, int width = 32) {
    const unsigned own = lw_own_lane(), other = own + by;
    return lw_shuffle(mask, value, other > (own | (unsigned)(width - 1)) ? own : other, line);
}
template <typename T>
static inline T lw_shfl_up(int line, unsigned mask, T value, unsigned by, int width = 32) {
    const unsigned own = lw_own_lane(), first = own & ~(unsigned)(width - 1);
    return lw_shuffle(mask, value, own < first + by ? own : own - by, line);
}
#define __shfl_sync(...) lw_shfl(__LINE__, __VA_ARGS__)
#define __shfl_xor_sync(...) lw_shfl_xor(__LINE__, __VA_ARGS__)
#define __shfl_down_sync(...) lw_shfl_down(__LINE__, __VA_ARGS__)
#define __shfl_up_sync(...) lw_shfl_up(__LINE__, __VA_ARGS__)
#define __activemask() lw_running_lanes()

// Four products of bytes, and a sum, modulo 2³².
static inline int __dp4a(int a, int b, int sum) {
    unsigned result = (unsigned)sum;
    for (int shift = 0; shift < 32; shift += 8)
        result += (unsigned)((signed char)(a >> shift) * (signed char)(b >> shift));
    return (int)result;
}
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
    for (int shift = 0; shift < 32; shift += 8)
        sum += (a >> shift & 255) * (b >> shift & 255);
    return sum;
}

// What blocks hand on. Blocks run one after the other: what is not there when somebody waits for it never comes.
static inline int lw_take_ticket(void *counter) { return (*(int *)counter)++; }
static inline void lw_publish(int line, void *status, unsigned long long word) {
    if (*(unsigned long long *)status != 0) lw_wrong_status(line, "publishes what has been published already");
    if (word == 0) lw_wrong_status(line, "publishes 0, which means that nothing is there");
    *(unsigned long long *)status = word;
}
static inline unsigned long long lw_await_published(int line, const void *status) {
    if (*(const unsigned long long *)status == 0) lw_wrong_status(line, "waits for what no earlier block publishes");
    return *(const unsigned long long *)status;
}
#define lw_publish(...) lw_publish(__LINE__, __VA_ARGS__)
#define lw_await_published(...) lw_await_published(__LINE__, __VA_ARGS__)

// Asynchronous copies: emulation.cpp.
#define lw_mbarrier_init(...) lw_mbarrier_init(__LINE__, __VA_ARGS__)
#define lw_mbarrier_arrive(...) lw_mbarrier_arrive(__LINE__, __VA_ARGS__)
#define lw_mbarrier_wait(...) lw_mbarrier_wait(__LINE__, __VA_ARGS__)
#define lw_bulk_copy_async(...) lw_bulk_copy_async(__LINE__, __VA_ARGS__)
#define lw_role_barrier(...) lw_role_barrier(__LINE__, __VA_ARGS__)

// Copies of boxes of tensors: tensor_copies.cpp.
#include "tensor_copies.h"

// Copies of groups: emulation.cpp. What lies anywhere is copied in pieces; it is there when the others are.
#define lw_cp_async_4(...) lw_cp_async(__LINE__, __VA_ARGS__, 4, 4)
#define lw_cp_async_8(...) lw_cp_async(__LINE__, __VA_ARGS__, 8, 8)
#define lw_cp_async_16(...) lw_cp_async(__LINE__, __VA_ARGS__, 16, 16)
#define lw_cp_async_4_anywhere(...) lw_cp_async(__LINE__, __VA_ARGS__, 4, 1)
#define lw_cp_async_8_anywhere(...) lw_cp_async(__LINE__, __VA_ARGS__, 8, 1)
#define lw_cp_async_16_anywhere(...) lw_cp_async(__LINE__, __VA_ARGS__, 16, 1)
template <int groups>
static inline void lw_wait_group() {
    lw_wait_group_but(groups);
}

// Warpgroups: warpgroups.cpp. The shapes of wgmma that a text has are defined before it.
#define lw_wgmma_fence() lw_meet_warpgroup(__LINE__, "wgmma_fence", 0)
#define lw_wgmma_commit() lw_meet_warpgroup(__LINE__, "wgmma_commit", 0)
#define lw_wgmma_wait lw_at<__LINE__>::wgmma_wait
#define lw_compute_now(x) ((void)(x))
#define lw_set_max_registers_inc lw_at<__LINE__>::set_max_registers
#define lw_set_max_registers_dec lw_at<__LINE__>::set_max_registers
#define lw_keep(registers)
#define lw_keep_words(registers)
template <int line>
struct lw_at {
    template <int groups>
    static void wgmma_wait() { lw_wgmma_wait_but(line, groups); }
    template <int count>
    static void set_max_registers() { lw_meet_warpgroup(line, "set_max_registers", count); }
};
