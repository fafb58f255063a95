"""Products and convolutions of bytes and halves: exact, or within a float64 bound, on every instruction there is."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te
from loopwright.autosched import Machine
from loopwright.autosched.rules.low_precision.sizes import Size, choose_sizes
from loopwright.autosched.rules.low_precision.units import choices
from loopwright.evaluator import evaluate
from loopwright.ir import AllocateConst, IRModule, Node, PrimFunc, bind_constants, post_order_visit
from loopwright.runtime import amx
from loopwright.target import Moves, describe
from loopwright.transform.pipeline import lower
from tests.autosched.same_results import check_same_bits, planned

FEATURES = describe("llvm").features
ONE, TWO = "llvm -num-cores=1", "llvm -num-cores=2"
VECTORS = "-mattr=-amx-int8,-amx-bf16"
EMERALD = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=emeraldrapids -num-cores=1"  # not this machine, for all we know
X86 = "x86" in describe("llvm").triple
HERE = {
    "tiles": ONE if "amx-int8" in FEATURES and not amx.ask() else "",
    "vnni": f"{ONE} {VECTORS}" if "avx512vnni" in FEATURES else "",
    "pairs": f"{ONE} -mcpu=haswell" if "avx2" in FEATURES else "",
    "neon": ONE if "dotprod" in FEATURES else "",
}
TARGETS = [pytest.param(target, id=name) for name, target in HERE.items() if target]
TWO_OF_THEM = TARGETS[:2]  # where the third would say nothing new
BYTES = [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8"), ("int8", "uint8")]


def matmul(
    m: int,
    k: int,
    n: int,
    types: tuple[str, str, str] = ("uint8", "int8", "int32"),
    flips: str = "",
    batch: int = 0,
    za: int = 0,
    zb: int = 0,
) -> PrimFunc:
    """C = (A - za) · (B - zb); `flips` names operands that are stored transposed."""
    lead = (batch,) if batch else ()
    a = te.placeholder((*lead, k, m) if "A" in flips else (*lead, m, k), types[0], name="A")
    b = te.placeholder((*lead, n, k) if "B" in flips else (*lead, k, n), types[1], name="B")
    r = te.reduce_axis((0, k), "k")

    def cell(*axes: te.Var) -> te.Tensor:
        *h, i, j = axes
        left = (a[(*h, r, i)] if "A" in flips else a[(*h, i, r)]).astype(types[2])
        right = (b[(*h, j, r)] if "B" in flips else b[(*h, r, j)]).astype(types[2])
        return te.sum((left - za if za else left) * (right - zb if zb else right), axis=r)

    return te.create_prim_func([a, b, te.compute((*lead, m, n), cell, name="C")])


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 1) -> np.ndarray:
    """Numbers of a type; those of bytes are its extremes as often as not."""
    random = np.random.default_rng(seed)
    if dtype in ("bfloat16", "float16", "float32"):
        return random.standard_normal(shape).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    made = random.integers(low, high, shape, endpoint=True)
    extreme = random.integers(0, 4, shape)
    return np.where(extreme == 0, low, np.where(extreme == 1, high, made)).astype(dtype)


def arguments(func: PrimFunc) -> list[np.ndarray]:
    buffers = func.argument_buffers()
    return [numbers(tuple(int(n) for n in b.shape), str(b.dtype), seed) for seed, b in enumerate(buffers)]


def check(target: str, *size: int, flips: str = "", za: int = 0, zb: int = 0, **options) -> str:
    """The plan is proved, and its result exact; what it says."""
    func = matmul(*size, flips=flips, za=za, zb=zb, **options)
    plan = autosched.apply(func, target)
    assert plan.schedule.is_proved
    mostly_padding = "products would be padded to" in plan.explain()  # a tile would hold next to nothing
    mostly_padding |= size == (1, 1, 1)  # one product, which is not even a sum
    assert plan.decisions[-1].rule == "low-precision GEMM" or mostly_padding, plan.explain()
    a, b, c = arguments(func)
    lw.build(plan.mod, target=target)(a, b, c)
    left = (a.swapaxes(-1, -2) if "A" in flips else a).astype("float64") - za  # sums are exact below 2 ** 53
    right = (b.swapaxes(-1, -2) if "B" in flips else b).astype("float64") - zb
    assert np.array_equal(c, left @ right)
    return plan.explain()


def run_as_planned(func: PrimFunc, arrays: list[np.ndarray], target: str) -> autosched.Plan:
    """The plan, after what it computes was found to be what the program as written computes here."""
    plan = autosched.apply(func, target)
    assert plan.schedule.is_proved and "refused" not in plan.explain()
    wanted, got = [array.copy() for array in arrays], [array.copy() for array in arrays]
    lw.build(func)(*wanted)
    lw.build(plan.mod, target=target)(*got)
    assert all(one.tobytes() == other.tobytes() for one, other in zip(wanted, got, strict=True))
    return plan


EDGES = [(1, 1, 1), (2, 3, 5), (16, 64, 16), (17, 63, 33), (33, 130, 100)]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", EDGES)
def test_every_edge(size: tuple[int, int, int], target: str) -> None:
    check(target, *size)


def test_tiles_are_not_filled_with_padding() -> None:
    """One product of halves, then a sum: LLVM 22 aborted on the tile that this was padded to."""
    a, b = te.placeholder((1, 16), "bfloat16", name="A"), te.placeholder((1, 3), "bfloat16", name="B")
    k, j = te.reduce_axis((0, 1), "k"), te.reduce_axis((0, 3), "j")
    left, right = (lambda i: a[k, i].astype("float32")), (lambda n: b[k, n].astype("float32"))
    c = te.compute((16, 3), lambda i, n: te.sum(left(i) * right(n), axis=k), name="C")
    d = te.compute((16,), lambda i: te.sum(c[i, j], axis=j), name="D")
    func = te.create_prim_func([a, b, d])
    check_any_plan(func, arguments(func))


def check_any_plan(func: PrimFunc, arrays: list[np.ndarray]) -> None:
    """What any plan computes is what the program as written computes, up to rounding."""
    wanted, got = [array.copy() for array in arrays], [array.copy() for array in arrays]
    lw.build(func)(*wanted)
    lw.build(func, autosched=True)(*got)
    assert np.allclose(wanted[-1], got[-1], rtol=0, atol=4 * 2.0**-24 * 3 * 16)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("target", TWO_OF_THEM)
@pytest.mark.parametrize("types", BYTES)
def test_signs(types: tuple[str, str], target: str) -> None:
    check(target, 19, 37, 35, types=(*types, "int32"))


@pytest.mark.parametrize("target", TARGETS)
def test_extremes_do_not_saturate(target: str) -> None:
    """255 * 127 twice is more than 16 bits: an instruction that adds pairs there would show it."""
    built = lw.build(matmul(5, 300, 33), target=target, autosched=True)
    for a, b in ((0, 127), (255, -128), (255, 127)):
        result = np.zeros((5, 33), "int32")
        built(np.full((5, 300), a, "uint8"), np.full((300, 33), b, "int8"), result)
        assert np.all(result == 300 * a * b)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("target", TWO_OF_THEM)
@pytest.mark.parametrize("flips", ["A", "B", "AB"])
def test_transposed_operands(flips: str, target: str) -> None:
    check(target, 21, 40, 50, flips=flips, types=("int8" if "A" in flips else "uint8", "int8", "int32"))


@pytest.mark.parametrize("target", TARGETS)
def test_batches(target: str) -> None:
    check(target, 9, 20, 35, batch=3)
    check(target, 16, 64, 32, types=("int8", "int8", "int32"), batch=2, flips="B")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("target", TWO_OF_THEM)
@pytest.mark.parametrize(("types", "za", "zb"), [(BYTES[0], 7, 0), (BYTES[1], 0, -5), (BYTES[2], 128, 100)])
def test_zero_points(types: tuple[str, str], za: int, zb: int, target: str) -> None:
    told = check(target, 11, 30, 35, types=(*types, "int32"), za=za, zb=zb)
    assert "zero points and shifts are applied" in told


def quantised(m: int, k: int, n: int, expanded: bool = False, output_too: bool = False) -> PrimFunc:
    """int8 = clip(round(((A - za) · (B - zb[j])) * scale[j]) + zc): what a quantised layer computes."""
    a, b = te.placeholder((m, k), "uint8", name="A"), te.placeholder((k, n), "int8", name="B")
    zb, scale = te.placeholder((n,), "int32", name="zb"), te.placeholder((n,), "float32", name="scale")
    r, r1, r2 = (te.reduce_axis((0, k), name) for name in ("r", "r1", "r2"))
    i32 = "int32"
    parts = []
    if expanded:
        dot = te.compute((m, n), lambda i, j: te.sum(a[i, r].astype(i32) * b[r, j].astype(i32), axis=r), name="dot")
        rows = te.compute((m,), lambda i: te.sum(a[i, r1].astype(i32), axis=r1), name="rows")
        columns = te.compute((n,), lambda j: te.sum(b[r2, j].astype(i32), axis=r2), name="columns")
        cell = lambda i, j: dot[i, j] - zb[j] * rows[i] - 9 * columns[j] + k * 9 * zb[j]
        product = te.compute((m, n), cell, name="product")
    else:
        cell = lambda i, j: te.sum((a[i, r].astype(i32) - 9) * (b[r, j].astype(i32) - zb[j]), axis=r)
        product = te.compute((m, n), cell, name="product")
        parts = [product] if output_too else []

    def requantise(i: te.Var, j: te.Var) -> te.Tensor:
        value = te.round(product[i, j].astype("float32") * scale[j]) + te.const(3.0, "float32")
        low, high = te.const(-128.0, "float32"), te.const(127.0, "float32")
        return te.max(te.min(value, high), low).astype("int8")

    return te.create_prim_func([a, b, zb, scale, *parts, te.compute((m, n), requantise, name="Y")])


def quantised_arguments(func: PrimFunc) -> list[np.ndarray]:
    made = []
    for array, buffer in zip(arguments(func), func.argument_buffers(), strict=True):
        made.append(np.random.default_rng(5).integers(-128, 128, array.shape) if buffer.name == "zb" else array)
        if buffer.name == "scale":
            made[-1] = np.abs(array) * 1e-4 + 1e-5
        made[-1] = made[-1].astype(array.dtype)
    return made


@pytest.mark.one_in(2)
@pytest.mark.parametrize("target", TWO_OF_THEM)
@pytest.mark.parametrize(("size", "expanded"), [((33, 70, 50), False), ((17, 30, 40), True)])
def test_requantised(size: tuple[int, int, int], expanded: bool, target: str) -> None:
    func = quantised(*size, expanded)
    plan = run_as_planned(func, quantised_arguments(func), target)
    rules = {name: decision.rule for decision in plan.decisions for name in decision.blocks}
    assert rules["dot" if expanded else "product"] == "low-precision GEMM"
    assert expanded or rules["Y"] == "low-precision GEMM"


def test_a_result_that_the_caller_sees_too() -> None:
    func = quantised(17, 40, 35, output_too=True)
    run_as_planned(func, quantised_arguments(func), ONE)


def constants(module: IRModule) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}

    def look(node: Node) -> None:
        if isinstance(node, AllocateConst):
            found[node.buffer_var.name] = np.asarray(node.data)

    post_order_visit(module["main"].body, look)
    return found


@pytest.mark.one_in(2)
@pytest.mark.parametrize("target", TWO_OF_THEM)
@pytest.mark.parametrize(("types", "flips"), [(BYTES[0], ""), (BYTES[1], "B")])
def test_constants_are_packed_by_the_compiler(types: tuple[str, str], flips: str, target: str) -> None:
    func = matmul(20, 40, 50, (*types, "int32"), flips=flips, za=5)
    a, b, c = arguments(func)
    plan = autosched.apply(bind_constants(func, {"B": b}), target)
    assert "it is constant: packed at compile time" in plan.explain()
    lw.build(plan.mod, target=target)(a, c)
    right = b.T if flips else b
    assert np.array_equal(c, (a.astype("int64") - 5) @ right.astype("int64"))
    panels = [array for name, array in constants(lower(plan.mod, target)).items() if "sum" not in name]
    assert len(panels) == 1 and panels[0].dtype.itemsize <= 2  # bytes stay bytes, or become pairs of 16 bits


def float_check(m: int, k: int, n: int, types: tuple[str, str, str], target: str) -> str:
    func = matmul(m, k, n, types)
    a, b, c = arguments(func)
    plan = autosched.apply(func, target)
    assert plan.schedule.is_proved
    lw.build(plan.mod, target=target)(a, b, c)
    left, right = a.astype("float64"), b.astype("float64")
    step = float(np.finfo(types[2]).eps)
    bound = (k + 1) * step * (np.abs(left) @ np.abs(right)) + 1e-300
    assert np.all(np.abs(c.astype("float64") - left @ right) <= bound)
    return plan.explain()


HALVES = [("bfloat16", "bfloat16", "float32"), ("float16", "float16", "float32"), ("float16", "float16", "float16")]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("types", HALVES)
def test_halves(types: tuple[str, str, str], target: str) -> None:
    float_check(33, 65, 70, types, target)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", [(1, 1, 1), (5, 67, 1), (1, 9, 33), (4, 1, 4)])
@pytest.mark.parametrize("types", HALVES[:2])
def test_halves_of_a_single_row_or_column(types: tuple[str, str, str], size: tuple[int, int, int]) -> None:
    float_check(*size, types, ONE)


def test_the_instruction_for_halves() -> None:
    if HERE["tiles"]:
        assert "AMX bf16bf16f32" in float_check(32, 64, 32, HALVES[0], HERE["tiles"])
    if "avx512fp16" in FEATURES:
        assert "fma.v32f16" in float_check(32, 64, 64, HALVES[2], ONE)
    if HERE["vnni"]:
        told = float_check(32, 64, 64, HALVES[0], HERE["vnni"])
        assert "plain vectors: the machine has no instruction that is faster" in told


@pytest.mark.long
def test_several_threads_compute_the_same_bits() -> None:
    told = ""
    for target in dict.fromkeys([TWO, f"{TWO} {VECTORS}" if X86 else TWO, "llvm -num-cores=16"]):
        for size in ((600, 300, 700), (3000, 300, 20)):
            told += check(target, *size, types=("int8", "int8", "int32"))
    assert "parallelised over 2 threads" in told and "before all tasks" in told
    func = matmul(100, 300, 200, HALVES[0])
    a, b, _ = arguments(func)
    results = []
    for target in (ONE, TWO, "llvm -num-cores=16"):
        results.append(np.zeros((100, 200), "float32"))
        lw.build(func, target=target, autosched=True)(a, b, results[-1])
    assert all(result.tobytes() == results[0].tobytes() for result in results)


def test_a_long_reduction_is_done_in_slabs() -> None:
    for target in {ONE, f"{ONE} {VECTORS}" if X86 else ONE}:
        told = check(target, 5, 40000, 18)
        assert "slabs of" in told


# --- convolutions ---------------------------------------------------------------------------------------------------


def convolution(
    layout: str,
    channels: int = 16,
    size: int = 9,
    filters: int = 20,
    window: int = 3,
    stride: int = 1,
    pad: int = 1,
    images: int = 1,
    za: int = 0,
    types: tuple[str, str, str] = ("uint8", "int8", "int32"),
    requantised: bool = False,
) -> PrimFunc:
    """A convolution, its padding before it, perhaps with a bias and rounded to int8 after it."""
    wide = size + 2 * pad
    out = (wide - window) // stride + 1
    first = layout == "NCHW"
    X = te.placeholder((images, channels, size, size) if first else (images, size, size, channels), types[0], name="X")
    shape = (filters, channels, window, window) if first else (window, window, channels, filters)
    W, bias = te.placeholder(shape, types[1], name="W"), te.placeholder((filters,), types[2], name="bias")

    def padded(*at: te.Var) -> te.Tensor:
        y, x = (at[2], at[3]) if first else (at[1], at[2])
        inside = te.all(y >= pad, y < size + pad, x >= pad, x < size + pad)
        moved = (*at[:2], y - pad, x - pad) if first else (at[0], y - pad, x - pad, at[3])
        return te.if_then_else(inside, X[moved], te.const(za, types[0]))

    P = X
    if pad:
        P = te.compute((images, channels, wide, wide) if first else (images, wide, wide, channels), padded, name="P")
    c, dy, dx = (te.reduce_axis((0, n), name) for n, name in ((channels, "c"), (window, "dy"), (window, "dx")))

    def cell(*at: te.Var) -> te.Tensor:
        n, o, y, x = at if first else (at[0], at[3], at[1], at[2])
        y, x = y * stride + dy, x * stride + dx
        image = (P[n, c, y, x] if first else P[n, y, x, c]).astype(types[2])
        weight = (W[o, c, dy, dx] if first else W[dy, dx, c, o]).astype(types[2])
        return te.sum((image - za if za else image) * weight, axis=[c, dy, dx])

    C = te.compute((images, filters, out, out) if first else (images, out, out, filters), cell, name="C")
    if not requantised:
        return te.create_prim_func([X, W, C])

    def rounded(*at: te.Var) -> te.Tensor:
        value = (C[at] + bias[at[1] if first else at[3]]).astype("float32") * te.const(0.002, "float32")
        low, high = te.const(-128.0, "float32"), te.const(127.0, "float32")
        return te.max(te.min(te.round(value), high), low).astype("int8")

    return te.create_prim_func([X, W, bias, te.compute(C.shape, rounded, name="Y")])


CONVOLUTIONS = [
    {},
    {"images": 2, "stride": 2, "channels": 3, "types": ("int8", "int8", "int32")},
    {"window": 1, "pad": 0, "channels": 24, "size": 7},
    {"window": 5, "pad": 2, "za": 7, "requantised": True, "size": 8, "channels": 5},
    {"images": 2, "za": 3, "requantised": True, "filters": 32},
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("number", "layout"), [(0, "NHWC"), *[(k, ("NCHW", "NHWC")[k % 2]) for k in range(len(CONVOLUTIONS))]]
)
def test_convolutions(number: int, layout: str) -> None:
    targets = [target for target in HERE.values() if target] or [ONE]
    target = targets[(number + (layout == "NCHW")) % len(targets)]  # each program on one of them, all of them in turn
    func = convolution(layout, **CONVOLUTIONS[number])
    arrays = arguments(func)
    arrays[2] = np.random.default_rng(3).integers(-999, 999, arrays[2].shape).astype(arrays[2].dtype)
    plan = run_as_planned(func, arrays, target)
    assert plan.decisions[-1].rule == "low-precision GEMM"
    assert any(way in plan.explain() for way in ("im2col copies the windows into a matrix", "channels interleaved"))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_constant_weights_of_a_convolution(layout: str) -> None:
    func = convolution(layout, images=2, za=3, size=6, requantised=True)
    x, w, bias, y = arguments(func)
    bias = np.random.default_rng(3).integers(-999, 999, bias.shape).astype("int32")
    wanted = y.copy()
    lw.build(func)(x, w, bias, wanted)
    for target in dict.fromkeys([TWO, f"{ONE} {VECTORS}" if X86 else ONE]):
        plan = autosched.apply(bind_constants(func, {"W": w}), target)
        lw.build(plan.mod, target=target)(x, bias, y)
        assert np.array_equal(y, wanted)


def test_convolutions_of_halves() -> None:
    for layout in ("NHWC", "NCHW"):
        func = convolution(layout, channels=8, types=("bfloat16", "bfloat16", "float32"))
        x, w, c = arguments(func)
        lw.build(func, target=ONE, autosched=True)(x, w, c)
        wide = convolution(layout, channels=8, types=("float64", "float64", "float64"))
        exact, most = np.zeros(c.shape), np.zeros(c.shape)
        lw.build(wide)(x.astype("float64"), w.astype("float64"), exact)
        lw.build(wide)(np.abs(x.astype("float64")), np.abs(w.astype("float64")), most)
        assert np.all(np.abs(c - exact) <= 73 * 2.0**-23 * most)


# --- convolutions on bands of their image -----------------------------------------------------------------------------

BANDS = {
    "whole tiles": {"channels": 64, "size": 14, "filters": 32},
    "channels and filters of no tile": {"channels": 65, "size": 13, "filters": 20, "images": 2},
    "few channels": {"channels": 5, "size": 7, "window": 5, "pad": 3},
    "stride": {"channels": 64, "size": 14, "stride": 2},
    "no padding": {"channels": 12, "size": 13, "pad": 0},
    "a line of a prime": {"channels": 16, "size": 19, "za": 3},
    "one place": {"channels": 64, "size": 13, "window": 1, "pad": 0, "images": 2},
    "one place and a stride": {"channels": 96, "size": 14, "window": 1, "pad": 0, "stride": 2},
    "rounded": {"channels": 64, "size": 14, "requantised": True, "za": 5, "filters": 33},
    "signed": {"channels": 24, "size": 7, "types": ("int8", "int8", "int32")},
}


@pytest.fixture
def without_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices of windows cost more than anything."""
    monkeypatch.setattr(Machine, "moves", Moves(byte_unfolded=1e9))


@pytest.mark.skipif(not HERE["tiles"], reason="this machine has no tiles")
@pytest.mark.usefixtures("without_matrices")
@pytest.mark.parametrize("name", BANDS)
def test_bands(name: str) -> None:
    func = convolution("NCHW", **BANDS[name])
    arrays = arguments(func)
    arrays[2] = np.random.default_rng(3).integers(-999, 999, arrays[2].shape).astype(arrays[2].dtype)
    plan = run_as_planned(func, arrays, (ONE, TWO)[len(name) % 2])
    assert "channels interleaved" in plan.explain() and "im2col copies the windows into a matrix" not in plan.explain()


@pytest.mark.skipif(not HERE["tiles"], reason="this machine has no tiles")
@pytest.mark.usefixtures("without_matrices")
def test_bands_of_dilated_windows_with_zero_points_of_filters() -> None:
    """(x - 3) · (w - z[f]), a window whose places are two apart."""
    X, W = te.placeholder((1, 20, 11, 11), "uint8", name="X"), te.placeholder((16, 20, 3, 3), "int8", name="W")
    Z = te.placeholder((16,), "int32", name="Z")
    c, dy, dx = te.reduce_axis((0, 20), "c"), te.reduce_axis((0, 3), "dy"), te.reduce_axis((0, 3), "dx")

    def cell(n: te.Var, f: te.Var, y: te.Var, x: te.Var) -> te.Tensor:
        pixel = X[n, c, y + 2 * dy, x + 2 * dx].astype("int32") - 3
        return te.sum(pixel * (W[f, c, dy, dx].astype("int32") - Z[f]), axis=[c, dy, dx])

    func = te.create_prim_func([X, W, Z, te.compute((1, 16, 7, 7), cell, name="C")])
    arrays = arguments(func)
    arrays[2] = np.random.default_rng(3).integers(-9, 9, 16).astype("int32")
    plan = run_as_planned(func, arrays, ONE)
    assert "channels interleaved" in plan.explain()


@pytest.mark.skipif("amx-bf16" not in FEATURES or not HERE["tiles"], reason="this machine has no tiles of halves")
@pytest.mark.usefixtures("without_matrices")
def test_bands_of_halves() -> None:
    options = {"channels": 34, "size": 7, "filters": 16}
    func = convolution("NCHW", types=("bfloat16", "bfloat16", "float32"), **options)
    x, w, c = arguments(func)
    plan = autosched.apply(func, ONE)
    assert "2 channels interleaved" in plan.explain()
    lw.build(plan.mod, target=ONE)(x, w, c)
    wide = convolution("NCHW", types=("float64", "float64", "float64"), **options)
    exact, most = np.zeros(c.shape), np.zeros(c.shape)
    lw.build(wide)(x.astype("float64"), w.astype("float64"), exact)
    lw.build(wide)(np.abs(x.astype("float64")), np.abs(w.astype("float64")), most)
    assert np.all(np.abs(c - exact) <= 34 * 9 * 2.0**-23 * most)


def test_what_is_said_of_bands() -> None:
    said = autosched.apply(convolution("NCHW", channels=128, size=28, filters=128), EMERALD).explain()
    assert "bands of P, 4 channels interleaved: all taps of the 3 × 3 window are read from the band" in said
    assert "W packed in tiles of 16 filters by 64 channels: before all tasks" in said
    assert "calls for 128 filters and 14 pixels of" in said
    flat = autosched.apply(convolution("NCHW", channels=64, size=56, filters=64, window=1, pad=0), EMERALD).explain()
    assert "bands of X, 4 channels interleaved: its pixels are one contiguous line" in flat


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_what_has_no_bands(layout: str) -> None:
    """Channels last; a line that is not parted evenly by the stride."""
    func = convolution(layout, channels=64, size=13, stride=2, pad=0)
    assert "im2col copies the windows into a matrix" in autosched.apply(func, EMERALD).explain()


@pytest.mark.usefixtures("without_matrices")
def test_groups_have_no_bands() -> None:
    """Each has weights of its own."""
    X, W = te.placeholder((1, 4, 16, 8, 8), "uint8", name="X"), te.placeholder((4, 16, 16, 3, 3), "int8", name="W")
    c, dy, dx = te.reduce_axis((0, 16), "c"), te.reduce_axis((0, 3), "dy"), te.reduce_axis((0, 3), "dx")

    def cell(n: te.Var, g: te.Var, f: te.Var, y: te.Var, x: te.Var) -> te.Tensor:
        pixel, weight = X[n, g, c, y + dy, x + dx], W[g, f, c, dy, dx]
        return te.sum(pixel.astype("int32") * weight.astype("int32"), axis=[c, dy, dx])

    func = te.create_prim_func([X, W, te.compute((1, 4, 16, 6, 6), cell, name="C")])
    assert "im2col copies the windows into a matrix" in autosched.apply(func, EMERALD).explain()


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "func",
    [
        matmul(33, 40, 50, ("int8", "int8", "int32"), za=5, zb=2, flips="AB"),
        quantised(17, 40, 35),
        convolution("NCHW", size=5, images=2, requantised=True),
    ],
    ids=["product", "requantised", "convolution"],
)
def test_traces_replay(func: PrimFunc) -> None:
    planned(func, f"{ONE} {VECTORS}" if X86 else ONE)


# --- what is chosen -------------------------------------------------------------------------------------------------


def test_what_is_said() -> None:
    target = "llvm -mtriple=x86_64-linux-gnu -mcpu=cascadelake -num-cores=1"
    told = autosched.apply(matmul(64, 128, 96, ("int8", "int8", "int32")), target).explain()
    assert "avx512.vpdpbusd.512: 128 multiply-adds per cycle; a lane reduces 4 consecutive k" in told
    assert "B_uint8 is converted to uint8: the instruction takes int8 and uint8" in told
    assert "A_sum: zero points and shifts are applied through row and column sums" in told
    assert "blocks of 8 × 48: 24 of 32 registers are accumulators; a step loads 11 times for 24 dot products" in told
    assert "B_uint8 packed in panels of 48 columns: 4 rows interleaved, by the task that reads them" in told


@pytest.mark.parametrize(
    ("cpu", "types", "instruction", "converted"),
    [
        ("sapphirerapids", ("uint8", "uint8", "int32"), "AMX u8u8s32", ("", "")),
        ("cascadelake", ("uint8", "int8", "int32"), "avx512.vpdpbusd.512", ("", "")),
        ("alderlake", ("int8", "uint8", "int32"), "avx512.vpdpbusd.256", ("", "")),
        ("sierraforest", ("int8", "int8", "int32"), "avx2.vpdpbssd.256", ("", "")),
        ("skylake-avx512", ("uint8", "int8", "int32"), "avx512.pmaddw.d.512", ("int16", "int16")),
        ("haswell", ("int8", "int8", "int32"), "avx2.pmadd.wd", ("int16", "int16")),
        ("znver4", ("bfloat16", "bfloat16", "float32"), "avx512bf16.dpbf16ps.512", ("", "")),
        ("sapphirerapids", ("bfloat16", "bfloat16", "float32"), "AMX bf16bf16f32", ("", "")),
        ("haswell", ("bfloat16", "bfloat16", "float32"), "", ("float32", "float32")),
    ],
)
def test_the_unit_of_x86_processors(cpu: str, types: tuple[str, str, str], instruction: str, converted) -> None:
    machine = Machine.of(f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}")
    found = choices(machine, types, (False, False), has_zero_points=False)[0]
    assert (found.unit.instruction if found.unit else "", found.types) == (instruction, converted)


@pytest.mark.parametrize(
    ("cpu", "types", "instruction", "converted"),
    [
        ("neoverse-n1", ("int8", "int8", "int32"), "neon.sdot.v4i32.v16i8", ("", "")),
        ("neoverse-n1", ("uint8", "uint8", "int32"), "neon.udot.v4i32.v16i8", ("", "")),
        ("neoverse-n1", ("uint8", "int8", "int32"), "neon.udot.v4i32.v16i8", ("", "uint8")),
        ("neoverse-n2", ("uint8", "int8", "int32"), "neon.usdot.v4i32.v16i8", ("", "")),
        ("neoverse-n2", ("bfloat16", "bfloat16", "float32"), "neon.bfdot.v4f32.v8bf16", ("", "")),
        ("neoverse-n1", ("float16", "float16", "float16"), "fma.v8f16", ("", "")),
    ],
)
def test_the_unit_of_arm_processors(cpu: str, types: tuple[str, str, str], instruction: str, converted) -> None:
    machine = Machine.of(f"llvm -mtriple=aarch64-linux-gnu -mcpu={cpu}")
    found = choices(machine, types, (False, False), has_zero_points=False)[0]
    assert (found.unit.instruction if found.unit else "", found.types) == (instruction, converted)


def test_constants_are_not_what_is_converted() -> None:
    machine = Machine.of("llvm -mtriple=x86_64-linux-gnu -mcpu=cascadelake")
    types = ("int8", "int8", "int32")
    assert choices(machine, types, (False, True), False)[0].types == ("uint8", "")
    assert choices(machine, types, (False, False), False)[0].types == ("", "uint8")


def test_sources_in_c_name_no_instructions() -> None:
    plan = autosched.apply(matmul(16, 32, 16), "c")
    assert not plan.trace.relies_on
    assert "the machine has no faster instruction for uint8 by int8" in plan.explain()


def test_products_that_are_left_to_others() -> None:
    n = te.var("n")
    a, b = te.placeholder((n, 16), "uint8", name="A"), te.placeholder((16, 16), "int8", name="B")
    k = te.reduce_axis((0, 16), "k")
    cell = lambda i, j: te.sum(a[i, k].astype("int32") * b[k, j].astype("int32"), axis=k)
    func = te.create_prim_func([a, b, te.compute((n, 16), cell, name="C")])
    assert autosched.apply(func, ONE).decisions[-1].rule != "low-precision GEMM"
    x = te.placeholder((1, 4, 8, 8), "int8", name="X")
    w = te.placeholder((4, 3, 3), "int8", name="W")
    dy, dx = te.reduce_axis((0, 3), "dy"), te.reduce_axis((0, 3), "dx")
    value = lambda n, c, y, z: te.sum(x[n, c, y + dy, z + dx].astype("int32") * w[c, dy, dx].astype("int32"), [dy, dx])
    depthwise = te.create_prim_func([x, w, te.compute((1, 4, 6, 6), value, name="C")])
    plan = check_same_bits(depthwise, arguments(depthwise), ONE, may_refuse=True)
    assert plan.decisions[-1].rule != "low-precision GEMM"


def test_sizes_are_whole_tasks() -> None:
    machine = Machine.of("llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -num-cores=4")
    for choice in choices(machine, ("int8", "int8", "int32"), (False, False), False):
        for rows, columns, depth in ((1, 1, 1), (7, 100, 5), (1000, 999, 777), (5000, 40, 3000), (40, 5000, 64)):
            size = Size(rows, columns, depth, 1, False, True, False, False, False, False)
            sizes = choose_sizes(size, choice.unit, machine)
            padded = sizes.padded(rows, columns, depth)
            assert all(wide >= own for wide, own in zip(padded, (rows, columns, depth), strict=True))
            assert sizes.task_rows % sizes.mr == 0 and sizes.task_columns % sizes.nr == 0
            assert sizes.nr % choice.unit.lanes == 0 and padded[2] % choice.unit.k == 0


# --- another machine, emulated --------------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("check_emulated", ROOT / "tools" / "check_emulated.py")
emulated = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(emulated)
ARM = emulated.MACHINES["aarch64"]


@pytest.mark.skipif(bool(ARM.missing), reason="there is no emulator")
@pytest.mark.parametrize(
    ("cpu", "func"),
    [
        ("neoverse-n1", matmul(7, 21, 18, ("int8", "int8", "int32"))),
        ("neoverse-n1", matmul(7, 21, 18, ("uint8", "int8", "int32"), za=4, flips="B")),
        ("neoverse-n1", convolution("NCHW", size=5, channels=6, types=("int8", "int8", "int32"))),
    ],
    ids=["sdot", "udot", "convolution"],
)
def test_on_an_emulated_machine(cpu: str, func: PrimFunc) -> None:
    machine = ARM._replace(target=f"llvm -mtriple=aarch64-unknown-linux-gnu -mcpu={cpu} -num-cores=1")
    plan = planned(func, machine.target)
    assert plan.decisions[-1].rule == "low-precision GEMM"
    *_, (_, lowered) = emulated.stages(plan.mod["main"], emulated.Target(machine.target))
    arrays = arguments(func)
    wanted = [array.copy() for array in arrays]
    evaluate(func, *wanted)
    with tempfile.TemporaryDirectory() as name:
        emulated.prepare(machine, Path(name))
        got = emulated.run(machine, lowered, arrays, Path(name))
    assert np.array_equal(got[-1], wanted[-1])
