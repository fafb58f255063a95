"""Products whose sizes are known only when the program runs: packed, right at every edge, proved and replayed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te
from loopwright.autosched import Machine
from loopwright.autosched.rules.contraction.few_rows import tiles_for_few_rows
from loopwright.autosched.rules.contraction.tiles import MOST_CASES, Size, choose_tiles
from loopwright.ir import PrimFunc, assert_structural_equal, bind_constants
from loopwright.schedule import Schedule, Trace

ONE, TWO = "llvm -num-cores=1", "llvm -num-cores=2"
HEIGHTS = (0, 1, 2, 5, 6, 7, 8, 9, 12, 13, 37, 64, 65, 97)  # up to the tiles, one more and one less, primes


def product(
    n: object, k: object, m: object, dtype: str = "float32", flips: str = "", batch: object = None, after: str = ""
) -> PrimFunc:
    """C = A · B, and `after` it a bias and a relu, or the exponential of the sum with it."""
    lead = () if batch is None else (batch,)
    a = te.placeholder((*lead, k, n) if "A" in flips else (*lead, n, k), dtype, name="A")
    b = te.placeholder((*lead, m, k) if "B" in flips else (*lead, k, m), dtype, name="B")
    r = te.reduce_axis((0, k), "k")

    def cell(*axes: te.Var) -> te.Tensor:
        *h, i, j = axes
        left = a[(*h, r, i)] if "A" in flips else a[(*h, i, r)]
        right = b[(*h, j, r)] if "B" in flips else b[(*h, r, j)]
        return te.sum(left * right, axis=r)

    c = te.compute((*lead, n, m), cell, name="C")
    if not after:
        return te.create_prim_func([a, b, c])
    bias = te.placeholder((m,), dtype, name="bias")
    ends = {"relu": lambda x: te.max(x, te.const(0, dtype)), "exp": te.exp}
    d = te.compute((*lead, n, m), lambda *axes: ends[after](c[axes] + bias[axes[-1]]), name="D")
    return te.create_prim_func([a, b, bias, d])


def numbers(shape: Sequence[int], dtype: str = "float32", seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    if dtype.startswith("int"):
        return random.integers(-100, 100, shape).astype(dtype)
    return (random.random(shape) - 0.5).astype(dtype)


def check(
    built: Callable[..., object],
    n: int,
    k: int,
    m: int,
    dtype: str = "float32",
    flips: str = "",
    batch: int | None = None,
) -> None:
    """The product of these sizes is right within what rounding explains."""
    lead = () if batch is None else (batch,)
    a = numbers((*lead, k, n) if "A" in flips else (*lead, n, k), dtype, 1)
    b = numbers((*lead, m, k) if "B" in flips else (*lead, k, m), dtype, 2)
    c = np.full((*lead, n, m), 7, dtype)
    built(a, b, c)
    left = np.swapaxes(a, -1, -2) if "A" in flips else a
    right = np.swapaxes(b, -1, -2) if "B" in flips else b
    if dtype.startswith("int"):
        assert np.array_equal(c, left @ right)
        return
    exact = left.astype("float64") @ right.astype("float64")
    bound = (k + 1) * float(np.finfo(dtype).eps) * (np.abs(left).astype("float64") @ np.abs(right).astype("float64"))
    assert np.all(np.abs(c.astype("float64") - exact) <= bound), (n, k, m)


@cache
def plan_of(build: Callable[[], PrimFunc], target: str) -> autosched.Plan:
    plan = autosched.apply(build(), target)
    assert plan.schedule.is_proved
    assert [decision.rule for decision in plan.decisions] == ["packed GEMM"], plan.explain()
    return plan


n, m, k, b = te.var("n"), te.var("m"), te.var("k"), te.var("b")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("columns", "flips"), [(64, ""), (70, ""), (64, "B"), (70, "A")])
def test_rows(columns: int, flips: str) -> None:
    plan = plan_of(lambda: product(n, 40, columns, flips=flips), ONE)
    built = lw.build(plan.mod, target=ONE)
    for rows in HEIGHTS:
        check(built, rows, 40, columns, flips=flips)


def test_rows_on_two_threads_have_the_same_bits() -> None:
    one = lw.build(product(n, 64, 128), target=ONE, autosched=True)
    plan = autosched.apply(product(n, 64, 128), TWO)
    assert "parallelised over 2 threads" in plan.explain()
    two = lw.build(plan.mod, target=TWO)
    for rows in (1, 8, 9, 100):
        a, w = numbers((rows, 64), seed=1), numbers((64, 128), seed=2)
        c, d = np.zeros((rows, 128), "float32"), np.ones((rows, 128), "float32")
        one(a, w, c)
        two(a, w, d)
        assert c.tobytes() == d.tobytes()
        check(two, rows, 64, 128)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["float64", "int32", "float16"])
def test_other_types(dtype: str) -> None:
    built = lw.build(product(n, 24, 48, dtype), target=ONE, autosched=True)
    for rows in (1, 6, 7, 19):
        check(built, rows, 24, 48, dtype)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("batch", "target"), [(3, ONE), (b, ONE), (b, TWO)])
def test_batches(batch: object, target: str) -> None:
    built = lw.build(plan_of(lambda: product(n, 24, 32, batch=batch), target).mod, target=target)
    for rows in (0, 1, 8, 9, 20):
        check(built, rows, 24, 32, batch=3)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("rows", "flips"), [(n, ""), (20, "B")])
def test_columns(rows: object, flips: str) -> None:
    plan = plan_of(lambda: product(rows, 24, m, flips=flips), ONE)
    built = lw.build(plan.mod, target=ONE)
    for columns in (0, 1, 15, 16, 17, 63, 64, 65, 97, 130):
        check(built, 20, 24, columns, flips=flips)
    if rows is n:
        for height in (1, 6, 7):
            check(built, height, 24, 70, flips=flips)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("flips", ["", "B"])
def test_depth(flips: str) -> None:
    plan = plan_of(lambda: product(n, k, 64, flips=flips), ONE)
    built = lw.build(plan.mod, target=ONE)
    for depth in (0, 1, 2, 15, 16, 17, 31, 130):
        check(built, 3, depth, 64, flips=flips)
        check(built, 19, depth, 64, flips=flips)


def test_all_sizes() -> None:
    plan = plan_of(lambda: product(n, k, m, batch=b, flips="B"), TWO)
    built = lw.build(plan.mod, target=TWO)
    for sizes in ((1, 1, 1, 1), (7, 31, 65, 2), (20, 64, 64, 1), (5, 3, 130, 3), (0, 4, 4, 2), (4, 4, 4, 0)):
        check(built, *sizes[:3], flips="B", batch=sizes[3])


def test_a_height_that_is_a_product_is_left_to_other_rules() -> None:
    """What is proved is linear in the sizes."""
    a, w = te.placeholder((n * m, 24), name="A"), te.placeholder((24, 64), name="B")
    r = te.reduce_axis((0, 24), "k")
    c = te.compute((n * m, 64), lambda i, j: te.sum(a[i, r] * w[r, j], axis=r), name="C")
    built = lw.build(te.create_prim_func([n, m, a, w, c]), target=ONE, autosched=True)
    for one, other in ((1, 1), (3, 3), (5, 7), (0, 4)):
        check(lambda *given, one=one, other=other: built(one, other, *given), one * other, 24, 64)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("columns", "flips", "after"), [(64, "", "relu"), (70, "", "exp"), (64, "B", "exp"), (m, "", "relu")]
)
def test_element_wise_work_follows(columns: object, flips: str, after: str) -> None:
    plan = plan_of(lambda: product(n, 40, columns, flips=flips, after=after), ONE)
    assert plan.decisions[0].blocks == ("C", "D")
    built = lw.build(plan.mod, target=ONE)
    width = columns if isinstance(columns, int) else 41
    for rows in (0, 1, 7, 8, 9, 37):
        a, bias = numbers((rows, 40), seed=1), numbers((width,), seed=3)
        w = numbers((width, 40) if flips else (40, width), seed=2)
        got = np.full((rows, width), 7, "float32")
        built(a, w, bias, got)
        right = w.T if flips else w
        total = a.astype("float64") @ right + bias
        bound = 42 * 2.0**-23 * (np.abs(a).astype("float64") @ np.abs(right) + np.abs(bias))
        if after == "relu":
            assert np.all(np.abs(got - np.maximum(total, 0)) <= bound)
        else:
            assert np.all(np.abs(got - np.exp(total)) <= np.exp(total) * (bound + 4 * 2.0**-23))


@pytest.mark.parametrize(("columns", "flips"), [(64, ""), (70, "B")])
def test_constant_weights_are_prepacked(columns: int, flips: str) -> None:
    w = numbers((columns, 40) if flips else (40, columns), seed=2)
    func = bind_constants(product(n, 40, columns, flips=flips), {"B": w})
    plan = autosched.apply(func, ONE)
    assert "B prepacked in panels" in plan.explain() and "in place" not in plan.explain()
    built = lw.build(plan.mod, target=ONE)
    right = (w.T if flips else w).astype("float64")
    for rows in HEIGHTS:
        a, c = numbers((rows, 40), seed=1), np.full((rows, columns), 7, "float32")
        built(a, c)
        assert np.all(np.abs(c - a.astype("float64") @ right) <= 41 * 2.0**-23 * (np.abs(a) @ np.abs(right)))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("build", [lambda: product(n, 40, 64), lambda: product(n, k, 70, flips="B", after="relu")])
def test_the_trace_replays(build: Callable[[], PrimFunc]) -> None:
    func = build()
    plan = autosched.apply(func, TWO)
    again = Schedule(func)
    Trace.apply_json_to_schedule(plan.trace.as_json(), again)
    assert_structural_equal(again.mod, plan.mod)


def test_few_rows_read_the_operand_in_place() -> None:
    target = "llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -num-cores=2"
    text = autosched.apply(product(n, 256, 256), target).explain()
    assert "B packed in panels of 64 columns" in text
    assert re.search(r"up to \d+ rows have tiles of 8 × 32, which read B in place: packing it would take longer", text)
    assert "a single row (GEMV) is scheduled as a reduction: B is then read once" in text


@pytest.mark.parametrize("cpu", ["x86_64-linux-gnu -mcpu=sapphirerapids", "aarch64-linux-gnu -mcpu=neoverse-n1"])
def test_sizes_for_few_rows(cpu: str) -> None:
    machine = Machine.of(f"llvm -mtriple={cpu} -num-cores=1")
    size = Size(1024, 1024, 1024, 1, "float32", 1024, knows_m=False)
    tiles = choose_tiles(size, machine)
    few = tiles_for_few_rows(size, machine, tiles)
    assert tiles.packs and few is not None and not few.tiles.packs
    assert few.most >= MOST_CASES >= few.tiles.mr and 1024 % few.tiles.nr == 0
    assert few.tiles.mr * few.tiles.vectors + few.tiles.vectors < machine.registers
    assert tiles_for_few_rows(size._replace(row_stride=0), machine, tiles) is None
    assert tiles_for_few_rows(size._replace(n=1021), machine, tiles) is None


def test_two_unknown_sizes_that_differ_are_not_taken_for_one() -> None:
    """D is as high as C is, or not: which is not known before the program runs."""
    a, w = te.placeholder((n, 24), name="A"), te.placeholder((24, 32), name="B")
    r = te.reduce_axis((0, 24), "k")
    c = te.compute((n, 32), lambda i, j: te.sum(a[i, r] * w[r, j], axis=r), name="C")
    other = te.placeholder((m,), name="E")
    d = te.compute((m, 32), lambda i, j: c[te.min(i, n - 1), j] + other[i], name="D")
    plan = autosched.apply(te.create_prim_func([a, w, other, d]), ONE)
    assert plan.decisions[0].blocks == ("C",)
