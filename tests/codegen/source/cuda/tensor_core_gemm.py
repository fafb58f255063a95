"""A matmul on tensor cores, by the steps that users of TVM write: tiles in shared memory, fragments, tensorize."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

import loopwright as lw
from loopwright import ir, te, tir
from loopwright.runtime.tensor import as_argument
from loopwright.tir.tensor_intrin import cuda

LAYOUTS: Mapping[tuple[int, int], Callable[..., Any]] = {
    (16, 16): cuda.shared_16x16_to_ldmatrix_32x8_layout,
    (16, 32): cuda.shared_16x32_to_ldmatrix_32x16_layout,
    (32, 16): cuda.shared_32x16_to_ldmatrix_32x16_layout,
}
NUMPY = {"e4m3_float8": ml_dtypes.float8_e4m3fn, "e5m2_float8": ml_dtypes.float8_e5m2, "bfloat16": ml_dtypes.bfloat16}
RUNS = [("forwards", 0), ("backwards", 0), ("random", 1)]


def gemm(
    sizes: tuple[int, int, int], a: str = "float16", c: str = "float32", trans_a: bool = False, trans_b: bool = False
) -> ir.PrimFunc:
    """C = A @ B, summed in the type of C; either may lie transposed."""
    m, n, k = sizes
    A = te.placeholder((k, m) if trans_a else (m, k), a, name="A")
    B = te.placeholder((n, k) if trans_b else (k, n), a, name="B")
    r = te.reduce_axis((0, k), name="k")

    def product(i: Any, j: Any) -> Any:
        values = A[(r, i) if trans_a else (i, r)], B[(j, r) if trans_b else (r, j)]
        left, right = [value if a == c else value.astype(c) for value in values]
        return te.sum(left * right, axis=r)

    C = te.compute((m, n), product, name="C")
    result: ir.PrimFunc = te.create_prim_func([A, B, C])
    return result


class Kernel:
    """A schedule: warps along y and z, each with 2 × 2 tiles of sums; slabs of two tiles along k in shared memory."""

    def __init__(self, function: ir.PrimFunc, group: Mapping[str, str], scope: str = "shared", depth: int = 16) -> None:
        self.sch = sch = tir.Schedule(function)
        self.group, self.depth, self.scope = group, depth, scope
        self.block = block = sch.get_block("C")
        i, j, k = sch.get_loops(block)
        i, self.i_tile = sch.split(i, [None, 16])
        j, j_tile = sch.split(j, [None, 16])
        k, k_tile = sch.split(k, [None, depth])
        i_block, i_warp, i = sch.split(i, [None, 2, 2])
        j_block, self.j_warp, j = sch.split(j, [None, 2, 2])
        self.k_slab, self.k_step = sch.split(k, [None, 2])
        sch.reorder(i_block, j_block, i_warp, self.j_warp, self.k_slab, self.k_step, i, j, self.i_tile, j_tile, k_tile)
        for loop, axis in (
            (i_block, "blockIdx.y"),
            (j_block, "blockIdx.x"),
            (i_warp, "threadIdx.y"),
            (self.j_warp, "threadIdx.z"),
        ):
            sch.bind(loop, axis)

    def stage(self, pad: int = 8) -> None:
        """Slabs of A and B go to shared memory, whose rows are padded."""
        sch = self.sch
        for number in (0, 1):
            copy = sch.cache_read(self.block, number, self.scope)
            sch.compute_at(copy, self.k_slab)
            fused = sch.fuse(*sch.get_loops(copy)[-2:])
            _, y, z, x, lanes = sch.split(fused, [None, 2, 2, 32, 4])
            for loop, axis in ((y, "threadIdx.y"), (z, "threadIdx.z"), (x, "threadIdx.x")):
                sch.bind(loop, axis)
            sch.vectorize(lanes)
            sch.storage_align(copy, 0, -2, 32, pad)

    def load(self, scopes: tuple[str, str], trans: tuple[bool, bool] = (False, False)) -> None:
        """Tiles of both go to registers; with scope "warp" by the layouts of ldmatrix."""
        sch = self.sch
        for number, name in enumerate("ab"):
            rows, columns = (16, self.depth) if name == "a" else (self.depth, 16)
            rows, columns = (columns, rows) if trans[number] else (rows, columns)
            copy = sch.cache_read(self.block, number, scopes[number])
            sch.compute_at(copy, self.k_step)
            tile = self.tile(copy, rows, columns)
            if scopes[number] == "warp":
                sch.transform_layout(copy, ("write", 0), layout(rows, columns))
            sch.tensorize(tile, self.group[f"load_{name}"])

    def tile(self, copy: Any, rows: int, columns: int) -> Any:
        """The loops over one tile of a copy, innermost; the outer one of them."""
        sch = self.sch
        i, j = sch.get_loops(copy)[-2:]
        i, i_tile = sch.split(i, [None, rows])
        j, j_tile = sch.split(j, [None, columns])
        sch.reorder(i, j, i_tile, j_tile)
        return i_tile

    def compute(self, scope: str) -> None:
        """Sums stay in registers over all slabs."""
        sch = self.sch
        store = sch.cache_write(self.block, 0, scope)
        sch.reverse_compute_at(store, self.j_warp)
        tile = self.tile(store, 16, 16)
        if scope == "warp":
            sch.transform_layout(store, ("read", 0), layout(16, 16))
        sch.tensorize(tile, self.group["store"])
        init = sch.decompose_reduction(self.block, self.k_slab)
        sch.tensorize(sch.get_loops(init)[-2], self.group["init"])
        sch.tensorize(self.i_tile, self.group["compute"])


def layout(rows: int, columns: int) -> Callable[[Any, Any], list[Any]]:
    """The index map of a matrix to tiles, lanes and elements of a lane."""
    in_tile = LAYOUTS[rows, columns]
    return lambda i, j: [i // rows, j // columns, *in_tile(i % rows, j % columns)]


def wmma(
    sizes: tuple[int, int, int] = (64, 64, 64),
    a: str = "float16",
    c: str = "float32",
    trans_b: bool = False,
    scope: str = "shared",
) -> Any:
    """The schedule with fragments."""
    group = cuda.get_wmma_intrin_group(scope, "global", a, c, trans_b)
    kernel = Kernel(gemm(sizes, a, c, trans_b=trans_b), group, scope)
    kernel.stage(16 if a == "int8" else 8)
    kernel.load(("wmma.matrix_a", "wmma.matrix_b"))
    kernel.compute("wmma.accumulator")
    return kernel.sch


def mma(
    sizes: tuple[int, int, int] = (64, 64, 64),
    a: str = "float16",
    c: str = "float32",
    trans: tuple[bool, bool] = (False, False),
    scope: str = "shared",
) -> Any:
    """The schedule with mma.sync and ldmatrix."""
    group = cuda.get_mma_intrin_group(scope, "global", a, c, *trans, False)
    depth = 16 if a in ("float16", "bfloat16") else 32
    kernel = Kernel(gemm(sizes, a, c, *trans), group, scope, depth)
    kernel.stage(8 if depth == 16 else 16)  # rows begin at multiples of 16 bytes
    kernel.load(("warp", "warp"), trans)
    kernel.compute("warp")
    return kernel.sch


def check(sch: Any, sizes: tuple[int, int, int], a: str, c: str, trans: tuple[bool, bool] = (False, False)) -> Any:
    """Build the schedule, and compare what it computes, emulated in all orders, with numpy; gives the module."""
    m, n, k = sizes
    rng = np.random.default_rng(0)
    x, y = [rng.integers(-4, 5, shape).astype(NUMPY.get(a, a)) for shape in ((m, k), (k, n))]
    expected = x.astype("float64") @ y.astype("float64")
    given = [value.T.copy() if is_trans else value for value, is_trans in zip((x, y), trans, strict=True)]
    module: Any = lw.build(sch.mod, target="cuda -model=emulated -arch=sm_90")
    for order, seed in RUNS:
        module.set_thread_order(order, seed)
        result = np.zeros((m, n), c)
        module["main"](*map(as_argument, (*given, result)))
        np.testing.assert_array_equal(result.astype("float64"), expected)
    return module
