// Tensor copies on a CPU: what kernels call; tensor_copies.cpp does it. A box has up to five coordinates.
#pragma once
#include "tensor_map.h"

#define __grid_constant__

extern "C" {
void lw_tensor_copy(int line, void *target, const lw_tensor_map *map, void *barrier, const int *coordinates);
void lw_tensor_store(int line, const lw_tensor_map *map, const void *source, const int *coordinates);
void lw_bulk_commit_group(void);
void lw_wait_for_stores(int groups, int only_reads);
void lw_fence_proxy_async(void);
}

// The line is that of the caller.
#define LW_BOX(rank, parameters, ...)                                                                                   \
    template <typename T>                                                                                               \
    static inline void lw_tensor_copy_##rank##d(                                                                        \
        void *target, const lw_tensor_map *map, void *barrier, parameters, int line = __builtin_LINE()) {               \
        const int coordinates[5] = {__VA_ARGS__};                                                                       \
        lw_tensor_copy(line, target, map, barrier, coordinates);                                                        \
    }                                                                                                                   \
    template <typename T>                                                                                               \
    static inline void lw_tensor_store_##rank##d(                                                                       \
        const lw_tensor_map *map, const void *source, parameters, int line = __builtin_LINE()) {                        \
        const int coordinates[5] = {__VA_ARGS__};                                                                       \
        lw_tensor_store(line, map, source, coordinates);                                                                \
    }
#define LW_COMMA ,
LW_BOX(1, int a, a)
LW_BOX(2, int a LW_COMMA int b, a, b)
LW_BOX(3, int a LW_COMMA int b LW_COMMA int c, a, b, c)
LW_BOX(4, int a LW_COMMA int b LW_COMMA int c LW_COMMA int d, a, b, c, d)
LW_BOX(5, int a LW_COMMA int b LW_COMMA int c LW_COMMA int d LW_COMMA int e, a, b, c, d, e)
#undef LW_COMMA
#undef LW_BOX

template <int groups>
static inline void lw_bulk_wait_group() {
    lw_wait_for_stores(groups, 0);
}
template <int groups>
static inline void lw_bulk_wait_group_read() {
    lw_wait_for_stores(groups, 1);
}
