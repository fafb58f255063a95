"""gemm: matrix products against float64, at sizes around tiles, and the text and registers that come of them."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te
from loopwright.autosched.choices import Choices
from loopwright.autosched.gpu import GpuMachine
from loopwright.autosched.gpu.rules.gemm.tiles import Side, Size, Tile, seconds, tiles_for
from loopwright.runtime.nvidia.nvrtc import NoNvrtc, compile_cuda

EMULATED = "cuda -model=emulated"
H200 = "nvidia/nvidia-h200"
ORDERS = ("forwards", "backwards", "random")
LARGE = {"x": 4, "y": 16, "z": 4, "row_pieces": 2, "column_pieces": 2, "vector": 4, "depth": 16}  # 128 × 128

FEW_ROWS = {"x": 4, "y": 4, "z": 4, "row_pieces": 1, "column_pieces": 2, "vector": 4, "depth": 16}  # 16 × 128

PIECES = {"x": 4, "y": 8, "z": 2, "row_pieces": 2, "column_pieces": 2, "vector": 4, "depth": 16}  # 64 × 64


def product(m, n, k, layout="nn", a_batch=(), b_batch=(), dtype="float32", has_epilogue=False):
    """The tensors of a product, the result last; an operand without batch is used by all."""
    a = te.placeholder((*a_batch, *((m, k) if layout[0] == "n" else (k, m))), dtype, name="A")
    b = te.placeholder((*b_batch, *((k, n) if layout[1] == "n" else (n, k))), dtype, name="B")
    reduced = te.reduce_axis((0, k), name="k")

    def cell(*index):
        outer, (i, j) = index[:-2], index[-2:]
        first = a[(*outer[: len(a_batch)], *((i, reduced) if layout[0] == "n" else (reduced, i)))]
        second = b[(*outer[: len(b_batch)], *((reduced, j) if layout[1] == "n" else (j, reduced)))]
        return te.sum(first * second, axis=reduced)

    c = te.compute((*(a_batch or b_batch), m, n), cell, name="C")
    if not has_epilogue:
        return [a, b, c]
    bias = te.placeholder((n,), dtype, name="bias")
    biased = te.compute(c.shape, lambda *index: c(*index) + bias[index[-1]], name="biased")
    return [a, b, bias, te.compute(c.shape, lambda *index: te.max(biased(*index), te.const(0, dtype)), name="relu")]


def run(tensors, layout, chosen="tile"):
    """Builds and runs a product in all orders of threads."""
    plan = autosched.apply(tensors, EMULATED)
    assert any(chosen in choice.what for choice in plan.decisions[-1].choices), plan.explain()
    assert [decision.rule for decision in plan.decisions if decision.rule != "inlined"] == ["gemm"], plan.explain()
    module = lw.build(plan.mod, target=EMULATED)
    shapes = [tuple(map(int, tensor.shape)) for tensor in tensors]
    dtype = str(tensors[-1].dtype)
    rng = np.random.default_rng(1)
    given = [(8 * rng.standard_normal(shape)).astype(dtype) for shape in shapes[:-1]]
    a, b = [x.astype("float64") for x in given[:2]]
    a = a if layout[0] == "n" else a.swapaxes(-1, -2)
    b = b if layout[1] == "n" else b.swapaxes(-1, -2)
    expected = a @ b
    if len(given) == 3:
        expected = np.maximum(expected + given[2], 0)
    for order in ORDERS:
        result = np.full(shapes[-1], -7, dtype)
        module.set_thread_order(order)
        module(*given, result)
        bound = {"float32": 2e-3, "float64": 1e-10, "int32": 0}[dtype]
        np.testing.assert_allclose(result.astype("float64"), expected, rtol=0, atol=bound)


@pytest.mark.parametrize(
    ("sizes", "layout", "options", "tile"),
    [
        ((64, 128, 32), "nn", {}, PIECES),  # whole tiles
        ((65, 131, 17), "nn", {"has_epilogue": True}, PIECES),
        ((31, 63, 15), "tt", {"b_batch": (2,)}, None),
        ((33, 68, 16), "nt", {"a_batch": (2,), "b_batch": (2,), "has_epilogue": True}, None),
        ((17, 33, 9), "tn", {"dtype": "float64"}, None),
        ((2, 40, 8), "nn", {"dtype": "int32", "a_batch": (2, 2)}, None),
    ],
)
def test_against_float64(sizes, layout, options, tile):
    with Choices({"0.tile": tile} if tile else None):
        run(product(*sizes, layout, **options), layout)


@pytest.mark.parametrize(
    ("sizes", "layout", "options"),
    [
        ((9, 36, 128), "nn", {"has_epilogue": True}),
        ((33, 30, 128), "nt", {"a_batch": (2,), "b_batch": (2,), "dtype": "int32"}),
        ((2, 70, 145), "tn", {}),  # padded: two parts of 80
    ],
)
def test_parts_of_the_sum(sizes, layout, options):
    with Choices({"0.splits": {"value": 2}, "0.tile": FEW_ROWS}):
        run(product(*sizes, layout, **options), layout, "2 parts of the sum")


@cache
def large_kernel():
    """The plan of a product with large tiles, and the text of its kernels."""
    with Choices({"0.tile": LARGE}):
        plan = autosched.apply(product(4096, 4096, 256, has_epilogue=True), H200)
    module = lw.build(plan.mod, target=H200)
    return plan, module.get_source("cuda")


def test_one_barrier_a_slab_and_wide_accesses():
    plan, source = large_kernel()
    text = source[source.index('extern "C"') : source.index("main_kernel_unaligned")]
    assert "__launch_bounds__(256, 2)" in text
    assert text.count("__syncthreads();") == 1  # in the loop; the prologue has none of its own
    assert "__restrict__" not in text
    assert len(re.findall(r"\(const float4 \*\)&[AB]\[", text)) == 4  # of both operands, before the loop and in it
    assert len(re.findall(r"\(const float4 \*\)&[AB]_shared\[", text)) == 2
    assert "tile 128 × 128 × 16" in plan.explain()
    assert "blocks a multiprocessor" in plan.explain()


def test_registers_do_not_spill():
    _, source = large_kernel()
    try:
        log = compile_cuda(source, "sm_90a", ["--fmad=false", "--ptxas-options=-v"]).log
    except NoNvrtc as error:
        pytest.skip(str(error))
    assert set(re.findall(r"(\d+) bytes spill", log)) == {"0"}
    assert all(int(used) <= 128 for used in re.findall(r"Used (\d+) registers", log))


@pytest.mark.parametrize(
    ("m", "n", "expected"),
    [(4096, 4096, (128, 256)), (1024, 1024, (64, 64)), (64, 64, (32, 64))],
)
def test_the_tile_that_should_be_fastest(m, n, expected):
    machine = GpuMachine.of(H200)
    size = Size(m, n, 4096, 1, 4, Side(True, True), Side(False, True))
    best = min(tiles_for(size, machine), key=lambda tile: seconds(tile, size, machine))
    assert (best.rows, best.columns) == expected


def test_blocks_of_a_multiprocessor_share_its_registers():
    machine = GpuMachine.of(H200)
    assert Tile(4, 16, 4, 2, 2, 4, 16).resident(4, machine) == 2
    assert Tile(4, 16, 4, 2, 4, 4, 16).resident(4, machine) == 1
    assert Tile(4, 8, 2, 2, 2, 4, 16).resident(4, machine) == 6


@pytest.mark.parametrize(
    "tensors",
    [
        product(1, 64, 64),
        product(64, 1, 64),
        product(64, 64, 64, dtype="float16"),
    ],
)
def test_left_to_other_rules(tensors):
    plan = autosched.apply(tensors, H200)
    assert "gemm" not in [decision.rule for decision in plan.decisions]


def test_a_matrix_times_itself_is_left_to_other_rules():
    a = te.placeholder((64, 64), name="A")
    k = te.reduce_axis((0, 64), name="k")
    plan = autosched.apply([a, te.compute((64, 64), lambda i, j: te.sum(a[i, k] * a[k, j], axis=k), name="C")], H200)
    assert "gemm" not in [decision.rule for decision in plan.decisions]
