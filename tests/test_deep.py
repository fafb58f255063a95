"""Deep and large programs: expressions 10,000 levels deep and functions of 100,000 nodes pass through every layer."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir, te
from loopwright.arith import Analyzer
from loopwright.evaluator import evaluate
from loopwright.ir import intrinsics
from loopwright.ir.verifier import verify
from loopwright.schedule import Schedule
from loopwright.script import from_source
from tests.campaign import programs

# Three times what Python's own limit lets recurse; what takes as much stack or time again is seen in `make fuzz`.
DEPTH = programs(3_000, 10_000)
NODES = programs(30_000, 100_000)
BLOCKS = programs(150, 500)

Grow = Callable[[ir.Expr, ir.Expr, int], ir.Expr]


@pytest.fixture(autouse=True)
def recursion_limit_stays():
    before = sys.getrecursionlimit()
    yield
    assert sys.getrecursionlimit() == before


def tower(grow: Grow, dtype: str = "int32", depth: int = DEPTH) -> tuple[ir.PrimFunc, ir.Expr]:
    """B[i] = grow(… grow(grow(A[i], A[i], 0), A[i], 1) …), and the expression."""
    A, i = ir.decl_buffer((4,), dtype, "A"), ir.Var("i")
    load: ir.Expr = ir.BufferLoad(A, [i])
    expr = load
    for level in range(depth):
        expr = grow(expr, load, level)
    B = ir.decl_buffer((4,), expr.dtype, "B")
    return ir.PrimFunc([A, B], ir.For(i, 0, 4, ir.ForKind.SERIAL, ir.BufferStore(B, expr, [i]))), expr


def mixed(expr: ir.Expr, load: ir.Expr, level: int) -> ir.Expr:
    """Three kinds of arithmetic, the depth now on the left, now on the right."""
    literal = ir.const(1 + level % 3, load.dtype)
    return (ir.Add(expr, literal), ir.Sub(literal, expr), ir.Mul(expr, literal))[level % 3]


def let(expr: ir.Expr, load: ir.Expr, level: int) -> ir.Expr:
    var = ir.Var("v", expr.dtype)
    return ir.Let(var, expr, var + load)


def conjunction(expr: ir.Expr, load: ir.Expr, level: int) -> ir.Expr:
    return load >= 0 if level == 0 else ir.And(expr, load < level)


def run_everywhere(function: ir.PrimFunc) -> None:
    """The evaluator and the native code give the same."""
    buffers = function.argument_buffers()
    a = np.arange(4, dtype=buffers[0].dtype.numpy())
    wanted, got = (np.zeros(4, buffers[1].dtype.numpy()) for _ in range(2))
    evaluate(function, a, wanted)
    lw.build(function)(a, got)
    np.testing.assert_array_equal(got, wanted)


# --- 10,000 levels ---


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "grow",
    [
        pytest.param(mixed, id="arithmetic"),
        pytest.param(lambda expr, load, level: ir.Cast("int32", ir.Cast("int64", expr)), id="casts"),
        pytest.param(lambda expr, load, level: ir.FloorDiv(expr, ir.const(2 + level % 3)), id="divisions"),
        pytest.param(lambda expr, load, level: ir.Max(expr, load), id="extrema"),
        pytest.param(let, id="lets"),
    ],
)
def test_a_deep_expression_is_built_and_run(grow):
    function, _ = tower(grow)
    verify(function)
    run_everywhere(function)


def test_deep_conditions():
    """LLVM's optimizer takes more than 20 s for 10,000 branches in a row, so native code runs a tenth of them."""
    function, _ = tower(conjunction)
    verify(function)
    lw.analysis.check_program(function)
    lw.lower(function)
    b = np.ones(4, bool)
    evaluate(function, np.arange(4, dtype="int32"), b)
    assert b.tolist() == [True, False, False, False]
    run_everywhere(tower(conjunction, depth=DEPTH // 10)[0])


def test_deep_selects():
    """As with conditions, native code runs only a part."""

    def select(expr: ir.Expr, load: ir.Expr, level: int) -> ir.Expr:
        return ir.Select(load > level % 7, expr, load)

    function, _ = tower(select)
    verify(function)
    lw.lower(function)
    evaluate(function, np.arange(4, dtype="int32"), np.zeros(4, "int32"))
    run_everywhere(tower(select, depth=DEPTH // 10)[0])


def test_deep_choices():
    """As with conditions, native code runs only a part."""

    def choice(expr: ir.Expr, load: ir.Expr, level: int) -> ir.Expr:
        return intrinsics.if_then_else(load > level % 5, expr, load + level)

    function, _ = tower(choice)
    verify(function)
    lw.lower(function)
    evaluate(function, np.arange(4, dtype="int32"), np.zeros(4, "int32"))
    run_everywhere(tower(choice, depth=DEPTH // 50)[0])


def test_a_deep_expression_prints_compares_and_hashes():
    (function, expr), (other, _) = tower(mixed), tower(mixed)
    assert len(function.script()) > 4 * DEPTH
    assert repr(expr).count("- ") == DEPTH // 3
    ir.assert_structural_equal(function, other)
    assert ir.structural_hash(function) == ir.structural_hash(other)
    changed, _ = tower(lambda e, x, k: mixed(e, x, k) if k else e + 2)
    assert not ir.structural_equal(function, changed)
    with pytest.raises(ValueError, match="2"):
        ir.assert_structural_equal(function, changed)


def test_a_long_sum_reads_back():
    """Chains of one operator need no parentheses; Python itself reads at most 200 nested ones."""
    function, _ = tower(lambda e, x, k: e + x)
    ir.assert_structural_equal(from_source(function.script()), function)


def test_substitution_in_a_deep_expression():
    function, expr = tower(mixed)
    loop = function.body
    assert isinstance(loop, ir.For)
    assert ir.substitute(expr, {ir.Var("other"): 1}) is expr
    moved = ir.substitute(expr, {loop.loop_var: ir.const(2)})
    assert moved is not expr
    assert not ir.uses_var(moved, lambda var: var is loop.loop_var)


def test_a_deep_expression_is_simplified():
    n = ir.Var("n")
    expr: ir.Expr = n
    for _ in range(DEPTH):
        expr = ir.Sub(ir.Add(expr, ir.const(3)), ir.const(1))
    assert repr(Analyzer().simplify(expr)) == f"n + {2 * DEPTH}"
    assert Analyzer().can_prove(expr > n)
    expr = n
    for _ in range(DEPTH):
        expr = ir.Min(ir.Max(expr, n), n)
    assert Analyzer().simplify(expr) is n


def test_a_deep_tensor_expression():
    A = te.placeholder((4,), "int32", name="A")

    def body(i: ir.Expr) -> ir.Expr:
        expr: ir.Expr = A[i]
        for level in range(DEPTH // 2):
            expr = expr * 3 - level
        return expr

    run_everywhere(te.create_prim_func([A, te.compute((4,), body, name="B")]))


def test_deep_programs_in_a_second_thread():
    done: list[str] = []

    def work() -> None:
        function, expr = tower(mixed)
        verify(function)
        ir.structural_hash(function)
        function.script()
        Analyzer().simplify(expr)
        run_everywhere(function)
        done.append("all")

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == ["all", "all"]


def test_a_deep_error_shows_itself():
    """The message of an error about a deep expression is short."""
    function, _ = tower(lambda e, x, k: e + (x if k else ir.Var("nowhere")))
    with pytest.raises(lw.LoopwrightError, match="variable nowhere is used where it is not defined") as caught:
        verify(function)
    assert len(str(caught.value)) < 2000


# --- 100,000 nodes ---


def nodes_of(root: ir.Node) -> int:
    count = 0

    def look(_: ir.Node) -> None:
        nonlocal count
        count += 1

    ir.pre_order_visit(root, look)
    return count


def many_stores(wanted: int) -> ir.PrimFunc:
    """Stores to one buffer after the other, each in a loop of its own, `wanted` nodes in all."""
    A, B = ir.decl_buffer((8,), "int32", "A"), ir.decl_buffer((8,), "int32", "B")
    statements: list[ir.Stmt] = []
    for k in range(wanted // 15):
        i = ir.Var("i")
        value = ir.BufferLoad(A, [i]) * 3 + ir.BufferLoad(B, [i]) - k
        statements.append(ir.For(i, 0, 8, ir.ForKind.SERIAL, ir.BufferStore(B, value, [i])))
    function = ir.PrimFunc([A, B], ir.seq(statements))
    assert nodes_of(function) >= wanted
    return function


@pytest.fixture(scope="module")
def large() -> ir.PrimFunc:
    return many_stores(NODES)


def test_a_large_function_prints_and_reads_back(large):
    ir.assert_structural_equal(from_source(large.script()), large)


def test_a_large_function_compares_and_hashes(large):
    other = many_stores(NODES)
    ir.assert_structural_equal(large, other)
    assert ir.structural_hash(large) == ir.structural_hash(other)


def test_a_large_function_is_rewritten_and_verified(large):
    assert ir.substitute(large, {ir.Var("other"): 1}) is large
    A, B = large.argument_buffers()
    C = ir.decl_buffer((8,), "int32", "C")
    moved = ir.substitute(large.body, {}, {A: C})
    assert nodes_of(moved) == nodes_of(large.body)
    verify(large)


def test_a_large_function_is_evaluated_and_lowered(large):
    a, b = np.arange(8, dtype="int32"), np.zeros(8, "int32")
    evaluate(large, a, b)
    count = len(large.body)
    np.testing.assert_array_equal(b, a * 3 * count - count * (count - 1) // 2)
    lw.lower(large)


def test_a_large_function_is_built_and_run():
    """LLVM alone takes 20 s for 100,000 nodes; a tenth of them shows that nothing of ours is in the way."""
    count = NODES // 100
    A = ir.decl_buffer((count,), "int32", "A")
    stores = [ir.BufferStore(A, ir.BufferLoad(A, [k]) * 3 + k, [k]) for k in range(count)]
    function = ir.PrimFunc([A], ir.seq(stores))
    assert nodes_of(function) > NODES // 10
    a = np.arange(count, dtype="int32")
    lw.build(function)(a)
    np.testing.assert_array_equal(a, np.arange(count) * 4)


def test_statements_nest_deeply():
    A = ir.decl_buffer((4,), "int32", "A")
    body: ir.Stmt = ir.BufferStore(A, ir.const(1), [0])
    for level in range(DEPTH):
        body = ir.IfThenElse(ir.BufferLoad(A, [1]) >= level - DEPTH, body)
    function = ir.PrimFunc([A], body)
    verify(function)
    function.script()
    lw.lower(function)
    a = np.zeros(4, "int32")
    evaluate(function, a)
    assert a[0] == 1


def test_a_function_of_hundreds_of_blocks():
    """Every layer takes it, and a step in one of its nests takes no longer than elsewhere."""
    tensors = [te.placeholder((8, 8), name="X")]

    def link(before: te.Tensor, number: int) -> te.Tensor:
        return te.compute((8, 8), lambda i, j: before[i, j] + float(number % 3), name=f"T{number}")

    for number in range(BLOCKS):
        tensors.append(link(tensors[-1], number))
    sch = Schedule(te.create_prim_func([tensors[0], tensors[-1]]))
    for number in range(0, BLOCKS, BLOCKS // 5):
        rows, columns = sch.get_loops(f"T{number}")
        sch.vectorize(sch.split(columns, [None, 4])[1])
        sch.parallel(rows)
    sch.compute_inline(f"T{BLOCKS // 2}")
    assert sch.is_proved
    x, y = np.arange(64, dtype="float32").reshape(8, 8), np.zeros((8, 8), "float32")
    lw.build(sch.mod)(x, y)
    np.testing.assert_array_equal(y, x + sum([number % 3 for number in range(BLOCKS)]))
