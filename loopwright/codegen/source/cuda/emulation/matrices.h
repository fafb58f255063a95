// Matrix instructions of a warp: mma.sync and ldmatrix. The 32 lanes meet at each call, show the others their
// operands, and meet again before a result is stored. Products are exact and summed in double, and rounded once: the
// tensor cores of a GPU group and round sums in their own way, which its manual leaves open.
#pragma once

extern "C" int lw_is_shared(const void *from, long long bytes);

static inline double lw_small_float(unsigned bits, int mantissa, int width, bool has_infinity) {
    const unsigned exponents = (1u << (width - 1 - mantissa)) - 1, bias = exponents / 2;
    const unsigned exponent = bits >> mantissa & exponents, fraction = bits & ((1u << mantissa) - 1);
    const double sign = bits >> (width - 1) & 1 ? -1.0 : 1.0;
    if (exponent == exponents && has_infinity) return fraction ? __builtin_nan("") : sign * __builtin_inf();
    if (exponent == exponents && fraction == (1u << mantissa) - 1) return __builtin_nan("");
    const double magnitude = exponent ? (double)(fraction | 1u << mantissa) : (double)fraction;
    return sign * ldexp(magnitude, (int)(exponent ? exponent : 1) - (int)bias - mantissa);
}

// The nearest float16, ties to even.
static inline unsigned short lw_nearest_f16(double x) {
    if (x != x) return 0x7fff;
    const unsigned short sign = signbit(x) ? 0x8000 : 0;
    const double size = fabs(x);
    if (size >= 65520.0) return sign | 0x7c00;
    if (size < 0x1p-14) return sign | (unsigned short)nearbyint(size * 0x1p24);
    int exponent = 0;
    const double half = __builtin_frexp(size, &exponent);  // 0.5 <= half < 1
    const unsigned rounded = (unsigned)nearbyint(half * 2048.0);  // a carry goes on into the exponent
    return (unsigned short)(sign | ((unsigned)(exponent + 13) * 1024u + rounded));
}

// The types of elements: what lies in memory, what products are computed in.
struct lw_of_f16 {
    typedef unsigned short Memory;
    typedef double Value;
    static Value of(Memory x) { return lw_small_float(x, 10, 16, true); }
    static Memory to(Value x) { return lw_nearest_f16(x); }
};
struct lw_of_bf16 {
    typedef unsigned short Memory;
    typedef double Value;
    static Value of(Memory x) { return lw_small_float(x, 7, 16, true); }
};
struct lw_of_e4m3 {
    typedef unsigned char Memory;
    typedef double Value;
    static Value of(Memory x) { return lw_small_float(x, 3, 8, false); }
};
struct lw_of_e5m2 {
    typedef unsigned char Memory;
    typedef double Value;
    static Value of(Memory x) { return lw_small_float(x, 2, 8, true); }
};
struct lw_of_tf32 {  // the upper 19 bits of a float
    typedef unsigned Memory;
    typedef double Value;
    static Value of(Memory x) {
        float value;
        x &= 0xffffe000u;
        __builtin_memcpy(&value, &x, 4);
        return value;
    }
};
template <typename T, typename V>
struct lw_plain {
    typedef T Memory;
    typedef V Value;
    static Value of(Memory x) { return x; }
    static Memory to(Value x) { return (Memory)x; }
};
typedef lw_plain<float, double> lw_of_f32;
typedef lw_plain<double, double> lw_of_f64;
typedef lw_plain<signed char, long long> lw_of_s8;
typedef lw_plain<unsigned char, long long> lw_of_u8;
struct lw_of_s32 {
    typedef int Memory;
    typedef long long Value;
    static Value of(Memory x) { return x; }
    static Memory to(Value x) { return (int)(unsigned)(unsigned long long)x; }
};
struct lw_of_s32_satfinite : lw_of_s32 {
    static Memory to(Value x) { return x > 2147483647 ? 2147483647 : x < -2147483647 - 1 ? -2147483647 - 1 : (int)x; }
};

// Shows the other lanes where what this one brings along is; they meet here.
static inline void lw_check_lanes(int line) {
    const char *const what = "comes to an instruction of all 32 lanes of a warp, and some are not there";
    if (lw_running_lanes() != ~0u) lw_wrong_status(line, what);
}
static inline void lw_show(int line, const void *what) {
    lw_check_lanes(line);
    __builtin_memcpy(lw_lane(lw_own_lane()), &what, sizeof what);
    lw_warp_barrier(line, ~0u);
    lw_check_lanes(line);  // who ended meanwhile has shown nothing
}
template <typename T>
static inline const T *lw_shown(unsigned lane) {
    const T *result;
    __builtin_memcpy(&result, lw_lane(lane), sizeof result);
    return result;
}
static inline void lw_check_words(int line, const void *of, unsigned multiple) {
    if ((__SIZE_TYPE__)of % multiple != 0) lw_wrong_status(line, "has a part of a matrix at an address that is no multiple of its words");
}

// Layouts of mma.sync. An operand lies in words of four bytes with `L` elements each: group lane / 4 has a row of A or a
// column of B, and its lanes the words of that one after the other.
template <int M, int K, class A, class B, class C, class D>
static inline void lw_mma(int line, void *c, const void *a, const void *b) {
    constexpr int L = sizeof(typename A::Memory) >= 4 ? 1 : 4 / sizeof(typename A::Memory);
    constexpr int H = M / 8, ITEMS_A = M * K / 32, ITEMS_B = K * 8 / 32, ITEMS_C = M * 8 / 32;
    struct Operands {
        typename A::Value a[ITEMS_A];
        typename B::Value b[ITEMS_B];
    } own;
    lw_check_words(line, a, sizeof(typename A::Memory) * L);
    lw_check_words(line, b, sizeof(typename B::Memory) * L);
    lw_check_words(line, c, sizeof(typename C::Memory) < 4 ? 4 : sizeof(typename C::Memory));
    for (int k = 0; k < ITEMS_A; ++k) own.a[k] = A::of(((const typename A::Memory *)a)[k]);
    for (int k = 0; k < ITEMS_B; ++k) own.b[k] = B::of(((const typename B::Memory *)b)[k]);
    lw_show(line, &own);
    const unsigned group = lw_own_lane() / 4, thread = lw_own_lane() % 4;
    typename D::Memory results[ITEMS_C];
    for (int item = 0; item < ITEMS_C; ++item) {
        const int half = item / 2 % H;
        const unsigned column = thread * 2 + item % 2;
        typename C::Value sum = C::of(((const typename C::Memory *)c)[item]);
        for (int word = 0; word < K / L; ++word) {
            const auto *from_a = lw_shown<Operands>(group * 4 + word % 4)->a + (half + H * (word / 4)) * L;
            const auto *from_b = lw_shown<Operands>(column * 4 + word % 4)->b + word / 4 * L;
            for (int k = 0; k < L; ++k) sum += from_a[k] * from_b[k];
        }
        results[item] = D::to(sum);
    }
    lw_warp_barrier(line, ~0u);
    __builtin_memcpy(c, results, sizeof results);
}

// m8n8k4 of float16: four products, each by eight lanes, q * 4 … q * 4 + 3 and those 16 after them. A lane has a row of A,
// and a row or column of B.
template <bool IS_ROW_A, bool IS_ROW_B, class C>
static inline void lw_mma_quads(int line, void *c, const void *a, const void *b) {
    struct Operands {
        double a[4], b[4];
    } own;
    for (int k = 0; k < 4; ++k) {
        own.a[k] = lw_of_f16::of(((const unsigned short *)a)[k]);
        own.b[k] = lw_of_f16::of(((const unsigned short *)b)[k]);
    }
    lw_show(line, &own);
    const unsigned lane = lw_own_lane(), quad = lane % 16 / 4, upper = lane / 16;
    typename C::Memory results[8];
    for (unsigned item = 0; item < 8; ++item) {
        const bool is_wide = sizeof(typename C::Memory) == 4;
        const unsigned row = (is_wide ? (lane & 1) + (item & 2) : lane % 4) + upper * 4;
        const unsigned column = is_wide ? (item & 4) + (lane & 2) + (item & 1) : item;
        double sum = C::of(((const typename C::Memory *)c)[item]);
        for (unsigned k = 0; k < 4; ++k) {
            const unsigned from_a = IS_ROW_A ? row : k + row / 4 * 4, from_b = IS_ROW_B ? k + column / 4 * 4 : column;
            const double left = lw_shown<Operands>(from_a % 4 + from_a / 4 * 16 + quad * 4)->a[IS_ROW_A ? k : row % 4];
            const double right = lw_shown<Operands>(from_b % 4 + from_b / 4 * 16 + quad * 4)->b[IS_ROW_B ? column % 4 : k];
            sum += left * right;
        }
        results[item] = C::to(sum);
    }
    lw_warp_barrier(line, ~0u);
    __builtin_memcpy(c, results, sizeof results);
}

// Up to four matrices of 8 × 8 elements of 16 bits. Lanes 8 k … 8 k + 7 have the addresses of the rows of matrix k.
static inline void lw_ldmatrix(int line, int count, bool is_transposed, void *target, const void *row) {
    const unsigned lane = lw_own_lane();
    lw_check_words(line, target, 4);
    if (lane < (unsigned)count * 8) {
        lw_check_words(line, row, 16);
        if (!lw_is_shared(row, 16)) lw_wrong_status(line, "loads a row of a matrix that is not all in shared memory");
    }
    lw_show(line, row);
    unsigned short results[8];
    for (int matrix = 0; matrix < count; ++matrix) {
        for (unsigned k = 0; k < 2; ++k) {
            const unsigned i = is_transposed ? lane % 4 * 2 + k : lane / 4, j = is_transposed ? lane / 4 : lane % 4 * 2 + k;
            results[matrix * 2 + k] = lw_shown<unsigned short>(matrix * 8 + i)[j];
        }
    }
    lw_warp_barrier(line, ~0u);
    __builtin_memcpy(target, results, (__SIZE_TYPE__)count * 4);
}
