"""`tir.tensor_intrin.cuda`: names of the tensor intrinsics of NVIDIA GPUs, groups of them, and the layouts of tiles."""

from __future__ import annotations

from typing import Final, TypeVar

from loopwright.ir import Expr

Index = TypeVar("Index", int, Expr)

DP4A_INTRIN: Final = "dp4a"

# --- wmma ---------------------------------------------------------------------------------------------------------

WMMA_FILL_16x16x16_F32_INTRIN: Final = "wmma_fill_16x16x16_f32"
WMMA_FILL_16x16x16_F16_INTRIN: Final = "wmma_fill_16x16x16_f16"
WMMA_FILL_16x16x16_S32_INTRIN: Final = "wmma_fill_16x16x16_s32"
WMMA_LOAD_16x16x16_F16_A_INTRIN: Final = "wmma_load_16x16x16_f16_a_shared"
WMMA_LOAD_16x16x16_F16_B_INTRIN: Final = "wmma_load_16x16x16_f16_b_shared"
WMMA_LOAD_16x16x16_F16_A_TRANS_INTRIN: Final = "wmma_load_16x16x16_f16_a_trans_shared"
WMMA_LOAD_16x16x16_F16_B_TRANS_INTRIN: Final = "wmma_load_16x16x16_f16_b_trans_shared"
WMMA_LOAD_16x16x16_S8_A_INTRIN: Final = "wmma_load_16x16x16_s8_a_shared"
WMMA_LOAD_16x16x16_S8_B_INTRIN: Final = "wmma_load_16x16x16_s8_b_shared"
WMMA_LOAD_16x16x16_S8_A_TRANS_INTRIN: Final = "wmma_load_16x16x16_s8_a_trans_shared"
WMMA_LOAD_16x16x16_S8_B_TRANS_INTRIN: Final = "wmma_load_16x16x16_s8_b_trans_shared"
WMMA_LOAD_16x16x16_F16_A_DYN_INTRIN: Final = "wmma_load_16x16x16_f16_a_shared_dyn"
WMMA_LOAD_16x16x16_F16_B_DYN_INTRIN: Final = "wmma_load_16x16x16_f16_b_shared_dyn"
WMMA_LOAD_16x16x16_F16_A_TRANS_DYN_INTRIN: Final = "wmma_load_16x16x16_f16_a_trans_shared_dyn"
WMMA_LOAD_16x16x16_F16_B_TRANS_DYN_INTRIN: Final = "wmma_load_16x16x16_f16_b_trans_shared_dyn"
WMMA_LOAD_16x16x16_S8_A_DYN_INTRIN: Final = "wmma_load_16x16x16_s8_a_shared_dyn"
WMMA_LOAD_16x16x16_S8_B_DYN_INTRIN: Final = "wmma_load_16x16x16_s8_b_shared_dyn"
WMMA_LOAD_16x16x16_S8_A_TRANS_DYN_INTRIN: Final = "wmma_load_16x16x16_s8_a_trans_shared_dyn"
WMMA_LOAD_16x16x16_S8_B_TRANS_DYN_INTRIN: Final = "wmma_load_16x16x16_s8_b_trans_shared_dyn"
WMMA_SYNC_16x16x16_f16f16f32_INTRIN: Final = "wmma_sync_16x16x16_f16f16f32"
WMMA_SYNC_16x16x16_f16f16f32_TRANS_INTRIN: Final = "wmma_sync_16x16x16_f16f16f32_trans"
WMMA_SYNC_16x16x16_f16f16f16_INTRIN: Final = "wmma_sync_16x16x16_f16f16f16"
WMMA_SYNC_16x16x16_f16f16f16_TRANS_INTRIN: Final = "wmma_sync_16x16x16_f16f16f16_trans"
WMMA_SYNC_16x16x16_s8s8s32_INTRIN: Final = "wmma_sync_16x16x16_s8s8s32"
WMMA_SYNC_16x16x16_s8s8s32_TRANS_INTRIN: Final = "wmma_sync_16x16x16_s8s8s32_trans"
WMMA_STORE_16x16x16_F32_SHARED_INTRIN: Final = "wmma_store_16x16x16_f32_shared"
WMMA_STORE_16x16x16_F16_SHARED_INTRIN: Final = "wmma_store_16x16x16_f16_shared"
WMMA_STORE_16x16x16_S32_SHARED_INTRIN: Final = "wmma_store_16x16x16_s32_shared"
WMMA_STORE_16x16x16_F32_SHARED_DYN_INTRIN: Final = "wmma_store_16x16x16_f32_shared_dyn"
WMMA_STORE_16x16x16_F16_SHARED_DYN_INTRIN: Final = "wmma_store_16x16x16_f16_shared_dyn"
WMMA_STORE_16x16x16_S32_SHARED_DYN_INTRIN: Final = "wmma_store_16x16x16_s32_shared_dyn"
WMMA_STORE_16x16x16_F32_GLOBAL_INTRIN: Final = "wmma_store_16x16x16_f32_global"
WMMA_STORE_16x16x16_F16_GLOBAL_INTRIN: Final = "wmma_store_16x16x16_f16_global"
WMMA_STORE_16x16x16_S32_GLOBAL_INTRIN: Final = "wmma_store_16x16x16_s32_global"

# --- mma ----------------------------------------------------------------------------------------------------------

LDMATRIX_f16_A_INTRIN: Final = "mma_ldmatrix_f16_a"
LDMATRIX_f16_B_INTRIN: Final = "mma_ldmatrix_f16_b"
LDMATRIX_f16_A_TRANS_INTRIN: Final = "mma_ldmatrix_f16_a_trans"
LDMATRIX_f16_B_TRANS_INTRIN: Final = "mma_ldmatrix_f16_b_trans"
LDMATRIX_f16_A_DYN_INTRIN: Final = "mma_ldmatrix_f16_a_dyn"
LDMATRIX_f16_B_DYN_INTRIN: Final = "mma_ldmatrix_f16_b_dyn"
LDMATRIX_f16_A_TRANS_DYN_INTRIN: Final = "mma_ldmatrix_f16_a_trans_dyn"
LDMATRIX_f16_B_TRANS_DYN_INTRIN: Final = "mma_ldmatrix_f16_b_trans_dyn"
LDMATRIX_i8_A_INTRIN: Final = "mma_ldmatrix_i8_a"
LDMATRIX_i8_B_INTRIN: Final = "mma_ldmatrix_i8_b"
LDMATRIX_i8_B_TRANS_INTRIN: Final = "mma_ldmatrix_i8_b_trans"
LDMATRIX_e4m3_A_INTRIN: Final = "mma_ldmatrix_e4m3_a"
LDMATRIX_e4m3_B_INTRIN: Final = "mma_ldmatrix_e4m3_b"
LDMATRIX_e4m3_B_TRANS_INTRIN: Final = "mma_ldmatrix_e4m3_b_trans"
LDMATRIX_e5m2_A_INTRIN: Final = "mma_ldmatrix_e5m2_a"
LDMATRIX_e5m2_B_INTRIN: Final = "mma_ldmatrix_e5m2_b"
LDMATRIX_e5m2_B_TRANS_INTRIN: Final = "mma_ldmatrix_e5m2_b_trans"
MMA_f16f16f32_INTRIN: Final = "mma_f16f16f32"
MMA_f16f16f32_TRANS_A_INTRIN: Final = "mma_f16f16f32_trans_a"
MMA_f16f16f32_TRANS_B_INTRIN: Final = "mma_f16f16f32_trans_b"
MMA_f16f16f32_TRANS_A_TRANS_B_INTRIN: Final = "mma_f16f16f32_trans_a_trans_b"
MMA_f16f16f16_INTRIN: Final = "mma_f16f16f16"
MMA_f16f16f16_TRANS_A_INTRIN: Final = "mma_f16f16f16_trans_a"
MMA_f16f16f16_TRANS_B_INTRIN: Final = "mma_f16f16f16_trans_b"
MMA_f16f16f16_TRANS_A_TRANS_B_INTRIN: Final = "mma_f16f16f16_trans_a_trans_b"
MMA_i8i8i32_INTRIN: Final = "mma_i8i8i32"
MMA_i8i8i32_TRANS_B_INTRIN: Final = "mma_i8i8i32_trans_b"
MMA_e4m3e4m3f32_INTRIN: Final = "mma_e4m3e4m3f32"
MMA_e4m3e4m3f32_TRANS_B_INTRIN: Final = "mma_e4m3e4m3f32_trans_b"
MMA_e5m2e5m2f32_INTRIN: Final = "mma_e5m2e5m2f32"
MMA_e5m2e5m2f32_TRANS_B_INTRIN: Final = "mma_e5m2e5m2f32_trans_b"
MMA_fill_16x16_f32_INTRIN: Final = "mma_fill_16x16_f32"
MMA_fill_16x16_f16_INTRIN: Final = "mma_fill_16x16_f16"
MMA_fill_16x16_i32_INTRIN: Final = "mma_fill_16x16_i32"
MMA_store_16x16_f32_global_INTRIN: Final = "mma_store_16x16_f32_global_"
MMA_store_16x16_f16_global_INTRIN: Final = "mma_store_16x16_f16_global_"
MMA_store_16x16_i32_global_INTRIN: Final = "mma_store_16x16_i32_global_"
MMA_store_16x16_f32_shared_dyn_INTRIN: Final = "mma_store_16x16_f32_shared_dyn_"
MMA_store_16x16_f32_shared_dyn_INTRIN_SIMPLE: Final = "mma_store_16x16_f32_shared_dyn_simple_"
MMA_store_16x16_f16_shared_dyn_INTRIN_SIMPLE: Final = "mma_store_16x16_f16_shared_dyn_simple_"


def shared_16x16_to_ldmatrix_32x8_layout(i: Index, j: Index) -> tuple[Index, Index]:
    """Element (i, j) of a tile of 16 bits: its lane, and its number there."""
    return i % 8 * 4 + j % 8 // 2, j // 8 * 4 + i // 8 * 2 + j % 2


def ldmatrix_32x8_to_shared_16x16_layout(thread_id: Index, local_id: Index) -> tuple[Index, Index]:
    """The element of the tile that a lane has under a number."""
    return local_id % 4 // 2 * 8 + thread_id // 4, local_id // 4 * 8 + thread_id % 4 * 2 + local_id % 2


def shared_16x32_to_ldmatrix_32x16_layout(i: Index, j: Index) -> tuple[Index, Index]:
    """Element (i, j) of a tile of bytes, 32 of them along k: its lane, and its number there."""
    return i % 8 * 4 + j % 16 // 4, j // 16 * 8 + i // 8 * 4 + j % 4


def shared_32x16_to_ldmatrix_32x16_layout(i: Index, j: Index) -> tuple[Index, Index]:
    """The same of a tile that has k along its rows."""
    return i % 16 // 4 + j % 8 * 4, j // 8 * 8 + i // 16 * 4 + i % 4


_SHORT: Final = {
    "float16": "f16",
    "bfloat16": "bf16",
    "int8": "i8",
    "e4m3_float8": "e4m3",
    "e5m2_float8": "e5m2",
    "float32": "f32",
    "int32": "i32",
}


def _checked(what: str, given: str, known: tuple[str, ...]) -> str:
    if given not in known:
        raise ValueError(f"{what} is one of {', '.join(known)}; got {given!r}")
    return given


def get_wmma_intrin_group(
    load_scope: str, store_scope: str, in_dtype: str, out_dtype: str, trans_b: bool
) -> dict[str, str]:
    """The names of the five intrinsics of a matmul by wmma: "init", "load_a", "load_b", "compute" and "store"."""
    load = _checked("load_scope", load_scope, ("shared", "shared.dyn")).replace(".", "_")
    store = _checked("store_scope", store_scope, ("global", "shared", "shared.dyn")).replace(".", "_")
    operand = _SHORT[_checked("in_dtype", in_dtype, ("float16", "bfloat16", "int8"))].replace("i8", "s8")
    out = _SHORT[_checked("out_dtype", out_dtype, ("float16", "float32", "int32"))].replace("i32", "s32")
    trans = "_trans" if trans_b else ""
    return {
        "init": f"wmma_fill_16x16x16_{out}",
        "load_a": f"wmma_load_16x16x16_{operand}_a_{load}",
        "load_b": f"wmma_load_16x16x16_{operand}_b{trans}_{load}",
        "compute": f"wmma_sync_16x16x16_{operand}{operand}{out}{trans}",
        "store": f"wmma_store_16x16x16_{out}_{store}",
    }


def get_mma_intrin_group(
    load_scope: str,
    store_scope: str,
    in_dtype: str,
    out_dtype: str,
    trans_a: bool,
    trans_b: bool,
    not_use_mma_store_intrinic: bool = True,
    store_to_smem_dtype: str | None = None,
) -> dict[str, str]:
    """The same of a matmul by mma.sync; `not_use_mma_store_intrinic`: results are stored element by element."""
    dyn = "_dyn" if _checked("load_scope", load_scope, ("shared", "shared.dyn")) == "shared.dyn" else ""
    store = _checked("store_scope", store_scope, ("global", "shared", "shared.dyn")).replace(".", "_")
    operand = _SHORT[_checked("in_dtype", in_dtype, tuple(_SHORT)[:5])]
    out = _SHORT[_checked("out_dtype", out_dtype, ("float16", "float32", "int32"))]
    stored = out if store_to_smem_dtype is None else _SHORT[store_to_smem_dtype]
    marks = ["_trans" if trans else "" for trans in (trans_a, trans_b)]
    compute = "".join([f"{mark}_{name}" for mark, name in zip(marks, "ab", strict=True) if mark])
    return {
        "init": f"mma_fill_16x16_{out}",
        "load_a": f"mma_ldmatrix_{operand}_a{marks[0]}{dyn}",
        "load_b": f"mma_ldmatrix_{operand}_b{marks[1]}{dyn}",
        "compute": f"mma_{operand}{operand}{out}{compute}",
        "store": f"mma_store_16x16_{stored}_{store}_{'simple_' if not_use_mma_store_intrinic else ''}",
    }
