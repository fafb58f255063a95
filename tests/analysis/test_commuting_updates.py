"""Which updates of a cell may be made in any order: by algebra, and beside the numbers that come out."""

from __future__ import annotations

import random

import numpy as np
import pytest

from loopwright.analysis.combiner_laws import (
    Combiner,
    Undecided,
    absorbs,
    commutes_with_itself,
    is_associative,
    is_commutative,
)
from loopwright.analysis.commuting_updates import update_law
from loopwright.evaluator import evaluate
from loopwright.ir import (
    Block,
    BufferStore,
    Expr,
    For,
    ForKind,
    PrimFunc,
    Select,
    SeqStmt,
    Var,
    const,
    decl_buffer,
    intrinsics,
    logical_and,
    logical_or,
    pre_order_visit,
    substitute,
)
from loopwright.script import from_source
from tests.campaign import programs

_PROGRAM = """
@T.prim_func
def main(A: T.Buffer((2, 3), "{dtype}"), B: T.Buffer((2, 3), "{dtype}"), P: T.Buffer((2, 3), "bool"),
         C: T.Buffer((2,), "{dtype}"), H: T.Buffer((2,), "int8"), I: T.Buffer((2,), "int32"),
         Q: T.Buffer((2,), "bool")):
    for i, k in T.grid(2, 3):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
"""


def law(update: str, dtype: str = "int32") -> object:
    """The law of a block with these statements, one after `;`; a is A[vi, vk], b is B[vi, vk], c is C[vi]."""
    for short, cell in (("a", "A[vi, vk]"), ("b", "B[vi, vk]"), ("c", "C[vi]"), ("i", "I[vi]"), ("h", "H[vi]")):
        update = update.replace(f"@{short}", cell)
    lines = "".join([f"            {line}\n" for line in update.split(";")])
    function = from_source(_PROGRAM.format(dtype=dtype) + lines)
    (block,) = [block for block in found(function, Block) if block.name_hint == "C"]
    stored = [store.buffer for store in found(block.body, BufferStore)]
    return update_law(block.body, {buffer: buffer for buffer in stored}, block.iter_vars)


def found(root, kind):
    nodes = []
    pre_order_visit(root.body if isinstance(root, PrimFunc) else root, lambda node: nodes.append(node))
    return [node for node in nodes if isinstance(node, kind)]


SUMS = [
    "@c = @c + @a",
    "@c = @a + @c",
    "@c = @c - @a",
    "@c = @a - (@b - @c)",
    "@c = @c + @a + @b * 3",
    "@c = @c + T.max(@a, 0) * @b + 1",
    "@c = T.Select(@a > 0, @c + @a, @c)",
    "@c = T.if_then_else(P[vi, vk], @c - @a, @c)",
    "@c = T.Cast('int32', T.Cast('int64', @c) + T.Cast('int64', @a))",
    "if @a > 0:;    @c = @c + @a",
    "x: T.int32 = @a * 2;@c = @c + x",
    "@c = @c",
]


@pytest.mark.parametrize("update", SUMS)
def test_sums(update):
    assert law(update) == "Add int32"


def test_sums_of_floats_round():
    assert law("@c = T.fma(@a, @b, @c)", "float32") == "Add float32"
    assert law("@c = T.Cast('float16', T.Cast('float32', @c) + T.Cast('float32', @a))", "float16") == "Add float16"


FREE = [
    "@c = @c * @a",
    "@c = @c * @a * @b",
    "@c = @c + @c * @a",
    "@c = @c + @c",
    "x: T.int32 = @c * 2;@c = @c + x",
    "@c = T.max(@c, @a)",
    "@c = T.min(T.min(@a, @c), @b)",
    "@c = T.Select(@a > @c, @a, @c)",
    "@c = T.Select(@a <= @c, @a, @c)",
    "@c = T.min(T.max(@c, @a), 7)",
    "@c = T.bitwise_and(@c, @a)",
    "@c = T.bitwise_xor(@c, @a)",
    "@c = T.bitwise_or(@c, T.bitwise_and(@c, @a))",
    "Q[vi] = Q[vi] and P[vi, vk]",
    "Q[vi] = Q[vi] or P[vi, vk]",
    "Q[vi] = Q[vi] != P[vi, vk]",
    "@h = T.Cast('int8', T.Cast('int32', @h) * @a)",
    "@c = @c + @a;@i = T.max(@i, @b)",
]


@pytest.mark.parametrize("update", FREE)
def test_other_updates_that_commute(update):
    found_law = law(update)
    assert found_law is not None and found_law != "Add int32"


IN_ORDER = [
    "@c = @c * 2 + @a",
    "@c = @a - @c",
    "@c = @c + @a + @c",
    "@c = T.Select(@a > 0, @a, @c)",
    "@c = T.Select(@c > 0, @c + @a, @c)",
    "if @c > 0:;    @c = @c + @a",
    "x: T.int32 = @c * 2;@c = x + @a",
    "@c = @c + A[vi, @c]",
    "@c = T.min(T.max(@c, @a), @b)",
    "@c = T.min(T.max(@c + @a, -8), 7)",
    "@c = T.max(@c, @a) * 3",
    "@c = (@c + @a) // 2",
    "@c = T.Cast('int32', T.Cast('int8', @c)) + @a",
    "@c = T.Cast('int32', T.Cast('float32', @c) + T.Cast('float32', @a))",
    "@h = T.Cast('int8', T.max(T.Cast('int32', @h), @a))",
    "@c = T.bitwise_and(T.bitwise_or(@c, @a), @b)",
    "Q[vi] = not (Q[vi] or P[vi, vk])",
    "@c = @c + @a;@i = @i + @c",
    "@c = @c + @a;@c = @c * 2",
    "@c = T.exp(@c) + @a",
]


@pytest.mark.parametrize("update", IN_ORDER)
def test_updates_that_keep_their_order(update):
    dtype = "float32" if "exp" in update else "int32"
    assert law(update, dtype) is None


_BY_INDEX = "@c > @a or (@c == @a and @i < vk)"
_WITH_NAN = "@c > @a or (T.isnan(@c) and not T.isnan(@a)) or ((@c == @a or (T.isnan(@c) and T.isnan(@a))) and @i < vk)"


def pairs(condition: str, value: str, dtype: str) -> str:
    """An argmax: the index by the condition, the value by it as well, or as the greater one."""
    chosen = f"T.Select({condition}, @c, @a)" if value == "chosen" else "T.max(@c, @a)"
    return f"x: T.int32 = T.Select({condition}, @i, vk);y: T.{dtype} = {chosen};@i = x;@c = y"


@pytest.mark.parametrize(
    ("condition", "value", "dtype", "is_free"),
    [
        (_BY_INDEX, "chosen", "int32", True),
        (_BY_INDEX, "greater", "int32", True),
        ("@c >= @a", "chosen", "int32", False),
        ("@c > @a", "chosen", "int32", False),
        ("@c >= @a", "greater", "int32", False),
        # A NaN compares with nothing: it stays where it came first, and is dropped where it came last.
        (_BY_INDEX, "chosen", "float32", False),
        (_BY_INDEX, "greater", "float32", False),
        (_WITH_NAN, "greater", "float32", True),
        # Two values of one index that compare as equal: +0 and -0.
        (_WITH_NAN, "chosen", "float32", False),
    ],
)
def test_argmax(condition, value, dtype, is_free):
    assert (law(pairs(condition, value, dtype), dtype) is not None) == is_free


def test_an_argmax_that_stores_the_value_first():
    assert law(f"@c = T.max(@c, @a);@i = T.Select({_BY_INDEX}, @i, vk)") is None
    assert law(f"@i = T.Select({_BY_INDEX}, @i, vk);@c = T.max(@c, @a)") is not None


def test_laws_tell_reductions_apart():
    assert law("@c = @c + @a") == law("@c = @a + @c + @b")
    assert law("@c = @c + @a") != law("@c = @c * @a")
    assert law("@c = @c + @a") != law("@c = @c + @c * @a")
    assert law("@c = T.Select(@a > @c, @a, @c)") == law("@c = T.Select(@b > @c, @b, @c)")
    assert law("@c = T.Select(@a > @c, @a, @c)") != law("@c = T.Select(@a < @c, @a, @c)")
    assert law("@c = T.min(T.max(@c, @a), 7)") != law("@c = T.min(T.max(@c, @a), 8)")
    assert law("@c = @c + @a;@h = T.max(@h, T.int8(3))") != law("@h = T.max(@h, T.int8(3));@c = @c + @a")


def test_a_sum_of_many_terms_is_still_one():
    assert law("@c = @c + " + " + ".join([f"@a * {k}" for k in range(300)])) == "Add int32"


# --- combiners of two values --------------------------------------------------------------------------------------


def combiner(combine, *dtypes: str) -> Combiner:
    left = tuple([Var(f"a{k}", dtype) for k, dtype in enumerate(dtypes)])
    right = tuple([Var(f"b{k}", dtype) for k, dtype in enumerate(dtypes)])
    result = combine(left, right)
    return Combiner(left, right, tuple(result) if isinstance(result, tuple) else (result,))


def first_wins(a, b):
    return Select(a[1] >= b[1], a[0], b[0]), Select(a[1] >= b[1], a[1], b[1])


def least_index(a, b):
    first = logical_or(a[1] > b[1], logical_and(a[1].equal(b[1]), a[0] < b[0]))
    return Select(first, a[0], b[0]), Select(first, a[1], b[1])


@pytest.mark.parametrize(
    ("combine", "dtypes", "commutative", "associative"),
    [
        (lambda a, b: a[0] + b[0], ["float32"], True, True),
        (lambda a, b: a[0] - b[0], ["int32"], False, False),
        (lambda a, b: a[0] + b[0] * 2, ["int32"], False, False),
        (lambda a, b: b[0] + a[0] * b[0] + a[0], ["int32"], True, True),
        (lambda a, b: intrinsics.maximum(a[0], b[0]), ["float16"], True, True),
        (lambda a, b: Select(a[0] > b[0], a[0], b[0]), ["int8"], True, True),
        (lambda a, b: Select(a[0] > b[0], a[0], b[0]), ["float32"], False, False),
        (lambda a, b: a[0], ["int32"], False, True),
        (lambda a, b: a[0] ^ b[0], ["uint8"], True, True),
        (first_wins, ["int32", "int32"], False, True),
        (first_wins, ["int32", "float32"], False, False),
        (least_index, ["int32", "int64"], True, True),
        (lambda a, b: (a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]), ["float32", "float32"], True, True),
        (lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), ["int32", "int32"], False, True),
        (lambda a, b: (a[0] + b[0], intrinsics.minimum(a[1], b[1])), ["float32", "int8"], True, True),
    ],
)
def test_laws_of_combiners(combine, dtypes, commutative, associative):
    made = combiner(combine, *dtypes)
    assert is_commutative(made) == commutative
    assert is_associative(made) == associative


def test_what_is_compared_and_added_is_not_decided():
    clamped = combiner(lambda a, b: intrinsics.minimum(a[0] + b[0], const(7)), "int32")
    with pytest.raises(Undecided):
        is_commutative(clamped)


def test_start_values_that_may_be_combined_in_again():
    numbers = lambda *values: [const(value) for value in values]
    both = combiner(first_wins, "int32", "int32")
    assert absorbs(both, numbers(-1, -5), numbers(-1, -5))
    assert not absorbs(both, numbers(-1, -5), numbers(-1, 5))
    last = combiner(lambda a, b: (Select(a[1] > b[1], a[0], b[0]), intrinsics.maximum(a[1], b[1])), "int32", "int32")
    assert not absorbs(last, numbers(-1, 0), numbers(-1, 0))  # of equal values it would be the last
    total = combiner(lambda a, b: a[0] + b[0], "int32")
    assert absorbs(total, numbers(5), numbers(0)) and not absorbs(total, numbers(5), numbers(5))
    least = combiner(lambda a, b: intrinsics.minimum(a[0], b[0]), "int8")
    assert absorbs(least, least.operands, [const(127, "int8")])  # nothing is greater
    assert not absorbs(least, least.operands, [const(126, "int8")])


# --- beside numbers -----------------------------------------------------------------------------------------------

_VALUES = {
    "int8": [-128, -127, -3, -2, -1, 0, 1, 2, 3, 7, 126, 127],
    "float32": [float("nan"), float("-inf"), -2.0, -1.0, -0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 2.0, 3.0, float("inf")],
}


def random_update(rng: random.Random, dtype: str, cell: Expr, given: Expr) -> Expr:
    """An expression of a cell and a value, of those operations that laws are known for."""
    literals = [0, 1] if dtype == "float32" else [0, 1, -1, 2]

    def value(depth: int) -> Expr:
        if depth == 0 or rng.random() < 0.2:
            return rng.choice([cell, cell, given, given, const(rng.choice(literals), dtype)])
        kind = rng.randrange(8)
        if kind < 2:
            return Select(condition(depth - 1), value(depth - 1), value(depth - 1))
        if kind < 4:
            return rng.choice([intrinsics.minimum, intrinsics.maximum])(value(depth - 1), value(depth - 1))
        a, b = value(depth - 1), value(depth - 1)
        if dtype == "float32":  # rounding would show
            return Select(condition(depth - 1), a, b)
        return rng.choice([a + b, a - b, a * b, a & b, a | b, a ^ b])

    def condition(depth: int) -> Expr:
        a, b = value(depth), value(depth)
        found = rng.choice([a < b, a <= b, a.equal(b), a > b, a >= b])
        return logical_or(found, intrinsics.isnan(a)) if dtype == "float32" and rng.random() < 0.3 else found

    return value(rng.choice([1, 2, 2, 3]))


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_what_is_said_to_commute_does(dtype):
    """And where only orders are compared, what is said not to commute does not for some numbers."""
    rng = random.Random(1)
    values = np.array(_VALUES[dtype], dtype)
    grid = [np.ascontiguousarray(item.reshape(-1)) for item in np.meshgrid(values, values, values, indexing="ij")]
    said = {True: 0, False: 0}
    for _ in range(programs(25, 50)):
        c, x = Var("c", dtype), Var("x", dtype)
        update = random_update(rng, dtype, c, x)
        try:
            answer = commutes_with_itself(Combiner((c,), (x,), (update,)))
        except Undecided:
            continue
        said[answer] += 1
        C, X, Y = [decl_buffer((len(grid[0]),), dtype, name=name) for name in "CXY"]
        one = _twice(update, c, x, (C, X, Y), grid)
        other = _twice(update, c, x, (C, Y, X), [grid[0], grid[2], grid[1]])
        same = np.array_equal(one, other, equal_nan=dtype == "float32") and (
            dtype == "int8" or np.array_equal(np.signbit(one[one == one]), np.signbit(other[other == other]))
        )
        assert same or not answer, update
        is_order = dtype == "float32" or not any([type(node).__name__ in "AddSubMul" for node in found(update, Expr)])
        assert answer or not same or not is_order, update
    assert min(said.values()) >= 2


def _twice(update, c, x, buffers, arrays):
    """The cells after an update with X and one with Y."""
    C, X, Y = buffers
    i = Var("i")
    steps = [BufferStore(C, substitute(update, {c: C[i], x: given[i]}), [i]) for given in (X, Y)]
    loop = For(i, const(0), const(len(arrays[0])), ForKind.SERIAL, SeqStmt(tuple(steps)))
    result = arrays[0].copy()
    evaluate(PrimFunc([C, X, Y], loop), result, arrays[1], arrays[2])
    return result
