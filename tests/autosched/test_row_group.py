"""Row groups: softmax, normalisations and their like are right on every shape, run row by row, and say why."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te
from loopwright.autosched import Plan
from loopwright.ir import PrimFunc, Var, assert_structural_equal
from loopwright.schedule import Schedule, Trace
from loopwright.transform import lower

ONE, TWO, MANY = "llvm -num-cores=1", "llvm -num-cores=2", "llvm -num-cores=16"
UNIT = 2.0**-24

Size = int | Var


def softmax(*shape: Size, dtype: str = "float32", log: bool = False) -> PrimFunc:
    """Along the last axis."""
    *rows, n = shape
    a = te.placeholder(shape, dtype, name="A")
    k, k2 = te.reduce_axis((0, n), "k"), te.reduce_axis((0, n), "k2")
    m = te.compute(rows, lambda *i: te.max(a[(*i, k)], axis=k), name="m")
    e = te.compute(shape, lambda *i: te.exp(a[i] - m[i[:-1]]), name="e")
    s = te.compute(rows, lambda *i: te.sum(e[(*i, k2)], axis=k2), name="s")
    if log:
        b = te.compute(shape, lambda *i: a[i] - m[i[:-1]] - te.log(s[i[:-1]]), name="B")
    else:
        b = te.compute(shape, lambda *i: e[i] / s[i[:-1]], name="B")
    return te.create_prim_func([a, b])


def exact_softmax(a: np.ndarray) -> np.ndarray:
    e = np.exp(a.astype(np.float64) - a.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def softmax_bound(a: np.ndarray) -> np.ndarray:
    """The relative error: of each exp by its argument and 2 ulp, of a sum of n, of a division."""
    reach = np.abs(a - a.max(-1, keepdims=True)).max(-1, keepdims=True)
    return UNIT * (2 * reach + a.shape[-1] + 10) * exact_softmax(a)


def layernorm(m: Size, n: Size, outputs: Sequence[str] = ("o",)) -> PrimFunc:
    count = te.const(1.0, "float32") / n.astype("float32") if isinstance(n, Var) else 1.0 / n
    a = te.placeholder((m, n), name="A")
    g, b = te.placeholder((n,), name="g"), te.placeholder((n,), name="b")
    k, k2 = te.reduce_axis((0, n), "k"), te.reduce_axis((0, n), "k2")
    s = te.compute((m,), lambda i: te.sum(a[i, k], axis=k), name="s")
    mean = te.compute((m,), lambda i: s[i] * count, name="mean")
    v = te.compute((m,), lambda i: te.sum((a[i, k2] - mean[i]) * (a[i, k2] - mean[i]), axis=k2), name="v")
    var = te.compute((m,), lambda i: v[i] * count, name="var")
    o = te.compute((m, n), lambda i, j: (a[i, j] - mean[i]) * te.rsqrt(var[i] + 1e-5) * g[j] + b[j], name="o")
    made = {"mean": mean, "var": var, "o": o}
    return te.create_prim_func([a, g, b, *[made[name] for name in outputs]])


def plan_of(func: PrimFunc, target: str = TWO) -> Plan:
    """The plan, proved, of which the trace replays to the same program."""
    plan = autosched.apply(func, target)
    assert plan.schedule.is_proved
    again = Schedule(func)
    Trace.apply_json_to_schedule(plan.trace.as_json(), again)
    assert_structural_equal(again.mod, plan.mod)
    return plan


def run(func: PrimFunc, *arrays: np.ndarray, target: str = TWO) -> None:
    lw.build(func, target=target, autosched=True)(*arrays)


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def shared_loops(plan: Plan, one: str, other: str) -> int:
    """How many loops are around both blocks."""
    first, second = [[loop.var for loop in plan.schedule.get_loops(name)] for name in (one, other)]
    return len([var for var in first if var in second])


def rules(plan: Plan) -> dict[str, str]:
    return {block: decision.rule for decision in plan.decisions for block in decision.blocks}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (5, 4), (4, 16), (9, 17), (33, 129)])
def test_softmax_is_within_its_bound(shape: tuple[int, int]) -> None:
    a, b = values(*shape), np.zeros(shape, "float32")
    run(softmax(*shape), a, b)
    assert (np.abs(b - exact_softmax(a)) <= softmax_bound(a)).all()


@pytest.mark.parametrize("shape", [(2, 2, 7, 33), (1, 3, 64)])
def test_rows_may_have_several_axes(shape: tuple[int, ...]) -> None:
    a, b = values(*shape), np.zeros(shape, "float32")
    plan = autosched.apply(softmax(*shape), TWO)
    assert set(rules(plan).values()) == {"row group"}
    lw.build(plan.mod, target=TWO)(a, b)
    assert (np.abs(b - exact_softmax(a)) <= softmax_bound(a)).all()


def test_softmax_of_sizes_known_at_run_time() -> None:
    func = softmax(te.var("m"), te.var("n"))
    plan = plan_of(func)
    assert rules(plan)["B"] == "row group"
    made = lw.build(plan.mod, target=TWO)
    for shape in [(1, 1), (3, 200), (40, 17)]:
        a, b = values(*shape), np.zeros(shape, "float32")
        made(a, b)
        assert (np.abs(b - exact_softmax(a)) <= softmax_bound(a)).all()


@pytest.mark.parametrize("shape", [(20, 100)])
def test_log_softmax(shape: tuple[int, int]) -> None:
    a, b = values(*shape), np.zeros(shape, "float32")
    run(softmax(*shape, log=True), a, b)
    exact = np.log(exact_softmax(a))
    assert (np.abs(b - exact) <= UNIT * (shape[1] + 16 + 8 * np.abs(exact).max())).all()


def test_softmax_in_double_precision() -> None:
    a = values(7, 100).astype("float64")
    b = np.zeros_like(a)
    run(softmax(7, 100, dtype="float64"), a, b)
    assert (np.abs(b - exact_softmax(a)) <= 1e-14).all()


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (7, 100)])
def test_layernorm_with_statistics_as_outputs(shape: tuple[int, int]) -> None:
    m, n = shape
    a, g, b = values(m, n), values(n, seed=1), values(n, seed=2)
    mean, var, o = np.zeros(m, "float32"), np.zeros(m, "float32"), np.zeros((m, n), "float32")
    run(layernorm(m, n, ("mean", "var", "o")), a, g, b, mean, var, o)
    wide = a.astype(np.float64)
    sums = UNIT * (n + 4) * np.abs(wide).sum(1) / n
    assert (np.abs(mean - wide.mean(1)) <= sums).all()
    squares = ((wide - wide.mean(1, keepdims=True)) ** 2).sum(1) / n
    assert (np.abs(var - squares) <= UNIT * (2 * n + 16) * (squares + np.abs(wide).max() ** 2)).all()
    exact = (wide - wide.mean(1, keepdims=True)) / np.sqrt(squares + 1e-5)[:, None] * g + b
    slack = UNIT * (4 * n + 32) * (np.abs(wide).max() ** 2 / (squares + 1e-5) + 1)[:, None] * (1 + np.abs(exact))
    assert (np.abs(o - exact) <= slack * (1 + np.abs(g))).all()


def test_axes_of_one_between_rows_and_columns() -> None:
    shape = (6, 4, 50)
    a = te.placeholder(shape, name="A")
    k, k2 = te.reduce_axis((0, 50), "k"), te.reduce_axis((0, 50), "k2")
    m = te.compute((6, 4, 1), lambda b, i, _: te.max(a[b, i, k], axis=k), name="m")
    e = te.compute(shape, lambda b, i, j: te.exp(a[b, i, j] - m[b, i, 0]), name="e")
    s = te.compute((6, 4, 1), lambda b, i, _: te.sum(e[b, i, k2], axis=k2), name="s")
    t = te.compute((6, 4, 1), lambda b, i, _: 1.0 / s[b, i, 0], name="t")
    o = te.compute(shape, lambda b, i, j: e[b, i, j] * t[b, i, 0], name="o")
    plan = autosched.apply(te.create_prim_func([a, t, o]), TWO)
    assert set(rules(plan).values()) == {"row group"}
    assert shared_loops(plan, "e", "s_rf") == 2
    x, once, out = values(*shape), np.zeros((6, 4, 1), "float32"), np.zeros(shape, "float32")
    lw.build(plan.mod, target=TWO)(x, once, out)
    assert (np.abs(out - exact_softmax(x)) <= softmax_bound(x)).all()


def test_rmsnorm_and_an_epilogue_run_in_one_nest() -> None:
    m, n = 12, 200
    a, r = te.placeholder((m, n), name="A"), te.placeholder((m, n), name="R")
    k = te.reduce_axis((0, n), "k")
    s = te.compute((m,), lambda i: te.sum(a[i, k] * a[i, k], axis=k), name="s")
    y = te.compute((m, n), lambda i, j: a[i, j] * te.rsqrt(s[i] * (1.0 / n) + 1e-6), name="y")
    o = te.compute((m, n), lambda i, j: te.tanh(y[i, j]) + r[i, j], name="o")
    func = te.create_prim_func([a, r, y, o])
    plan = autosched.apply(func, TWO)
    assert {rules(plan)[name] for name in ("s", "y", "o")} == {"row group"}
    x, z = values(m, n), values(m, n, seed=3)
    first, last = np.zeros((m, n), "float32"), np.zeros((m, n), "float32")
    lw.build(plan.mod, target=TWO)(x, z, first, last)
    wide = x.astype(np.float64)
    exact = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-6)
    assert (np.abs(first - exact) <= UNIT * (n + 8) * np.abs(exact)).all()
    assert (np.abs(last - (np.tanh(exact) + z)) <= UNIT * (n + 16) * (1 + np.abs(exact) + np.abs(z))).all()


def test_two_sums_over_one_input_read_it_once() -> None:
    n = 96
    a = te.placeholder((n, 8, 50), name="A")
    k, l, k2, l2 = [te.reduce_axis((0, size), name) for size, name in [(n, "k"), (50, "l"), (n, "k2"), (50, "l2")]]
    s = te.compute((8,), lambda c: te.sum(a[k, c, l], axis=[k, l]), name="s")
    q = te.compute((8,), lambda c: te.sum(a[k2, c, l2] * a[k2, c, l2], axis=[k2, l2]), name="q")
    plan = plan_of(te.create_prim_func([a, s, q]))
    assert rules(plan) == {"s": "row group", "q": "row group"}
    assert shared_loops(plan, "s_rf", "q_rf") == 3  # c, k and the vectors of l
    x, first, second = values(n, 8, 50), np.zeros(8, "float32"), np.zeros(8, "float32")
    lw.build(plan.mod, target=TWO)(x, first, second)
    wide = x.astype(np.float64)
    assert (np.abs(first - wide.sum((0, 2))) <= UNIT * n * 50 * np.abs(wide).sum((0, 2))).all()
    assert (np.abs(second - (wide**2).sum((0, 2))) <= UNIT * n * 50 * (wide**2).sum((0, 2))).all()


def test_a_softmax_reads_twice_and_keeps_a_row() -> None:
    plan = plan_of(softmax(64, 1000))
    assert shared_loops(plan, "e", "s_rf") == 2  # the value and its sum are made in one pass
    assert shared_loops(plan, "m_rf", "e") == 1
    assert "m, e, s shrunk to a row: it stays in L1" in plan.explain()
    assert "e = T.decl_buffer((1000,))" in lower(plan.mod, TWO).script()


def test_results_do_not_depend_on_threads() -> None:
    for shape in [(300, 700), (2, 60000)]:
        a = values(*shape)
        one, many = np.zeros_like(a), np.zeros_like(a)
        for target, out in [(ONE, one), (MANY, many)]:
            run(softmax(*shape), a, out, target=target)
        assert one.tobytes() == many.tobytes()


def test_few_long_rows_are_left_to_rules_that_divide_them() -> None:
    plan = autosched.apply(softmax(2, 200000), MANY)
    assert "row group" not in rules(plan).values()
    refused = "another rule was refused: row group: 2 rows are too few: the work is worth 16 pieces"
    assert refused in plan.explain()


def test_small_work_stays_on_one_thread() -> None:
    assert "T.parallel" not in autosched.apply(softmax(8, 16), MANY).mod["main"].script()
    assert "T.parallel" in autosched.apply(softmax(512, 1024), MANY).mod["main"].script()


def _other_rows(a: te.Tensor) -> te.Tensor:
    return te.compute((8, 40), lambda i, j: a[7 - i, j], name="B")


def _transposed(a: te.Tensor) -> te.Tensor:
    return te.compute((40, 8), lambda j, i: a[i, j], name="B")


@pytest.mark.parametrize("last", [_other_rows, _transposed])
def test_a_block_on_other_rows_is_not_in_the_group(last: Callable[[te.Tensor], te.Tensor]) -> None:
    a = te.placeholder((8, 40), name="A")
    k, k2 = te.reduce_axis((0, 40), "k"), te.reduce_axis((0, 40), "k2")
    m = te.compute((8,), lambda i: te.max(a[i, k], axis=k), name="m")
    e = te.compute((8, 40), lambda i, j: te.exp(a[i, j] - m[i]), name="e")
    s = te.compute((8,), lambda i: te.sum(e[i, k2], axis=k2), name="s")
    b = last(e)
    func = te.create_prim_func([a, s, b])
    plan = autosched.apply(func, TWO)
    assert rules(plan)["B"] != "row group"
    x, total = values(8, 40), np.zeros(8, "float32")
    out = np.zeros([int(size) for size in b.shape], "float32")
    lw.build(plan.mod, target=TWO)(x, total, out)
    exact = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    exact = exact[::-1] if last is _other_rows else exact.T
    assert (np.abs(out - exact) <= 1e-6 * exact).all()


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_nothing_to_do(shape: tuple[int, int]) -> None:
    a, b = np.zeros(shape, "float32"), np.zeros(shape, "float32")
    run(softmax(*shape), a, b)


def test_a_guessed_number_of_rows_is_said_to_be_one() -> None:
    told = autosched.apply(softmax(te.size_var("n"), 512), TWO).explain()
    assert "planned for 1024 iterations of v_i0: the dimension is symbolic, and known only at run time" in told
    assert "1024 rows (planned) keep 2 cores busy" in told
    known = autosched.apply(softmax(1024, 512), TWO).explain()
    assert "planned for" not in known
    assert "1024 rows keep 2 cores busy" in known
