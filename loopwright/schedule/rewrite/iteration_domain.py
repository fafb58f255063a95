"""iteration_domain: which values the axes of a block really take, in its own terms instead of those of its loops.

    for i_0, i_1 in T.grid(3, 4):
        with T.block("B"):                                        vi from 0 to 9, under no further condition
            vi = T.axis.spatial(10, i_0 * 4 + i_1)
            T.where(i_0 * 4 + i_1 < 10)

A block that moves loses its loops and gets new ones, so everything its loops said about it must be said again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from loopwright.arith import Analyzer, detect_iter_map, interval_of, inverse_affine_iter_map, linear_coefficients
from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    AllocateConst,
    Block,
    BlockRealize,
    DeclBuffer,
    Expr,
    For,
    IfThenElse,
    IntImm,
    Range,
    SeqStmt,
    Stmt,
    Var,
    conjuncts,
    const,
    logical_not,
    substitute,
    uses_var,
)
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.rewrite.regions import Facts, Span, facts_under
from loopwright.transform.parts.purity import has_data


class NotOnItsOwnTerms(ScheduleError):
    """A block cannot leave its place, because what decides when it runs has no meaning elsewhere.

    A block that moves gets new loops over its own axes. Conditions and bounds around it must therefore be conditions
    on its axes; a `let`, a `while`, or a condition on data stands in the way.

    For example:

        from loopwright import tir
        from loopwright.script import tir as T

        @T.prim_func
        def func(A: T.Buffer(4), F: T.Buffer(4), C: T.Buffer(4)):
            B = T.alloc_buffer(4)
            for i in range(4):
                if F[i] > 0.0:
                    with T.block("B"):
                        vi = T.axis.spatial(4, i)
                        B[vi] = A[vi]
            for i in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(4, i)
                    C[vi] = B[vi]

        sch = tir.Schedule(func)
        sch.compute_at("B", sch.get_loops("C")[0])
    """

    code = "LW0232"

    def __init__(self, step: str, realize: BlockRealize, what: str) -> None:
        super().__init__(
            f"{step}: block {realize.block.name_hint!r} runs {what}",
            at=realize,
            why="the block would get new loops over its own axes, where this cannot be said",
            fields={"block": realize.block.name_hint},
        )


class IterationDomain(NamedTuple):
    """Each axis with the least and greatest value it takes, and what else holds of the axes where the block runs."""

    domain: Mapping[Var, Span]
    conditions: Sequence[Expr]
    is_exact: bool  # else the block may not run for some of these values


def iteration_domain(
    step: str, path: Sequence[Stmt], kept: Sequence[Stmt], still: Sequence[For] = (), exact: bool = False
) -> IterationDomain:
    """What the block at the end of `path` runs over; what `kept` statements around it say is left out, as they stay.

    While the loops `still` stand still, that is: the values of the axes may be told in terms of them. With `exact`,
    bounds of loops that depend on other loops become conditions too.
    """
    realize = path[-1]
    assert isinstance(realize, BlockRealize)
    start = max([k for k, statement in enumerate(path[:-1]) if isinstance(statement, BlockRealize)], default=-1)
    loops: list[For] = []
    conditions: list[Expr] = []
    inside = list(path[start + 1 :])
    for parent, child in pairwise(inside):
        if isinstance(parent, For):
            loops.append(parent)
        elif _stays(parent, child, kept):
            continue
        elif isinstance(parent, IfThenElse):
            condition = parent.condition if child is parent.then_case else logical_not(parent.condition)
            conditions += conjuncts(condition)
        elif isinstance(parent, (AllocateConst, DeclBuffer)):
            continue  # these decide nothing; that buffers are used only where they live is checked for every step
        elif not isinstance(parent, (SeqStmt, Block, BlockRealize)):
            raise NotOnItsOwnTerms(step, realize, f"inside a {type(parent).__name__}")
    for loop in loops:
        if not any(loop is other for other in kept) and uses_var(realize.block, {loop.loop_var}.__contains__):
            unbound = f"with {loop.loop_var.name}, a loop variable that no axis is bound to"
            raise NotOnItsOwnTerms(step, realize, unbound)
    conditions += conjuncts(realize.predicate)
    around = [statement for statement in path[: start + 1] if isinstance(statement, BlockRealize)]
    facts = facts_under(loops, around)
    moving = [loop for loop in loops if not any(loop is other for other in still)]
    domain, said = _domain(step, realize, moving, facts, around)
    own = Analyzer()
    for axis, span in domain.items():
        own.bind(axis, Range.from_min_extent(span.low, own.simplify(span.high - span.low + 1)))
    terms = _OwnTerms(realize, loops, facts)
    for condition in conditions:
        if facts.can_prove(condition):
            continue
        translated = None if has_data(condition) else terms.translate(condition)
        if translated is None:
            raise NotOnItsOwnTerms(step, realize, f"only where {condition}")
        simple = own.simplify(translated)
        if not own.can_prove(simple):
            said.append(simple)
    is_exact = exact and _fill_their_domain(realize, moving) and not _may_be_kept_away(realize, moving, facts)
    is_exact = is_exact and not _hides_empty_loops(realize, moving, domain)
    for condition in [bound for loop in moving if exact for bound in _triangular_bounds(loop, moving)]:
        translated = None if has_data(condition) else terms.translate(condition)
        if translated is None:
            is_exact = False
        elif not own.can_prove(own.simplify(translated)):
            said.append(own.simplify(translated))
    return IterationDomain(domain, said, is_exact)


def _triangular_bounds(loop: For, loops: Sequence[For]) -> list[Expr]:
    """The bounds of a loop that depend on other loops, as conditions."""
    others = {other.loop_var for other in loops}
    result: list[Expr] = []
    if uses_var(loop.min, others.__contains__):
        result.append(loop.loop_var >= loop.min)
    if uses_var(loop.extent, others.__contains__) or result:
        result.append(loop.loop_var < loop.min + loop.extent)
    return result


def _fill_their_domain(realize: BlockRealize, loops: Sequence[For]) -> bool:
    """Whether the axes take all values between the least and the greatest, each with all of the others."""
    variables = {loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in loops}
    values = [value for value in realize.iter_values if uses_var(value, variables.__contains__)]
    plain = {value for value in values if isinstance(value, Var)}
    rest = [value for value in values if value not in plain]
    if len(plain) + len(rest) == len(values) and not any([uses_var(value, plain.__contains__) for value in rest]):
        return not rest or bool(detect_iter_map(rest, variables, True, "onto").indices)
    return False


def _may_be_kept_away(realize: BlockRealize, loops: Sequence[For], facts: Facts) -> bool:
    """Whether the block may not run at all since a loop has no iterations, which the values of no axis show."""
    for loop in loops:
        values = [value for value in realize.iter_values if uses_var(value, {loop.loop_var}.__contains__)]
        if any([value is loop.loop_var for value in values]):
            continue
        if isinstance(loop.extent, IntImm) or not values:
            if not facts.can_prove(loop.extent >= 1):
                return True
    return False


def _hides_empty_loops(realize: BlockRealize, loops: Sequence[For], domain: Mapping[Var, Span]) -> bool:
    """Whether a loop may have no iterations, and its axis is said to have values all the same."""
    plain = Analyzer()
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        for loop in loops:
            if value is loop.loop_var and not isinstance(loop.extent, IntImm):
                span = domain[axis.var]
                if not plain.can_prove_equal(span.high - span.low + 1, loop.extent):
                    return True
    return False


def _stays(parent: Stmt, child: Stmt, kept: Sequence[Stmt]) -> bool:
    """Whether a statement is kept around a block; an `if`, with the block in the same branch."""
    for other, below in pairwise([*kept, child]):
        if other is parent:
            return below is child or not isinstance(parent, IfThenElse)
    return False


def _domain(
    step: str, realize: BlockRealize, loops: Sequence[For], facts: Facts, around: Sequence[BlockRealize]
) -> tuple[dict[Var, Span], list[Expr]]:
    """The values of the axes, and the conditions on them that decide where a block around allows fewer."""
    ranges = {loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in loops}
    outer = {axis.var for item in around for axis in item.block.iter_vars}
    domain: dict[Var, Span] = {}
    said: list[Expr] = []
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        assert axis.dom is not None
        low, high = axis.dom.min, facts.simplify(axis.dom.min + axis.dom.extent - 1)
        reached = interval_of(value, ranges, facts)
        if uses_var(axis.dom, ranges.__contains__):  # a domain that loops say
            if reached is None:
                raise NotOnItsOwnTerms(step, realize, f"with {value}, which has no bounds of its own")
            low, high = reached
        elif reached is not None:
            least, greatest = reached
            if facts.can_prove(least >= low):
                low = least
            elif uses_var(least, outer.__contains__) and not facts.can_prove(least <= low):
                said.append(axis.var >= least)
            if facts.can_prove(greatest <= high):
                high = greatest
            elif uses_var(greatest, outer.__contains__) and not facts.can_prove(greatest >= high):
                said.append(axis.var <= greatest)
        domain[axis.var] = Span(low, high)
    return domain, said


class _OwnTerms:
    """Conditions on loop variables as conditions on the axes that are bound to them."""

    def __init__(self, realize: BlockRealize, loops: Sequence[For], facts: Facts) -> None:
        self.axes = [axis.var for axis in realize.block.iter_vars]
        self.values = realize.iter_values
        self.loops = {loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in loops}
        self.facts = facts

    def translate(self, condition: Expr) -> Expr | None:
        """The condition without loop variables, or None."""
        if not self._has_loops(condition):
            return condition
        translated = self._by_elimination(condition)
        return translated if translated is not None else self._by_inverse(condition)

    def _has_loops(self, expr: Expr) -> bool:
        return uses_var(expr, self.loops.__contains__)

    def _by_elimination(self, condition: Expr) -> Expr | None:
        """`4 * i_0 + i_1 < 10`, where an axis is bound to `4 * i_0 + i_1`: take it away as often as it fits."""
        if not isinstance(condition, (LT, LE, GT, GE, EQ, NE)) or not condition.a.dtype.is_int:
            return None
        variables = list(self.loops)
        result = linear_coefficients(condition.a - condition.b, variables, self.facts)
        if result is None:
            return None
        coefficients, base = result
        left = [c.value if isinstance(c, IntImm) else None for c in coefficients]
        total: Expr = base
        for axis, value in zip(self.axes, self.values, strict=True):
            own = linear_coefficients(value, variables, self.facts)
            if own is None or None in left:
                continue
            steps = [c.value if isinstance(c, IntImm) else None for c in own[0]]
            lead = next((k for k, c in enumerate(steps) if c), None)
            if lead is None or None in steps or left[lead] == 0 or left[lead] % steps[lead]:  # type: ignore[operator]
                continue
            times = left[lead] // steps[lead]  # type: ignore[operator]
            rest = [a - times * b for a, b in zip(left, steps, strict=True)]  # type: ignore[operator]
            if sum(1 for c in rest if c) >= sum(1 for c in left if c):
                continue
            left = rest
            total = total + (axis - own[1]) * times
        if any(c != 0 for c in left) or self._has_loops(total):
            return None
        return type(condition)(total, const(0, total.dtype))

    def _by_inverse(self, condition: Expr) -> Expr | None:
        """Where the axes say which iteration it is, the loop variables are expressions of them."""
        result = detect_iter_map(list(self.values), self.loops, True, "bijective")
        if not result.indices:
            return None
        inverse = inverse_affine_iter_map(result.indices, self.axes)
        translated = substitute(condition, inverse)
        return None if self._has_loops(translated) else translated
