"""Constant operands of products: packed by the compiler, right at every edge, and never packed by a call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te
from loopwright.autosched import Machine
from loopwright.autosched.rules.contraction.tiles import Size, choose_tiles
from loopwright.ir import (
    AllocateConst,
    IRModule,
    Node,
    PrimFunc,
    assert_structural_equal,
    bind_constants,
    post_order_visit,
)
from loopwright.schedule import Schedule, Trace
from loopwright.transform import precompute_constants
from tests.compile_caching import switch_on

ONE, TWO = "llvm -num-cores=1", "llvm -num-cores=2"
ON_X86 = "x86" in lw.target.host_description().triple
ELSEWHERE = "llvm -mtriple=aarch64-linux-gnu" if ON_X86 else "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512"


def matmul(m: int, k: int, n: int, dtype: str = "float32", flips: str = "") -> PrimFunc:
    a = te.placeholder((k, m) if "A" in flips else (m, k), dtype, name="A")
    b = te.placeholder((n, k) if "B" in flips else (k, n), dtype, name="B")
    r = te.reduce_axis((0, k), "k")
    left = (lambda i: a[r, i]) if "A" in flips else (lambda i: a[i, r])
    right = (lambda j: b[j, r]) if "B" in flips else (lambda j: b[r, j])
    return te.create_prim_func([a, b, te.compute((m, n), lambda i, j: te.sum(left(i) * right(j), axis=r), name="C")])


def numbers(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    if dtype.startswith("int"):
        return random.integers(-100, 100, shape).astype(dtype)
    return (random.random(shape) - 0.5).astype(dtype)


def constants(module: IRModule | PrimFunc) -> dict[str, np.ndarray]:
    func = module if isinstance(module, PrimFunc) else module["main"]
    found: dict[str, np.ndarray] = {}

    def look(node: Node) -> None:
        if isinstance(node, AllocateConst):
            found[node.buffer_var.name] = np.asarray(node.data)

    post_order_visit(func.body, look)
    return found


def assert_close(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    exact = a.astype("float64") @ b.astype("float64")
    if c.dtype.kind == "i":
        assert np.array_equal(c, a @ b)
        return
    step = (a.shape[1] + 1) * float(np.finfo(c.dtype).eps)
    assert (np.abs(c - exact) <= step * (np.abs(a).astype("float64") @ np.abs(b).astype("float64"))).all()


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("m", "k", "n", "flips", "target"),
    [
        (2, 2, 2, "", ONE),
        (16, 16, 16, "B", ONE),
        (17, 15, 33, "", ONE),
        (17, 15, 33, "B", ONE),
        (64, 48, 96, "", ONE),
        (63, 65, 97, "B", ONE),
        (8, 256, 256, "", TWO),
        (8, 256, 256, "B", TWO),
        (5, 300, 130, "", TWO),
        (70, 1, 70, "", ONE),
    ],
)
def test_right_and_the_same_bits_as_with_an_argument(m: int, k: int, n: int, flips: str, target: str) -> None:
    a, b = numbers((m, k)), numbers((n, k) if flips else (k, n), seed=1)
    func = matmul(m, k, n, flips=flips)
    c, d = np.full((m, n), 7, "float32"), np.full((m, n), 7, "float32")
    lw.build(bind_constants(func, {"B": b}), target=target, autosched=True)(a, c)
    lw.build(func, target=target, autosched=True)(a, b, d)
    assert_close(c, a, b.T if flips else b)
    assert_close(d, a, b.T if flips else b)
    # With an argument, few rows of a transposed B may be dot products in lanes: these add in another order.
    if "dot products" not in autosched.apply(func, target).explain():
        assert c.tobytes() == d.tobytes()


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_other_types(dtype: str) -> None:
    a, b = numbers((33, 40), dtype), numbers((40, 50), dtype, 1)
    c = np.zeros((33, 50), dtype)
    lw.build(bind_constants(matmul(33, 40, 50, dtype), {"B": b}), autosched=True)(a, c)
    assert_close(c, a, b)


def test_the_packed_panels_are_all_that_is_left() -> None:
    func = bind_constants(matmul(64, 48, 96), {"B": numbers((48, 96))})
    plan = autosched.apply(func, ONE)
    assert "B prepacked in panels of" in plan.explain() and "it is constant: packed" in plan.explain()
    assert plan.schedule.is_proved
    again = Schedule(func)
    Trace.apply_json_to_schedule(plan.trace.as_json(), again)
    assert_structural_equal(again.mod, plan.mod)
    done = precompute_constants(plan.mod)
    (left,) = constants(done).values()
    assert left.ndim == 3 and left.size == 48 * 96
    assert 'T.block("B_global")' in plan.mod.script() and 'T.block("B_global")' not in done.script()


def test_the_edge_is_padded_with_zeros() -> None:
    b = numbers((48, 90))
    plan = autosched.apply(bind_constants(matmul(64, 48, 90), {"B": b}), ONE)
    (left,) = constants(precompute_constants(plan.mod)).values()
    panels, depth, width = left.shape
    assert depth == 48 and panels * width >= 90 and np.count_nonzero(left) == np.count_nonzero(b)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("m", "k", "n"), [(17, 15, 33), (64, 48, 96), (8, 100, 64)])
@pytest.mark.parametrize("bound", ["A", "AB", "B"])
def test_a_row_operand_that_lies_the_other_way(m: int, k: int, n: int, bound: str) -> None:
    a, b = numbers((k, m)), numbers((k, n), seed=1)
    func = bind_constants(matmul(m, k, n, flips="A"), {name: {"A": a, "B": b}[name] for name in bound})
    plan = autosched.apply(func, ONE)
    assert plan.schedule.is_proved
    assert ("A prepacked along k: it is a constant" in plan.explain()) == ("A" in bound)
    assert ("B prepacked" in plan.explain()) == ("B" in bound)
    c = np.zeros((m, n), "float32")
    lw.build(func, target=ONE, autosched=True)(*[x for name, x in (("A", a), ("B", b)) if name not in bound], c)
    assert_close(c, a.T, b)


def scaled(m: int, k: int, n: int) -> PrimFunc:
    """int8 weights with a scale for each column, and a bias."""
    a = te.placeholder((m, k), name="A")
    w = te.placeholder((k, n), "int8", name="W")
    s, bias = te.placeholder((n,), name="S"), te.placeholder((n,), name="bias")
    r = te.reduce_axis((0, k), "k")
    b = te.compute((k, n), lambda i, j: w[i, j].astype("float32") * s[j], name="B")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    d = te.compute((m, n), lambda i, j: te.max(c[i, j] + bias[j], te.const(0, "float32")), name="D")
    return te.create_prim_func([a, w, s, bias, d])


@pytest.mark.parametrize(("m", "k", "n"), [(16, 32, 48), (9, 33, 50)])
def test_weights_of_8_bits_are_widened_and_scaled_by_the_compiler(m: int, k: int, n: int) -> None:
    a, w, s, bias = numbers((m, k)), numbers((k, n), "int8", 1), numbers((n,), seed=2), numbers((n,), seed=3)
    func = bind_constants(scaled(m, k, n), {"W": w, "S": s, "bias": bias})
    plan = autosched.apply(func, ONE)
    assert "B prepacked" in plan.explain()
    left = constants(precompute_constants(plan.mod))
    assert sorted(str(array.dtype) for array in left.values()) == ["float32", "float32"]  # the panels and the bias
    d = np.zeros((m, n), "float32")
    lw.build(func, target=ONE, autosched=True)(a, d)
    b = w.astype("float32") * s
    exact = np.maximum(a.astype("float64") @ b + bias, 0)
    bound = (k + 3) * 2.0**-23 * (np.abs(a).astype("float64") @ np.abs(b) + np.abs(bias))
    assert (np.abs(d - exact) <= bound).all()


def test_a_scale_that_is_an_argument_is_packed_by_the_call() -> None:
    func = bind_constants(scaled(64, 64, 64), {"W": numbers((64, 64), "int8")})
    plan = autosched.apply(func, ONE)
    assert "prepacked" not in plan.explain()
    assert list(constants(precompute_constants(plan.mod))) == ["W"]


def test_two_products_share_a_constant() -> None:
    a, b = te.placeholder((32, 48), name="A"), te.placeholder((48, 48), name="B")
    r, q = te.reduce_axis((0, 48), "r"), te.reduce_axis((0, 48), "q")
    c = te.compute((32, 48), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    d = te.compute((32, 48), lambda i, j: te.sum(c[i, q] * b[q, j], axis=q), name="D")
    w, x = numbers((48, 48)), numbers((32, 48), seed=1)
    func = bind_constants(te.create_prim_func([a, b, d]), {"B": w})
    made = lw.build(func, target=ONE, autosched=True)
    out = np.zeros((32, 48), "float32")
    made(x, out)
    exact = x.astype("float64") @ w @ w
    bound = 100 * 2.0**-23 * (np.abs(x).astype("float64") @ np.abs(w) @ np.abs(w))
    assert (np.abs(out - exact) <= bound).all()
    stored = made.get_source("ll").count("= internal externally_initialized constant")
    assert stored == 1  # equal panels are one


def test_a_constant_that_is_used_elsewhere_stays_too() -> None:
    a, b = te.placeholder((32, 48), name="A"), te.placeholder((48, 48), name="B")
    r = te.reduce_axis((0, 48), "r")
    c = te.compute((32, 48), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    e = te.compute((48, 48), lambda i, j: b[i, j] * a[0, j], name="E")
    w, x = numbers((48, 48)), numbers((32, 48), seed=1)
    func = bind_constants(te.create_prim_func([a, b, c, e]), {"B": w})
    out, other = np.zeros((32, 48), "float32"), np.zeros((48, 48), "float32")
    lw.build(func, target=ONE, autosched=True)(x, out, other)
    assert_close(out, x, w)
    assert np.array_equal(other, w * x[0])
    assert len(constants(precompute_constants(autosched.apply(func, ONE).mod))) == 2


def test_an_exported_library_holds_the_panels(tmp_path: Path) -> None:
    w, x = numbers((64, 96)), numbers((32, 64), seed=1)
    func = bind_constants(matmul(32, 64, 96), {"B": w})
    (panels,) = constants(precompute_constants(autosched.apply(func, ONE).mod)).values()
    made = lw.build(func, target=ONE, autosched=True)
    made.export_library(str(tmp_path / "dense.o"))
    image = (tmp_path / "dense.o").read_bytes()
    assert panels.tobytes() in image and w.tobytes() not in image
    made.export_library(str(tmp_path / "dense.so"))
    c = np.zeros((32, 96), "float32")
    lw.runtime.load_module(str(tmp_path / "dense.so"))["main"](x, c)
    assert_close(c, x, w)


def test_the_cache_finds_it_by_the_content_of_the_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    switch_on(monkeypatch, tmp_path / "cache")
    func, w, x = matmul(24, 32, 64), numbers((32, 64)), numbers((24, 32), seed=1)
    lw.build(bind_constants(func, {"B": w}), target=ONE, autosched=True)
    again = lw.build(bind_constants(func, {"B": w.copy()}), target=ONE, autosched=True)
    other = lw.build(bind_constants(func, {"B": w + 1}), target=ONE, autosched=True)
    assert "lower" not in again.timings and "lower" in other.timings
    for made, weights in ((again, w), (other, w + 1)):
        c = np.zeros((24, 64), "float32")
        made(x, c)
        assert_close(c, x, weights)


@pytest.mark.parametrize("size", [64, 1024])  # 16 KiB and 4 MiB
def test_weights_for_another_machine_are_packed_here(size: int) -> None:
    w = numbers((size, size))
    func = bind_constants(matmul(8, size, size), {"B": w})
    plan = autosched.apply(func, ELSEWHERE)
    assert "B prepacked" in plan.explain()
    with lw.target.Target(ELSEWHERE):
        (panels,) = constants(precompute_constants(plan.mod)).values()
    made = lw.build(func, target=ELSEWHERE, autosched=True)
    assert panels.tobytes() in made.object_code()


def test_what_another_machine_may_round_otherwise_is_left_to_it() -> None:
    a, w = te.placeholder((32, 48), name="A"), te.placeholder((48, 64), name="W")
    r = te.reduce_axis((0, 48), "r")
    b = te.compute((48, 64), lambda i, j: te.exp(w[i, j]), name="B")
    c = te.compute((32, 64), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    func = bind_constants(te.create_prim_func([a, w, c]), {"W": numbers((48, 64))})
    assert "prepacked" not in autosched.apply(func, ELSEWHERE).explain()
    assert "prepacked" in autosched.apply(func, ONE).explain()
    assert lw.build(func, target=ELSEWHERE, autosched=True).get_source("asm")


def test_a_function_can_refuse() -> None:
    func = bind_constants(matmul(64, 64, 64), {"B": numbers((64, 64))}).with_attr("precompute_constants", False)
    assert "prepacked" not in autosched.apply(func, ONE).explain()


def test_the_model_counts_no_packing() -> None:
    machine = Machine.of("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1")
    online = choose_tiles(Size(8, 1024, 1024, 1, "float32", 1024), machine)
    ready = choose_tiles(Size(8, 1024, 1024, 1, "float32", 1024, is_prepacked=True), machine)
    assert ready.packs and not online.packs and ready.cycles < online.cycles
