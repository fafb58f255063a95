// What kernels say to warpgroups.cpp: wgmma, and what stands around it.
#pragma once

enum lw_operand_type { lw_f16, lw_bf16, lw_tf32, lw_e4m3, lw_e5m2, lw_s8, lw_u8 };

struct lw_wgmma_form {
    int n;
    lw_operand_type a, b;
    int a_is_transposed, b_is_transposed;
};

struct lw_matrix_descriptor {
    const void *start;
    unsigned leading, stride, swizzle;
};

extern "C" {
void lw_begin_wgmma(
    int line, lw_wgmma_form form, void *accumulators, const void *registers, lw_matrix_descriptor a, lw_matrix_descriptor b,
    int adds);
void lw_meet_warpgroup(int line, const char *what, int count);
void lw_wgmma_wait_but(int line, int count);
}

static inline lw_matrix_descriptor lw_matrix(const void *start, unsigned leading, unsigned stride, unsigned swizzle) {
    return lw_matrix_descriptor{start, leading, stride, swizzle};
}
static inline void lw_wgmma(
    int line, lw_wgmma_form form, void *accumulators, lw_matrix_descriptor a, lw_matrix_descriptor b, int adds) {
    lw_begin_wgmma(line, form, accumulators, nullptr, a, b, adds);
}
static inline void lw_wgmma(
    int line, lw_wgmma_form form, void *accumulators, const void *registers, lw_matrix_descriptor b, int adds) {
    lw_begin_wgmma(line, form, accumulators, registers, lw_matrix_descriptor{nullptr, 0, 0, 0}, b, adds);
}
