"""Matmuls on tensor cores from ordinary schedule steps: values in all orders of threads, text, machine code."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

import loopwright as lw
from loopwright import tir
from loopwright.evaluator import evaluate
from loopwright.runtime.errors import NotBuilt
from loopwright.schedule.proof.tensorized import IntrinsicMismatch
from loopwright.tir.tensor_intrin import cuda
from loopwright.transform.on_request.lower_warp_memory import NotThisLane
from tests.campaign import some
from tests.codegen.source.cuda.disassembly import HAS_NVRTC, sass
from tests.codegen.source.cuda.tensor_core_gemm import Kernel, check, gemm, layout, mma, wmma

HALF = [("float16", "float32"), ("float16", "float16")]
FRAGMENTS = list(product([*HALF, ("int8", "int32")], [False, True], ["shared", "shared.dyn"]))


@pytest.mark.parametrize(("types", "trans_b", "scope"), some(FRAGMENTS))
def test_fragments(types: tuple[str, str], trans_b: bool, scope: str):
    sizes = (64, 64, 96)
    check(wmma(sizes, *types, trans_b, scope), sizes, *types, (False, trans_b))


@pytest.mark.parametrize(("types", "trans_a", "trans_b"), some(list(product(HALF, [False, True], [False, True]))))
def test_mma_of_float16(types: tuple[str, str], trans_a: bool, trans_b: bool):
    sizes, trans = (64, 64, 96), (trans_a, trans_b)
    check(mma(sizes, *types, trans, "shared.dyn" if trans_b else "shared"), sizes, *types, trans)


BYTES = [("int8", "int32"), ("e4m3_float8", "float32"), ("e5m2_float8", "float32")]


@pytest.mark.parametrize(("types", "trans_b"), some(list(product(BYTES, [False, True]))))
def test_mma_of_bytes(types: tuple[str, str], trans_b: bool):
    sizes = (64, 64, 128)
    check(mma(sizes, *types, (False, trans_b)), sizes, *types, (False, trans_b))


def kernel_of(sch: object, arch: str = "sm_90") -> str:
    source: str = lw.build(sch.mod, target=f"cuda -arch={arch}").get_source("cuda")  # type: ignore[attr-defined]
    return source[source.index("__global__") : source.index("main_kernel_unaligned")]


def test_the_text_has_two_barriers_and_tiles_as_large_as_a_warp_needs():
    for text, name in ((kernel_of(wmma()), "A_shared_wmma_matrix_a"), (kernel_of(mma()), "A_shared_warp")):
        assert text.count("__syncthreads();") == 2
        assert f"uint16_t {name}[16];" in text  # two tiles of 16 × 16
        assert "threadIdx_x ==" not in text and "threadIdx_x <" not in text
        assert re.search(rf"lw_mma_m16n8k16_f16_f16_f32\(&C_\w+\[.*\], &{name}\[i_0_2 \* 8\]", text)


def test_a_pipeline_loads_the_next_slab_while_it_computes():
    sizes = (64, 64, 128)
    sch = mma(sizes, scope="shared.dyn")
    slabs = sch.get_loops("C_update_o")[4]
    sch.annotate(slabs, "software_pipeline_stage", [0, 0, 1])
    sch.annotate(slabs, "software_pipeline_order", [0, 1, 2])
    check(sch, sizes, "float16", "float32")
    text = kernel_of(sch)
    loop = text[text.index("for (int32_t k_0_0 ") :]
    loop = loop[: loop.index("\n    }")]
    assert loop.count("__syncthreads();") == 1 and "k_0_0 % 2 * " in loop and "(k_0_0 + 1) % 2 * " in loop


@pytest.mark.parametrize("simple", [False, True])
@pytest.mark.parametrize("scope", ["shared", "shared.dyn"])
def test_sums_go_through_shared_memory(scope: str, simple: bool):
    group = cuda.get_mma_intrin_group("shared", scope, "float16", "float32", False, False, simple)
    sch = tir.Schedule(gemm((64, 64, 32)))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    (i, i_tile), (j, j_tile), (k, k_tile) = [sch.split(loop, [None, 16]) for loop in (i, j, k)]
    sch.reorder(i, j, k, i_tile, j_tile, k_tile)
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.y")

    def share(copy: object) -> None:
        _, y, x = sch.split(sch.fuse(*sch.get_loops(copy)[-2:]), [None, 4, 32])
        sch.bind(y, "threadIdx.y")
        sch.bind(x, "threadIdx.x")

    for number in (0, 1):
        copy = sch.cache_read(block, number, "shared")
        sch.compute_at(copy, k)
        share(copy)
    for number, name in enumerate("ab"):
        tile = sch.cache_read(block, number, "warp")
        sch.compute_at(tile, k)
        sch.transform_layout(tile, ("write", 0), layout(16, 16))
        sch.tensorize(sch.get_loops(tile)[-2], group[f"load_{name}"])
    result = sch.cache_write(block, 0, scope)
    store = sch.cache_write(block, 0, "warp")
    sch.reverse_compute_at(store, j)
    sch.transform_layout(store, ("read", 0), layout(16, 16))
    sch.tensorize(sch.get_loops(store)[-2], group["store"])
    sch.reverse_compute_at(result, i)
    share(result)
    init = sch.decompose_reduction(block, k)
    sch.tensorize(sch.get_loops(init)[-2], group["init"])
    sch.tensorize(i_tile, group["compute"])
    module = check(sch, (64, 64, 32), "float16", "float32")
    assert module.get_source().count("__syncthreads();") == 3  # a warp's sums are stored by other threads


@pytest.mark.skipif(not HAS_NVRTC, reason="NVRTC is not installed")
@pytest.mark.parametrize("schedule", [wmma, mma])
def test_machine_code_keeps_tiles_in_registers(schedule):
    code = sass(schedule((64, 64, 64)).mod["main"], "sm_90")
    assert "LDL" not in code and "STL" not in code
    assert "HMMA.16816.F32" in code and "LDSM.16.M88.4" in code and "LDSM.16.MT88.4" in code


# --- refusals -----------------------------------------------------------------------------------------------------


def test_a_fragment_is_no_operand_of_the_other_side():
    kernel = Kernel(gemm((64, 64, 64)), cuda.get_wmma_intrin_group("shared", "global", "float16", "float32", False))
    kernel.stage()
    with pytest.raises(
        IntrinsicMismatch, match=r'declared with scope "wmma.matrix_a", but .* has scope "wmma.matrix_b"'
    ):
        kernel.load(("wmma.matrix_b", "wmma.matrix_a"))


def test_a_tile_in_another_layout_is_not_what_ldmatrix_loads():
    kernel = Kernel(
        gemm((64, 64, 64)), cuda.get_mma_intrin_group("shared", "global", "float16", "float32", False, False)
    )
    kernel.stage()
    sch = kernel.sch
    copy = sch.cache_read(kernel.block, 0, "warp")
    sch.compute_at(copy, kernel.k_step)
    tile = kernel.tile(copy, 16, 16)
    sch.transform_layout(copy, ("write", 0), lambda i, j: [i // 16, j // 16, i % 16 * 2 + j % 16 // 8, j % 8])
    with pytest.raises(IntrinsicMismatch, match="moves by"):
        sch.tensorize(tile, kernel.group["load_a"])


def test_fragments_need_all_their_uses_tensorized():
    kernel = Kernel(gemm((64, 64, 64)), cuda.get_wmma_intrin_group("shared", "global", "float16", "float32", False))
    kernel.stage()
    kernel.load(("wmma.matrix_a", "wmma.matrix_b"))
    with pytest.raises(NotBuilt, match=r"an element of .*, which warps hold as fragments"):
        lw.build(kernel.sch.mod, target="cuda -arch=sm_90")


def test_operands_of_mma_are_touched_by_instructions_alone():
    sch = mma()
    assert "mma_ldmatrix_f16_a" in str(sch.mod)
    kernel = Kernel(
        gemm((64, 64, 64)), cuda.get_mma_intrin_group("shared", "global", "float16", "float32", False, False)
    )
    kernel.stage()
    kernel.group = {**kernel.group, "store": "mma_store_16x16_f32_global_"}
    sch = kernel.sch
    for number in (0, 1):
        copy = sch.cache_read(kernel.block, number, "warp")
        sch.compute_at(copy, kernel.k_step)
        kernel.tile(copy, 16, 16)
        sch.transform_layout(copy, ("write", 0), layout(16, 16))
    kernel.compute("warp")
    with pytest.raises(NotThisLane, match="is an operand of ptx_mma, and touched element by element"):
        lw.build(sch.mod, target="cuda -arch=sm_90")


def test_the_description_is_what_the_evaluator_runs():
    a, b = [np.random.default_rng(0).integers(-3, 4, shape).astype("float16") for shape in ((64, 32), (32, 64))]
    c = np.zeros((64, 64), "float32")
    evaluate(mma((64, 64, 32)).mod["main"], a, b, c)
    np.testing.assert_array_equal(c, a.astype("float32") @ b.astype("float32"))
