"""Kernels as `specialize_warps` and `use_warpgroups` derive them from programs in the order of their text.

`ROLES`: a warp loads rows, two warps add, three warps store; `GEMM`: a warp loads tiles, a warpgroup multiplies them in
two tiles of 32 columns one after the other, a warp stores the results.
"""

from __future__ import annotations

from typing import Final

ROLES: Final = """
@T.prim_func
def roles(A: T.Buffer((10, 128), "float32"), B: T.Buffer((10, 128), "float32")):
    bx = T.launch_thread("blockIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 192)
    P = T.decl_buffer((2,), scope="shared")
    barriers = T.decl_buffer((8,), "uint64", scope="shared")
    S = T.decl_buffer((2, 128), scope="shared")
    M = T.decl_buffer((2, 1), scope="shared")
    if tx == 0:
        for slot in range(2):
            T.mbarrier_init(T.address_of(barriers[slot]), 32)
        for slot in range(2):
            T.mbarrier_init(T.address_of(barriers[slot + 2]), 160)
        for slot in range(2):
            T.mbarrier_init(T.address_of(barriers[slot + 4]), 64)
        for slot in range(2):
            T.mbarrier_init(T.address_of(barriers[slot + 6]), 96)
    T.tvm_storage_sync("shared")
    if tx < 32:
        T.attr(T.StringImm("load"), "warp_role", 32)
        for i in range(5):
            T.mbarrier_wait(T.address_of(barriers[i % 2 + 2]), 1 - i // 2 % 2)
            T.bulk_copy_async(
                T.address_of(S[i % 2, 0]), T.address_of(A[i * 2 + bx, 0]), 512, T.address_of(barriers[i % 2]))
            T.mbarrier_arrive(T.address_of(barriers[i % 2]))
    elif tx < 96:
        T.attr(T.StringImm("add"), "warp_role", 64)
        for i in range(5):
            s = T.decl_buffer((1,), scope="local")
            T.mbarrier_wait(T.address_of(barriers[i % 2]), i // 2 % 2)
            s[0] = S[i % 2, tx - 32] + S[i % 2, 64 + (tx - 32)]
            T.mbarrier_arrive(T.address_of(barriers[i % 2 + 2]))
            for k in T.unroll(5):
                s[0] = s[0] + T.tvm_warp_shuffle_xor(T.uint32(4294967295), s[0], T.shift_left(1, k), 32, 32)
            T.role_barrier(2, 64)
            if (tx - 32) % 32 == 0:
                P[(tx - 32) // 32] = s[0]
            T.mbarrier_wait(T.address_of(barriers[i % 2 + 6]), 1 - i // 2 % 2)
            T.role_barrier(2, 64)
            if tx - 32 == 0:
                M[i % 2, 0] = P[0] + P[1]
            T.mbarrier_arrive(T.address_of(barriers[i % 2 + 4]))
    else:
        T.attr(T.StringImm("store"), "warp_role", 96)
        for i in range(5):
            T.mbarrier_wait(T.address_of(barriers[i % 2]), i // 2 % 2)
            T.mbarrier_wait(T.address_of(barriers[i % 2 + 4]), i // 2 % 2)
            for k in range(2):
                if k * 96 + (tx - 96) < 128:
                    B[i * 2 + bx, k * 96 + (tx - 96)] = S[i % 2, 127 - (k * 96 + (tx - 96))] - M[i % 2, 0]
            T.mbarrier_arrive(T.address_of(barriers[i % 2 + 6]))
            T.mbarrier_arrive(T.address_of(barriers[i % 2 + 2]))
"""

GEMM: Final = """
@T.prim_func
def gemm(A: T.Buffer((64, 384), "float16"), B: T.Buffer((64, 384), "float16"), D: T.Buffer((64, 64), "float16")):
    D_map = T.tensor_map(D.data, "float16", 32, 2, 64, 64, 64, 1, 64, 16)
    A_map = T.tensor_map(A.data, "float16", 128, 2, 64, 384, 384, 1, 64, 64)
    B_map = T.tensor_map(B.data, "float16", 128, 2, 64, 384, 384, 1, 32, 64)
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 192)
    C = T.decl_buffer((16,), scope="local")
    barriers = T.decl_buffer((6,), "uint64", scope="shared")
    BS = T.decl_buffer((3, 32, 64), "float16", scope="shared")
    AS = T.decl_buffer((3, 64, 64), "float16", scope="shared")
    results = T.decl_buffer((4,), "uint64", scope="shared")
    R = T.decl_buffer((2, 64, 16), "float16", scope="shared")
    if tx == 0:
        for slot in range(3):
            T.mbarrier_init(T.address_of(barriers[slot]), 32)
        for slot in range(3):
            T.mbarrier_init(T.address_of(barriers[slot + 3]), 128)
        for slot in range(2):
            T.mbarrier_init(T.address_of(results[slot]), 128)
        for slot in range(2):
            T.mbarrier_init(T.address_of(results[slot + 2]), 32)
    T.tvm_storage_sync("shared")
    if tx < 128:
        T.attr(T.StringImm("mma"), "warp_role", 128)
        turn = T.decl_buffer((2,), "int32", scope="local")
        turn[0] = 0
        turn[1] = 0
        full = T.decl_buffer((2,), "int32", scope="local")
        full[0] = 0
        full[1] = 0
        for t in range(2):
            for j in range(16):
                C[j] = T.float32(0)
            for k in range(6):
                slot: T.int32 = turn[0]
                phase: T.int32 = turn[1]
                T.mbarrier_wait(T.address_of(barriers[slot]), phase)
                T.wgmma_fence()
                for s in T.unroll(4):
                    T.wgmma(T.address_of(C[0]), 32, "float16", T.address_of(AS[slot, 0, s * 16]), 128, 0, 1024, 0,
                            "float16", T.address_of(BS[slot, 0, s * 16]), 128, 0, 1024, 0, 1)
                T.wgmma_commit()
                T.wgmma_wait(1)
                if k > 0:
                    T.mbarrier_arrive(T.address_of(barriers[T.if_then_else(slot == 0, 2, slot - 1) + 3]))
                turn[0] = T.if_then_else(slot == 2, 0, slot + 1)
                turn[1] = T.if_then_else(slot == 2, 1 - phase, phase)
            T.wgmma_wait(0, T.address_of(C[0]), 16)
            T.mbarrier_arrive(T.address_of(barriers[T.if_then_else(turn[0] == 0, 2, turn[0] - 1) + 3]))
            for half in T.unroll(2):
                slot: T.int32 = full[0]
                phase: T.int32 = full[1]
                T.mbarrier_wait(T.address_of(results[slot + 2]), 1 - phase)
                for j, h, e in T.grid(2, 2, 2):
                    c: T.int32 = T.bitwise_xor(j, tx // 16 % 2) * 8 + tx % 4 * 2 + e
                    R[slot, tx // 32 * 16 + h * 8 + tx // 4 % 8, c] = T.Cast("float16", C[half * 8 + j * 4 + h * 2 + e])
                T.fence_proxy_async()
                T.mbarrier_arrive(T.address_of(results[slot]))
                full[0] = T.if_then_else(slot == 1, 0, slot + 1)
                full[1] = T.if_then_else(slot == 1, 1 - phase, phase)
    elif tx < 160:
        T.attr(T.StringImm("load"), "warp_role", 32)
        turn = T.decl_buffer((2,), "int32", scope="local")
        turn[0] = 0
        turn[1] = 0
        for t, k in T.grid(2, 6):
            slot: T.int32 = turn[0]
            phase: T.int32 = turn[1]
            T.mbarrier_wait(T.address_of(barriers[slot + 3]), 1 - phase)
            T.tensor_copy_async(T.address_of(AS[slot, 0, 0]), A_map, T.address_of(barriers[slot]), 0, k * 64)
            T.tensor_copy_async(T.address_of(BS[slot, 0, 0]), B_map, T.address_of(barriers[slot]), t * 32, k * 64)
            T.mbarrier_arrive(T.address_of(barriers[slot]))
            turn[0] = T.if_then_else(slot == 2, 0, slot + 1)
            turn[1] = T.if_then_else(slot == 2, 1 - phase, phase)
    else:
        T.attr(T.StringImm("store"), "warp_role", 32)
        turn = T.decl_buffer((2,), "int32", scope="local")
        turn[0] = 0
        turn[1] = 0
        for t, half in T.grid(2, 2):
            slot: T.int32 = turn[0]
            phase: T.int32 = turn[1]
            T.mbarrier_wait(T.address_of(results[slot]), phase)
            if tx == 160:
                T.tensor_store_async(D_map, T.address_of(R[slot, 0, 0]), 0, t * 32 + half * 16)
                T.bulk_commit_group()
                T.bulk_wait_group_read(0)
            T.mbarrier_arrive(T.address_of(results[slot + 2]))
            turn[0] = T.if_then_else(slot == 1, 0, slot + 1)
            turn[1] = T.if_then_else(slot == 1, 1 - phase, phase)
"""
