/* The loops a C programmer would write: peers of our kernels, and the yardsticks of the roofline.

   Built twice at run time by `c_loops.py`: with -fopenmp for all cores, with -fopenmp-simd for one. Below CUTOFF
   elements a loop stays on the calling thread, where waking others would cost more than they save. ("if (parallel : …)":
   without the word, the condition would switch vectors off too.) */

#include <stddef.h>
#include <string.h>

#define CUTOFF 65536
#define TILE 32

typedef long size;

/* ---- element-wise: one pass, the same streams as ours ---- */

void c_copy(const float *restrict x, float *restrict y, size n) {
#pragma omp parallel for simd if (parallel : n >= CUTOFF)
    for (size i = 0; i < n; i++) y[i] = x[i];
}

void c_memcpy(const float *restrict x, float *restrict y, size n) {
    size parts = n >= CUTOFF ? 64 : 1;
#pragma omp parallel for if (parallel : n >= CUTOFF) schedule(static)
    for (size p = 0; p < parts; p++) {
        size lo = n * p / parts, hi = n * (p + 1) / parts;
        memcpy(y + lo, x + lo, (size_t)(hi - lo) * sizeof *x);
    }
}

void c_add(const float *restrict x, const float *restrict y, float *restrict z, size n) {
#pragma omp parallel for simd if (parallel : n >= CUTOFF)
    for (size i = 0; i < n; i++) z[i] = x[i] + y[i];
}

void c_axpy(const float *restrict x, const float *restrict y, float *restrict z, size n) {
#pragma omp parallel for simd if (parallel : n >= CUTOFF)
    for (size i = 0; i < n; i++) z[i] = 1.5f * x[i] + y[i];
}

void c_relu_add(const float *restrict x, const float *restrict y, float *restrict z, size n) {
#pragma omp parallel for simd if (parallel : n >= CUTOFF)
    for (size i = 0; i < n; i++) {
        float sum = x[i] + y[i];
        z[i] = sum > 0 ? sum : 0;
    }
}

void c_add_row(const float *restrict x, const float *restrict row, float *restrict z, size rows, size columns) {
#pragma omp parallel for if (parallel : rows * columns >= CUTOFF)
    for (size i = 0; i < rows; i++) {
#pragma omp simd
        for (size j = 0; j < columns; j++) z[i * columns + j] = x[i * columns + j] + row[j];
    }
}

void c_add_column(const float *restrict x, const float *restrict column, float *restrict z, size rows, size columns) {
#pragma omp parallel for if (parallel : rows * columns >= CUTOFF)
    for (size i = 0; i < rows; i++) {
        float c = column[i];
#pragma omp simd
        for (size j = 0; j < columns; j++) z[i * columns + j] = x[i * columns + j] + c;
    }
}

void c_cast(const float *restrict x, double *restrict y, size n) {
#pragma omp parallel for simd if (parallel : n >= CUTOFF)
    for (size i = 0; i < n; i++) y[i] = x[i];
}

/* ---- transpose: `outer` times (a, b, inner) -> (b, a, inner), in tiles when single elements move ---- */

void c_transpose(const float *restrict x, float *restrict y, size outer, size a, size b, size inner) {
    if (inner > 1) {
#pragma omp parallel for collapse(2) if (parallel : outer * a * b * inner >= CUTOFF)
        for (size o = 0; o < outer; o++)
            for (size j = 0; j < b; j++)
                for (size i = 0; i < a; i++)
                    memcpy(y + ((o * b + j) * a + i) * inner, x + ((o * a + i) * b + j) * inner,
                           (size_t)inner * sizeof *x);
        return;
    }
#pragma omp parallel for collapse(2) if (parallel : outer * a * b >= CUTOFF)
    for (size o = 0; o < outer; o++)
        for (size j0 = 0; j0 < b; j0 += TILE)
            for (size i0 = 0; i0 < a; i0 += TILE) {
                size j1 = j0 + TILE < b ? j0 + TILE : b, i1 = i0 + TILE < a ? i0 + TILE : a;
                for (size j = j0; j < j1; j++)
                    for (size i = i0; i < i1; i++) y[(o * b + j) * a + i] = x[(o * a + i) * b + j];
            }
}

/* (a, b, c) -> (c, b, a) */
void c_transpose_210(const float *restrict x, float *restrict y, size a, size b, size c) {
#pragma omp parallel for collapse(2) if (parallel : a * b * c >= CUTOFF)
    for (size k0 = 0; k0 < c; k0 += TILE)
        for (size j = 0; j < b; j++)
            for (size i0 = 0; i0 < a; i0 += TILE) {
                size k1 = k0 + TILE < c ? k0 + TILE : c, i1 = i0 + TILE < a ? i0 + TILE : a;
                for (size k = k0; k < k1; k++)
                    for (size i = i0; i < i1; i++) y[(k * b + j) * a + i] = x[(i * b + j) * c + k];
            }
}

/* ---- reductions: one read of the data, many accumulators ---- */

/* LANES accumulators hide the latency of the operation, which a plain loop would wait for. */
#define LANES 128
#define REDUCE(name, start, combine)                                                                                 \
    static float name(const float *restrict x, size n) {                                                             \
        float s[LANES], total = start;                                                                               \
        size i = 0;                                                                                                  \
        for (size j = 0; j < LANES; j++) s[j] = total;                                                               \
        for (; i + LANES <= n; i += LANES) {                                                                         \
            for (size j = 0; j < LANES; j++) {                                                                       \
                float a = s[j], b = x[i + j];                                                                        \
                s[j] = combine;                                                                                      \
            }                                                                                                        \
        }                                                                                                            \
        for (; i < n; i++) {                                                                                         \
            float a = total, b = x[i];                                                                               \
            total = combine;                                                                                         \
        }                                                                                                            \
        for (size j = 0; j < LANES; j++) {                                                                           \
            float a = total, b = s[j];                                                                               \
            total = combine;                                                                                         \
        }                                                                                                            \
        return total;                                                                                                \
    }

REDUCE(sum_of, 0, a + b)
REDUCE(max_of, x[0], a > b ? a : b)
REDUCE(min_of, x[0], a < b ? a : b)

/* kind: 0 sum, 1 max, 2 min, 3 mean */
static float reduced(const float *x, size n, size kind) {
    if (kind == 1) return max_of(x, n);
    if (kind == 2) return min_of(x, n);
    return kind == 3 ? sum_of(x, n) / (float)n : sum_of(x, n);
}

void c_reduce_rows(const float *restrict x, float *restrict y, size rows, size columns, size kind) {
#pragma omp parallel for if (parallel : rows * columns >= CUTOFF)
    for (size i = 0; i < rows; i++) y[i] = reduced(x + i * columns, columns, kind);
}

void c_reduce_all(const float *restrict x, float *restrict y, size n, size kind) {
    enum { PARTS = 64 };
    float part[PARTS];
    size parts = n >= CUTOFF ? PARTS : 1;
#pragma omp parallel for if (parallel : n >= CUTOFF) schedule(static)
    for (size p = 0; p < parts; p++) {
        size lo = n * p / parts, hi = n * (p + 1) / parts;
        part[p] = reduced(x + lo, hi - lo, kind == 3 ? 0 : kind);
    }
    y[0] = kind == 3 ? sum_of(part, parts) / (float)n : reduced(part, parts, kind);
}

void c_reduce_columns(const float *restrict x, float *restrict y, size rows, size columns, size kind) {
    enum { STRIP = 512 };
#pragma omp parallel for if (parallel : rows * columns >= CUTOFF) schedule(static)
    for (size j0 = 0; j0 < columns; j0 += STRIP) {
        size wide = j0 + STRIP < columns ? STRIP : columns - j0;
        float s[STRIP];
        for (size j = 0; j < wide; j++) s[j] = x[j0 + j];
        for (size i = 1; i < rows; i++) {
            const float *row = x + i * columns + j0;
            if (kind == 1) {
#pragma omp simd
                for (size j = 0; j < wide; j++) s[j] = row[j] > s[j] ? row[j] : s[j];
            } else if (kind == 2) {
#pragma omp simd
                for (size j = 0; j < wide; j++) s[j] = row[j] < s[j] ? row[j] : s[j];
            } else {
#pragma omp simd
                for (size j = 0; j < wide; j++) s[j] += row[j];
            }
        }
        for (size j = 0; j < wide; j++) y[j0 + j] = kind == 3 ? s[j] / (float)rows : s[j];
    }
}

/* ---- yardsticks: run by one Python thread per core, so they hold no parallel loops themselves ---- */

#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif

#define PEAK(name, type)                                                                                             \
    typedef type name##_vector __attribute__((vector_size(BYTES)));                                                  \
    /* 12 chains of multiply-adds in registers: their latency is hidden, nothing is loaded. */                       \
    double name(size steps) {                                                                                        \
        name##_vector a0 = {0}, a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0, a8 = a0, a9 = a0,     \
                      a10 = a0, a11 = a0, x = a0 + (type)0.5, y = a0 + (type)1.0;                                    \
        for (size i = 0; i < steps; i++) {                                                                           \
            a0 = a0 * x + y, a1 = a1 * x + y, a2 = a2 * x + y, a3 = a3 * x + y, a4 = a4 * x + y, a5 = a5 * x + y;    \
            a6 = a6 * x + y, a7 = a7 * x + y, a8 = a8 * x + y, a9 = a9 * x + y, a10 = a10 * x + y;                   \
            a11 = a11 * x + y;                                                                                       \
            __asm__ volatile("" : "+" REGISTER(x), "+" REGISTER(y));                                                 \
            __asm__ volatile("" : "+" REGISTER(a0), "+" REGISTER(a1), "+" REGISTER(a2), "+" REGISTER(a3),            \
                             "+" REGISTER(a4), "+" REGISTER(a5));                                                    \
            __asm__ volatile("" : "+" REGISTER(a6), "+" REGISTER(a7), "+" REGISTER(a8), "+" REGISTER(a9),            \
                             "+" REGISTER(a10), "+" REGISTER(a11));                                                  \
        }                                                                                                            \
        a0 = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;                                            \
        double total = 0;                                                                                            \
        for (size i = 0; i < (size)(BYTES / sizeof(type)); i++) total += a0[i];                                      \
        return total;                                                                                                \
    }                                                                                                                \
    /* Operations of one step. */                                                                                    \
    size name##_flops(void) { return 2 * 12 * (BYTES / sizeof(type)); }

/* Equal chains would be merged into one; the empty statements make each value unknown to the compiler. */
#if defined(__x86_64__)
#define REGISTER(v) "v"(v)
#else
#define REGISTER(v) "w"(v)
#endif

PEAK(peak_float, float)
PEAK(peak_double, double)

/* `times` passes over n floats. */
double stream_read(const float *restrict x, size n, size times) {
    double total = 0;
    for (size t = 0; t < times; t++) {
        total += sum_of(x, n);
        __asm__ volatile("" : "+r"(x) : : "memory");
    }
    return total;
}

void stream_copy(const float *restrict x, float *restrict y, size n, size times) {
    for (size t = 0; t < times; t++) {
#pragma omp simd
        for (size i = 0; i < n; i++) y[i] = x[i];
        __asm__ volatile("" ::: "memory");
    }
}

void stream_add(const float *restrict x, const float *restrict y, float *restrict z, size n, size times) {
    for (size t = 0; t < times; t++) {
#pragma omp simd
        for (size i = 0; i < n; i++) z[i] = x[i] + y[i];
        __asm__ volatile("" ::: "memory");
    }
}
