from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright.arith import (
    IterMapLevel,
    detect_iter_map,
    inverse_affine_iter_map,
    iter_map_simplify,
    normalize_iter_map_to_expr,
    normalize_to_iter_sum,
    subspace_divide,
)
from loopwright.arith.iter_map import NotInvertible
from loopwright.arith.iter_nodes import UnknownIterMapLevel
from loopwright.ir import Expr, IntImm, Range, SizeVar, Var, const
from tests.arith.integers import as_python, points, table

I, J, K = Var("i"), Var("j"), Var("k")
LOOPS = {I: Range(0, 16), J: Range(0, 8)}


def _text(indices: Sequence[Expr], level: str = "bijective", predicate: Expr | bool = True) -> list[str]:
    return [repr(normalize_iter_map_to_expr(e)) for e in detect_iter_map(indices, LOOPS, predicate, level).indices]


def test_splits_and_fusions_are_bijective() -> None:
    assert _text([I, J]) == ["i", "j"]
    assert _text([I * 8 + J]) == ["i * 8 + j"]
    assert _text([I // 4, I % 4, J]) == ["i // 4", "i % 4", "j"]
    assert _text([(I * 8 + J) // 32, (I * 8 + J) % 32]) == ["i // 4", "i % 4 * 8 + j"]
    assert _text([I + 5, J]) == ["i + 5", "j"]


@pytest.mark.parametrize(
    ("indices", "level", "why"),
    [
        ([I, I], "surjective", "the parts of the iterator i overlap"),
        ([I // 4], "bijective", "not every part of the iterator i is used once"),
        ([I % 4, J], "bijective", "a part of the iterator i is not used"),
        ([I], "bijective", "the iterator j is not used"),
        ([I * 7 + J], "surjective", r"the index i * 7 + j does not fuse its iterators: one should step by 8"),
        ([I * 2], "onto", "leaves gaps: its smallest step is 2"),
        ([I // 3, I % 3], "surjective", "the iterator i does not take every value of its parts"),
        ([I // 3, I % 3], "onto", "i // 3: 3 does not divide the extent 16"),
        ([I * I], "surjective", "is not made of iterators"),
        ([I - J], "surjective", "runs backwards"),
        ([(I + 1) // 4], "onto", "does not start at a multiple of 4"),
    ],
)
def test_refusals_say_why(indices: list[Expr], level: str, why: str) -> None:
    found = detect_iter_map(indices, LOOPS, True, level)
    assert found.indices == []
    assert why in found.errors[0]


def test_predicates_shorten_fused_iterators() -> None:
    found = detect_iter_map([I * 8 + J], LOOPS, I * 8 + J < 100, "bijective").indices
    assert isinstance(found[0].args[0].extent, IntImm) and found[0].args[0].extent.value == 100
    refused = detect_iter_map([I, J], LOOPS, I * 8 + J < 100, "bijective")
    assert "i * 8 + j < 100 bounds an iterator that the indices do not use as a whole" in refused.errors[0]


def test_symbolic_extents() -> None:
    n, m = SizeVar("n"), SizeVar("m")
    loops = {I: Range(0, n), J: Range(0, m)}
    assert detect_iter_map([I, J], loops, True, "bijective").indices
    found = detect_iter_map([I * m + J], loops, True, "bijective").indices
    assert repr(found[0].args[0].extent) in ("n * m", "m * n")
    assert not detect_iter_map([I * n + J], loops, True, "surjective").indices


def test_levels_by_number_and_name() -> None:
    assert IterMapLevel.of("Surjective") is IterMapLevel.of(1) is IterMapLevel.Surjective
    with pytest.raises(UnknownIterMapLevel, match="unknown check level 'most'"):
        detect_iter_map([I], LOOPS, True, "most")


def test_loops_that_do_not_start_at_zero() -> None:
    loops = {I: Range(2, 18), J: Range(0, 8)}
    found = detect_iter_map([I * 8 + J], loops, True, "bijective").indices
    assert repr(found[0].base) == "16"
    a = Var("a")
    inverse = inverse_affine_iter_map(found, [a])
    for i in range(2, 18):
        for j in range(8):
            assert as_python(inverse[I], [a])(i * 8 + j) == i
            assert as_python(inverse[J], [a])(i * 8 + j) == j


def test_normalize_to_iter_sum_sorts_and_keeps_the_rest() -> None:
    total = normalize_to_iter_sum(J + K * K + I * 8 + 3, LOOPS)
    assert [repr(arg.scale) for arg in total.args] == ["8", "1"]
    assert repr(total.base) == "k * k + 3"


def test_inverse_needs_one_output_each() -> None:
    with pytest.raises(NotInvertible, match="1 indices, but 0 outputs"):
        inverse_affine_iter_map(detect_iter_map([I], LOOPS).indices, [])


def test_iter_map_simplify_falls_back_to_expressions() -> None:
    assert [repr(e) for e in iter_map_simplify([(I * 8 + J) // 8, I * 7 + J * 0], LOOPS)] == ["i", "i * 7"]


@st.composite
def _maps(draw: st.DrawFn) -> tuple[dict[Var, Range], list[Expr], Expr | bool]:
    """Loops, indices made by fusing and splitting them (sometimes wrongly), and a predicate."""
    extents = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6, 8]), min_size=1, max_size=3))
    starts = [draw(st.sampled_from([0, 0, 0, 2])) for _ in extents]
    loops = {
        var: Range.from_min_extent(const(start), const(extent))
        for var, start, extent in zip((I, J, K), starts, extents, strict=False)
    }
    parts: list[tuple[Expr, int]] = [
        (var - start if start else var, extent) for var, start, extent in zip(loops, starts, extents, strict=True)
    ]
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(parts) - 1))
        expr, extent = parts.pop(place)
        if draw(st.booleans()) or not parts:
            c = draw(st.sampled_from([2, 3, 4]))
            parts += [(expr // c, -(-extent // c)), (expr % c, c)]
        else:
            other, size = parts.pop(draw(st.integers(0, len(parts) - 1)))
            parts.append((expr * draw(st.sampled_from([size, size, size, size + 1])) + other, extent * size))
    if draw(st.integers(0, 4)) == 0:
        parts.pop()
    if parts and draw(st.integers(0, 6)) == 0:
        parts.append(parts[0])
    predicate: Expr | bool = True
    if parts and draw(st.integers(0, 2)) == 0:
        predicate = parts[0][0] < draw(st.integers(1, 9))
    return loops, [part[0] for part in parts], predicate


@settings(max_examples=300, deadline=None)
@given(_maps(), st.sampled_from(["onto", "bijective"]))
def test_what_is_found_is_true(case: tuple[dict[Var, Range], list[Expr], Expr | bool], level: str) -> None:
    loops, indices, predicate = case
    found = detect_iter_map(indices, loops, predicate, level).indices
    if not found:
        return
    variables = list(loops)
    where = list(points(*[range(int(d.min), int(d.min) + int(d.extent)) for d in loops.values()]))  # type: ignore[call-overload]
    if isinstance(predicate, Expr):
        where = [point for point, holds in zip(where, table(predicate, variables, where), strict=True) if holds]
    columns = [table(index, variables, where) for index in indices]
    for index, column in zip(found, columns, strict=True):
        assert table(normalize_iter_map_to_expr(index), variables, where) == column
    image = list(zip(*columns, strict=True))
    size = 1
    for index, column in zip(found, columns, strict=True):
        low, extent = int(index.base), int(index.args[0].extent) if index.args else 1  # type: ignore[call-overload]
        size *= extent
        assert all(low <= value < low + extent for value in column)  # type: ignore[operator]
    assert len(set(image)) == size  # surjective: every point of the box is reached
    if level == "bijective":
        assert len(image) == size
        outputs = [Var(f"o{place}") for place in range(len(found))]
        inverse = inverse_affine_iter_map(found, outputs)
        for var, expr in inverse.items():
            values = table(expr, outputs, image)  # type: ignore[arg-type]
            assert values == [point[variables.index(var)] for point in where]


def _random_index(rng: random.Random, loops: dict[Var, Range]) -> Expr:
    index: Expr = rng.choice(list(loops))
    if rng.random() < 0.4 and len(loops) > 1:
        first, second = loops
        index = first * int(loops[second].extent) + second
    for _ in range(rng.randrange(3)):
        step = rng.randrange(3)
        if step == 0:
            index = index + rng.randrange(6)
        elif step == 1:
            index = index // rng.randrange(1, 6)
        else:
            index = index % rng.randrange(1, 6)
    return index * rng.choice([1, 1, 2, 3])


@pytest.mark.parametrize("seed", range(4))
def test_surjective_indices_take_every_combination(seed: int) -> None:
    """Strides, offsets and cut blocks: what is found is what running the loops gives."""
    rng, found = random.Random(seed), 0
    for _ in range(60):
        loops = {Var(name): Range(0, rng.randrange(1, 13)) for name in "ij"[: rng.randrange(1, 3)]}
        indices = [_random_index(rng, loops) for _ in range(rng.randrange(1, 3))]
        result = detect_iter_map(indices, loops, True, "surjective").indices
        if not result:
            continue
        found += 1
        wanted = [[int(e.base)] for e in result]
        for values, e in zip(wanted, result, strict=True):
            for arg in e.args:
                values[:] = [low + int(arg.scale) * k for low in values for k in range(int(arg.extent))]
        functions = [as_python(index, list(loops)) for index in indices]
        plain = [as_python(normalize_iter_map_to_expr(e), list(loops)) for e in result]
        reached = set()
        for point in itertools.product(*[range(int(domain.extent)) for domain in loops.values()]):
            value = tuple([function(*point) for function in functions])
            assert value == tuple([function(*point) for function in plain]), (indices, loops, result, point)
            reached.add(value)
        assert reached == set(itertools.product(*wanted)), (indices, loops, result)
    assert found > 10


def test_predicates_bound_a_part_of_an_index() -> None:
    k = Var("k")
    loops = {I: Range(0, 5), J: Range(0, 4), k: Range(0, 3)}
    (index,) = detect_iter_map([I * 12 + J * 3 + k], loops, I * 4 + J < 18).indices
    assert int(index.args[0].extent) == 54 and int(index.base) == 0


def test_what_is_added_belongs_to_the_inner_part() -> None:
    outer, inner = subspace_divide([I * 8 + J + 5], LOOPS, [J])[0]
    assert repr(normalize_iter_map_to_expr(outer.source)) == "i"
    assert repr(normalize_iter_map_to_expr(inner.source)) == "j + 5"
