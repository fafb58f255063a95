"""Iteration maps: index expressions as splits and fusions of loop iterators.

    i in 0..16, j in 0..8:      [(i * 8 + j) // 32, (i * 8 + j) % 32]
        first index:    i // 4                                 a split of i
        second index:   fuse(i % 4, j)                         a new iterator of extent 32

An `IterMark` is an iterator: a loop variable, or several iterators fused. An `IterSplitExpr` takes some of its digits,
`(mark // lower_factor) % extent * scale`. An `IterSumExpr` adds such parts and a base. When every index is one iterator
and no digit is used twice, the indices are independent and reach every value (surjective; "onto", which our own passes
ask for, when they also step by 1 and no division cuts a block); when every digit is used, each point is reached once
(bijective).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from loopwright.arith.analyzer import Analyzer
from loopwright.arith.iter_nodes import IterMapLevel, IterMark, IterSplitExpr, IterSumExpr, covers, plain_expr
from loopwright.arith.iter_reader import IterReader, NoMap
from loopwright.ir import (
    Add,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Mul,
    Range,
    Sub,
    Var,
    as_expr,
    cast,
    const,
    deep,
    is_one,
    is_zero,
)
from loopwright.ir.operators import floordiv, floormod
from loopwright.runtime.errors import LoopwrightError


class NotInvertible(LoopwrightError, ValueError):
    """inverse_affine_iter_map was given something else than one iterator a result.

    For example:

        from loopwright import ir, te
        from loopwright.arith import detect_iter_map, inverse_affine_iter_map

        i = te.var("i")
        found = detect_iter_map([i], {i: ir.Range(0, 8)})
        inverse_affine_iter_map(found.indices, [])
    """

    code = "LW0905"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"inverse_affine_iter_map: {problem}",
            hint="pass the indices that detect_iter_map found at level 'bijective', and one output for each",
        )


class IterMapResult(NamedTuple):
    """What detect_iter_map found; `indices` is empty when the indices are no such map, and `errors` says why."""

    indices: list[IterSumExpr]
    errors: list[str]
    padding_predicate: Expr


@deep
def detect_iter_map(
    indices: Sequence[Expr],
    input_iters: Mapping[Var, Range],
    predicate: Expr | bool = True,
    check_level: int | str | IterMapLevel = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> IterMapResult:
    """The indices as iterators over `input_iters`, on the points where `predicate` holds."""
    level = IterMapLevel.of(check_level)
    try:
        wide = level is IterMapLevel.Surjective
        reader = IterReader(input_iters, simplify_trivial_iterators, wide)
        reader.restrict(as_expr(predicate))
        sums = [reader.read(as_expr(index)) for index in indices]
        if level is not IterMapLevel.NoCheck:
            sums = [reader.as_one(total, unit=not wide) for total in sums]
            reader.check(sums, bijective=level is IterMapLevel.Bijective)
    except NoMap as reason:
        return IterMapResult([], [str(reason)], const(False))
    return IterMapResult(sums, [], const(False))


def normalize_to_iter_sum(index: Expr, input_iters: Mapping[Var, Range]) -> IterSumExpr:
    """`index` as splits, largest scale first; what is not a split of an iterator stays in the base."""
    return _normalize(as_expr(index), input_iters)


@deep
def _normalize(index: Expr, input_iters: Mapping[Var, Range]) -> IterSumExpr:
    reader = IterReader(input_iters, simplify_trivial=True)
    total = reader.read(index, strict=False)
    locations = sorted(range(len(total.args)), key=[_sort_key(arg.scale) for arg in total.args].__getitem__)
    return IterSumExpr(tuple([total.args[location] for location in locations]), total.base)


def _sort_key(scale: Expr) -> tuple[int, int]:
    """Symbolic scales first, then large ones."""
    return (1, -abs(scale.value)) if isinstance(scale, IntImm) else (0, 0)


@deep
def normalize_iter_map_to_expr(expr: Expr) -> Expr:
    """An iterator expression as an ordinary one, with the sums and factors that it has."""
    return _as_written(expr) if isinstance(expr, (IterSumExpr, IterSplitExpr)) else Analyzer().simplify(expr)


def _as_written(e: Expr) -> Expr:
    if isinstance(e, IterSumExpr):
        terms = [_as_written(arg) for arg in e.args]
        if not terms or not is_zero(e.base):
            terms.append(e.base)
        return reduce(Add, terms)
    if isinstance(e, IterSplitExpr):
        value = _as_written(e.source.source)
        value = value if is_one(e.lower_factor) else FloorDiv(value, e.lower_factor)
        value = value if covers(e) else FloorMod(value, e.extent)
        return value if is_one(e.scale) else Mul(value, e.scale)
    return e


@deep
def iter_map_simplify(
    indices: Sequence[Expr],
    input_iters: Mapping[Var, Range],
    predicate: Expr | bool = True,
    check_level: int | str | IterMapLevel = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> list[Expr]:
    """The indices, simplified as an iteration map where they are one, else as expressions."""
    analyzer = Analyzer.over(input_iters)
    result = detect_iter_map(indices, input_iters, predicate, check_level, simplify_trivial_iterators).indices
    return [analyzer.simplify(plain_expr(index)) for index in (result or indices)]


@deep
def inverse_affine_iter_map(iter_map: Sequence[IterSumExpr], outputs: Sequence[Expr]) -> dict[Var, Expr]:
    """Each loop variable in terms of the outputs, one for each index of a bijective map."""
    if len(iter_map) != len(outputs):
        raise NotInvertible(f"{len(iter_map)} indices, but {len(outputs)} outputs")
    return _Inverse().run(iter_map, outputs)


class _Inverse:
    """Digits flow from the outputs through fused iterators down to the loop variables."""

    def __init__(self) -> None:
        self.analyzer = Analyzer()
        self.values: dict[IterMark, Expr] = {}
        self.uses: dict[IterMark, int] = {}

    def run(self, iter_map: Sequence[IterSumExpr], outputs: Sequence[Expr]) -> dict[Var, Expr]:
        for index in iter_map:
            if not isinstance(index, IterSumExpr) or len(index.args) > 1:
                raise NotInvertible("an index is a sum of several iterators")
            for arg in index.args:
                self._count(arg.source)
        ready: list[IterMark] = []
        for index, output in zip(iter_map, outputs, strict=True):
            for arg in index.args:
                self._add(arg, floordiv(as_expr(output) - index.base, arg.scale), ready)
        result: dict[Var, Expr] = {}
        while ready:
            mark = ready.pop()
            value = self.analyzer.simplify(self.values[mark])
            source = mark.source
            if isinstance(source, IterSumExpr):
                self._spread(source, value, ready)
            elif isinstance(source, Var):
                result[source] = cast(value, source.dtype)
            elif isinstance(source, Sub) and isinstance(source.a, Var):
                result[source.a] = cast(self.analyzer.simplify(value + source.b), source.a.dtype)
        return result

    def _count(self, mark: IterMark) -> None:
        self.uses[mark] = self.uses.get(mark, 0) + 1
        if self.uses[mark] == 1 and isinstance(mark.source, IterSumExpr):
            for arg in mark.source.args:
                self._count(arg.source)

    def _add(self, split: IterSplitExpr, digits: Expr, ready: list[IterMark]) -> None:
        """The digits of one split are known; a mark is ready when all its splits are."""
        mark = split.source
        part = digits * split.lower_factor
        self.values[mark] = self.values[mark] + part if mark in self.values else part
        self.uses[mark] -= 1
        if self.uses[mark] == 0:
            ready.append(mark)

    def _spread(self, source: IterSumExpr, value: Expr, ready: list[IterMark]) -> None:
        value = value - source.base
        for index, arg in enumerate(source.args):
            digits = floordiv(value, arg.scale)
            self._add(arg, digits if index == 0 else floormod(digits, arg.extent), ready)
