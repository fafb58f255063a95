"""tensor gemm: products for tensor cores against float64, emulated in all orders of threads, and their text."""

from __future__ import annotations

import re
from contextlib import nullcontext
from functools import cache
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te
from loopwright.autosched.choices import Choices
from loopwright.autosched.gpu import GpuMachine
from loopwright.autosched.gpu.rules.tensor_gemm.tiles import Size, seconds, tiles_for
from loopwright.codegen.source.cuda.emulate import ORDERS
from loopwright.ir import IRModule
from loopwright.runtime.nvidia.nvrtc import NoNvrtc, compile_cuda

EMULATED = "cuda -model=emulated -arch=sm_90a"
H200 = "nvidia/nvidia-h200"
NUMPY = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}
# Of a result that is rounded once: half of the last bit, of normal and of the smallest numbers.
ROUNDING = {
    "float32": (2**-24, 0),
    "float16": (2**-11, 2**-24),
    "bfloat16": (2**-8, 0),
    "float8_e4m3": (2**-4, 2**-9),
    "int32": (0, 0),
    "int8": (0, 0),
}
WIDE = {"rows": 128, "columns": 256, "stages": 3, "resident": 1}
TALL = {"rows": 256, "columns": 128, "stages": 3, "resident": 1}
SQUARE = {"rows": 128, "columns": 128, "stages": 3, "resident": 2}
SMALL = {"rows": 64, "columns": 64, "stages": 2, "resident": 1}


class Case(NamedTuple):
    """A product of m × k by k × n; `layout` says with t which operand is given transposed."""

    m: int
    n: int
    k: int
    layout: str = "nt"
    types: tuple[str, str, str] = ("float16", "float16", "float16")
    a_batch: tuple[int, ...] = ()
    b_batch: tuple[int, ...] = ()
    epilogue: str = ""
    choices: dict[str, Any] | None = None

    @property
    def sum_type(self) -> str:
        return "int32" if "int8" in self.types[0] else "float32"

    @property
    def batch(self) -> tuple[int, ...]:
        return self.a_batch or self.b_batch

    def tensors(self) -> list[te.Tensor]:
        m, n, k = self[:3]
        a = te.placeholder((*self.a_batch, *((m, k) if self.layout[0] == "n" else (k, m))), self.types[0], name="A")
        b = te.placeholder((*self.b_batch, *((k, n) if self.layout[1] == "n" else (n, k))), self.types[1], name="B")
        reduced = te.reduce_axis((0, k), name="k")

        def cell(*index):
            outer, (i, j) = index[:-2], index[-2:]
            first = a[(*outer[: len(self.a_batch)], *((i, reduced) if self.layout[0] == "n" else (reduced, i)))]
            second = b[(*outer[: len(self.b_batch)], *((reduced, j) if self.layout[1] == "n" else (j, reduced)))]
            return te.sum(first.astype(self.sum_type) * second.astype(self.sum_type), axis=reduced)

        c = te.compute((*self.batch, m, n), cell, name="C")
        out = self.types[2]
        if self.epilogue == "bias relu":
            bias = te.placeholder((n,), self.sum_type, name="bias")
            zero = te.const(0, self.sum_type)
            biased = te.compute(c.shape, lambda *index: c(*index) + bias[index[-1]], name="biased")
            return [a, b, bias, te.compute(c.shape, lambda *index: te.max(biased(*index), zero).astype(out), name="D")]
        if self.epilogue == "residual":
            other = te.placeholder(c.shape, out, name="R")

            def added(*index):
                return (c(*index) * te.const(0.5, "float32") + other(*index).astype("float32")).astype(out)

            return [a, b, other, te.compute(c.shape, added, name="D")]
        if out == self.sum_type:
            return [a, b, c]
        return [a, b, te.compute(c.shape, lambda *index: c(*index).astype(out), name="D")]

    def plan(self, target: str = EMULATED) -> autosched.Plan:
        with Choices(self.choices) if self.choices else nullcontext():
            result = autosched.apply(self.tensors(), target)
        rules = [decision.rule for decision in result.decisions if decision.rule != "inlined"]
        assert rules == ["tensor gemm"], result.explain()
        return result

    def given(self) -> list[np.ndarray]:
        rng = np.random.default_rng(self.m + self.n + self.k)
        result = []
        for tensor, dtype in zip(self.tensors()[:-1], (*self.types[:2], self.types[2]), strict=False):
            if self.epilogue == "bias relu" and len(result) == 2:
                dtype = self.sum_type
            shape = tuple(map(int, tensor.shape))
            if "int" in dtype:
                result.append(rng.integers(0 if dtype == "uint8" else -9, 10, shape).astype(dtype))
            else:
                result.append(rng.standard_normal(shape).astype(NUMPY.get(dtype, dtype)))
        return result

    def wanted(self, given: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The result in float64, and by how much another order of the sum may change it."""
        a, b, *other = [one.astype("float64") for one in given]
        a = a if self.layout[0] == "n" else a.swapaxes(-1, -2)
        b = b if self.layout[1] == "n" else b.swapaxes(-1, -2)
        result, bound = a @ b, self.k * 2**-24 * (abs(a) @ abs(b))
        if self.epilogue == "bias relu":
            result = np.maximum(result + other[0], 0)
        elif self.epilogue == "residual":
            result = 0.5 * result + other[0]
        return result, bound + 2**-23 * abs(result)

    def check(self, function, given: list[np.ndarray]) -> None:
        out = self.types[2]
        stored = lw.nd.array(np.full((*self.batch, self.m, self.n), 1, NUMPY.get(out, out)))
        function(*[lw.nd.array(one) for one in given], stored)
        result = stored.numpy()
        wanted, bound = self.wanted(given)
        if out == "int8":
            wanted = wanted.astype("int32").astype("int8").astype("float64")
        half, least = ROUNDING[out]
        exact = 0 if self.sum_type == "int32" else bound
        assert np.all(abs(result.astype("float64") - wanted) <= exact + half * (abs(wanted) + exact) + least)


FLOATS = ("float32", "float16", "bfloat16")
CASES = {
    "whole tiles": Case(128, 128, 128),
    "both across": Case(128, 128, 128, "tn"),
    "transposed": Case(128, 64, 128, "tt", ("bfloat16", "bfloat16", "bfloat16"), epilogue="bias relu"),
    "as given": Case(64, 192, 64, "nn", ("float16", "float16", "float32")),
    "beyond the end": Case(100, 72, 80, "nn", epilogue="bias relu"),
    "beyond the end, along K": Case(130, 40, 88, "nt", ("bfloat16", "bfloat16", "float16"), epilogue="residual"),
    "odd rows": Case(101, 71, 77, "nt", epilogue="residual"),
    "odd rows across": Case(101, 71, 77, "tn", ("bfloat16", "bfloat16", "float32")),
    "three rows": Case(3, 136, 128, epilogue="bias relu"),
    "three columns": Case(136, 3, 128, epilogue="bias relu"),
    "few rows": Case(16, 128, 128, "nn"),
    "few columns": Case(128, 8, 64, "tn"),
    "fewer rows than a tile": Case(40, 40, 64),
    "fewer rows than two warpgroups": Case(72, 200, 64, choices={"0.tile": SQUARE}),
    "fewer columns than a tile": Case(200, 72, 64, choices={"0.tile": SQUARE}),
    "fewer rows and columns": Case(36, 200, 64, "nt", ("float16", "float16", "float32"), choices={"0.tile": WIDE}),
    "fewer columns than a box": Case(72, 40, 64, "tn", choices={"0.tile": WIDE}),
    "small": Case(20, 20, 64, epilogue="bias relu"),
    "batch": Case(72, 64, 64, a_batch=(3,), b_batch=(3,)),
    "batches, one of A alone": Case(64, 40, 72, "tn", a_batch=(2, 2), epilogue="bias relu"),
    "batch of few rows": Case(5, 65, 77, "tn", a_batch=(2,), b_batch=(2,)),
    "int8": Case(128, 64, 128, "nt", ("int8", "int8", "int32")),
    "uint8 and int8": Case(65, 64, 144, "nt", ("uint8", "int8", "int8"), epilogue="bias relu"),
    "int8 across": Case(80, 96, 96, "tn", ("int8", "int8", "int32")),
    "int8 odd": Case(101, 71, 77, "nn", ("int8", "uint8", "float32")),
    "e4m3": Case(128, 64, 128, "nt", ("float8_e4m3", "float8_e4m3", "float16")),
    "e5m2 and e4m3": Case(70, 64, 144, "nt", ("float8_e5m2", "float8_e4m3", "float8_e4m3"), epilogue="bias relu"),
    "wide tile": Case(128, 256, 128, choices={"0.tile": WIDE}),
    "wide tile across": Case(128, 256, 64, "tn", choices={"0.tile": WIDE}),
    "tall tile": Case(256, 128, 64, "nn", choices={"0.tile": TALL}),
    "two blocks": Case(128, 128, 192, choices={"0.tile": SQUARE}),
    "blocks that stay": Case(9 * 64, 20 * 64, 64, choices={"0.tile": SMALL, "0.group": {"value": 4}}),
    "parts of the sum": Case(128, 64, 1024, epilogue="bias relu", choices={"0.splits": {"value": 4}}),
    "parts across": Case(100, 72, 1024, "tn", choices={"0.splits": {"value": 2}}),
    "parts of few rows": Case(8, 128, 1024, "nn", a_batch=(2,), b_batch=(2,), choices={"0.splits": {"value": 2}}),
    "parts of int8": Case(64, 64, 1024, "nt", ("int8", "int8", "int32"), choices={"0.splits": {"value": 4}}),
}


@cache
def library():
    """All cases in one library: the C++ compiler runs once."""
    functions = {f"f{k}": case.plan().mod["main"] for k, case in enumerate(CASES.values())}
    module = {name: function.with_attr("global_symbol", name) for name, function in functions.items()}
    return lw.build(IRModule(module), target=EMULATED)


@pytest.mark.parametrize("name", CASES)
def test_against_float64(name):
    case, module = CASES[name], library()
    function, given = module[f"f{list(CASES).index(name)}"], case.given()
    for order in ORDERS:
        module.set_thread_order(order)
        case.check(function, given)


def text_of(case: Case) -> str:
    return lw.build(case.plan(H200).mod, target=H200).get_source("cuda")


LARGE = {
    "wide tile": Case(4096, 4096, 4096, epilogue="bias relu"),
    "across": Case(4096, 4096, 4096, "tt", ("bfloat16", "bfloat16", "bfloat16")),
    "e4m3": Case(4096, 4096, 4096, "nt", ("float8_e4m3", "float8_e4m3", "float8_e4m3"), epilogue="bias relu"),
    "few rows": Case(16, 4096, 4096),
    "beyond the end": Case(4000, 4104, 4104, "nn", a_batch=(4,), b_batch=(4,)),
}


@pytest.mark.parametrize("name", LARGE)
def test_one_warp_copies_boxes_and_registers_do_not_spill(name):
    source = text_of(LARGE[name])
    kernel = source[source.index('extern "C"') :].split('extern "C"')[1]
    assert len(re.findall(r"lw_tensor_copy_[2-5]d<", kernel)) == 2
    assert kernel.count("lw_wgmma_m64") == 1  # in a loop over a slab
    assert kernel.count("__syncthreads();") == 1  # when the barriers are made
    try:
        log = compile_cuda(source, "sm_90a", ["--fmad=false", "--ptxas-options=-v"]).log
    except NoNvrtc as error:
        pytest.skip(str(error))
    assert set(re.findall(r"(\d+) bytes spill", log)) == {"0"}
    assert "wgmma" not in log  # ptxas says so where it runs them one by one


def test_operands_whose_rows_begin_anywhere_are_copied_by_kernels_of_their_own():
    plan = Case(1000, 1001, 777).plan(H200)
    assert "A copied to A_pad first: its rows are multiples of 16 bytes then" in plan.explain()
    source = lw.build(plan.mod, target=H200).get_source("cuda")
    assert len(re.findall(r"void __launch_bounds__\(\d+\) main_kernel(_[12])?\(", source)) == 3


def test_the_plan_says_why():
    text = LARGE["wide tile"].plan(H200).explain()
    assert "tile 128 × 256: 2 warpgroups with 128 accumulators a thread" in text
    assert "4 stages of 48 KiB" in text
    assert "512 tiles in 132 blocks that stay, 3.88 waves" in text
    assert "groups of 16 rows of tiles" in text
    assert "of the peak of tensor cores" in text
    assert "the transposed product" in LARGE["few rows"].plan(H200).explain()


@pytest.mark.parametrize(("m", "n", "expected"), [(4096, 4096, (128, 256)), (4096, 16, (64, 16))])
def test_the_tile_that_should_be_fastest(m, n, expected):
    machine = GpuMachine.of(H200)
    size = Size(m, n, 4096, 1, 2, 2)
    best = min(tiles_for(size, machine), key=lambda tile: seconds(tile, size, machine))
    assert (best.rows, best.columns) == expected


def test_tiles_fit_shared_memory_and_registers():
    machine = GpuMachine.of(H200)
    for tile in tiles_for(Size(4096, 4096, 4096, 1, 2, 2), machine):
        assert tile.shared <= machine.shared_memory
        assert tile.resident * tile.threads * (tile.accumulators + 32) <= machine.gpu.registers_per_multiprocessor


@pytest.mark.parametrize(
    ("case", "target"),
    [
        (Case(128, 128, 128), "cuda -model=emulated"),  # sm_80
        (Case(128, 128, 128), "cuda -model=emulated -arch=sm_90"),
        (Case(1, 128, 128), EMULATED),  # a GEMV
        (Case(64, 64, 8), EMULATED),  # less than one wgmma
        (Case(16, 16, 64), EMULATED),
        (Case(2, 128, 128), EMULATED),
    ],
)
def test_what_is_left_to_other_rules(case, target):
    plan = autosched.apply(case.tensors(), target)
    assert "tensor gemm" not in [decision.rule for decision in plan.decisions], plan.explain()
    if case.m <= 2:
        case.check(lw.build(plan.mod, target=target), case.given())


def test_axes_between_rows_and_the_reduction():
    """Attention as transformers store it: heads lie between positions and their features."""
    q, v = (te.placeholder((2, 72, 3, 64), "float16", name=name) for name in "QV")
    p = te.placeholder((2, 3, 72, 72), "float16", name="P")
    e, f = te.reduce_axis((0, 64), name="e"), te.reduce_axis((0, 72), name="f")
    scores = te.compute(
        (2, 3, 72, 72),
        lambda b, h, i, j: te.sum(q[b, i, h, e].astype("float32") * v[b, j, h, e].astype("float32"), axis=e),
        name="S",
    )
    mixed = te.compute(
        (2, 72, 3, 64),
        lambda b, i, h, d: te.sum(p[b, h, i, f].astype("float32") * v[b, f, h, d].astype("float32"), axis=f),
        name="O",
    )
    plans = [autosched.apply([first, v, result], EMULATED) for first, result in ((q, scores), (p, mixed))]
    assert [plan.decisions[-1].rule for plan in plans] == ["tensor gemm", "tensor gemm"]
    functions = {f"f{k}": plan.mod["main"].with_attr("global_symbol", f"f{k}") for k, plan in enumerate(plans)}
    module, rng = lw.build(IRModule(functions), target=EMULATED), np.random.default_rng(0)
    x, y, z = [
        rng.standard_normal(shape).astype("float16") for shape in ((2, 72, 3, 64), (2, 72, 3, 64), (2, 3, 72, 72))
    ]
    for order in ORDERS:
        module.set_thread_order(order)
        first, second = np.zeros((2, 3, 72, 72), "float32"), np.zeros((2, 72, 3, 64), "float32")
        module["f0"](x, y, first)
        module["f1"](z, y, second)
        wide = [one.astype("float64") for one in (x, y, z)]
        np.testing.assert_allclose(first, np.einsum("bihe,bjhe->bhij", wide[0], wide[1]), atol=1e-4)
        np.testing.assert_allclose(second, np.einsum("bhif,bfhd->bihd", wide[2], wide[1]), atol=1e-4)


def test_results_on_their_way_need_no_barrier():
    """Each thread stores elements of its own to shared memory; mbarriers tell the warp that stores boxes."""
    case = Case(512, 512, 64)
    source = lw.build(case.plan().mod, target=EMULATED).get_source()
    assert "lw_tensor_store_2d" in source and "lw_role_barrier" not in source
