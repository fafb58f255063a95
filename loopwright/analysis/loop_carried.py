"""carries: whether two iterations of a loop, the loops around it standing still, reach one point.

A point is a tuple of values (the data axes of a block), each an expression of loop variables. Three ways to decide:
a linear look that settles nearly every program, trying all iterations when they are few, and isl when they are many.
What none of them can decide counts as carried, which is safe: an init written further out covers the same cells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from loopwright.analysis.products import coefficient_of
from loopwright.arith.affine import Form, NoForm, Part, inequalities
from loopwright.arith.affine_reader import Affine
from loopwright.arith.digits import fixed_by
from loopwright.arith.isl import (
    BudgetExceeded,
    Names,
    NotAffine,
    affine_text,
    condition_text,
    divisions_in,
    range_text,
    within_budget,
)
from loopwright.arith.linear import is_index
from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Call,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Range,
    Sub,
    Var,
    deep,
    uses_var,
)

FEW: Final = 4_096  # iterations tried one by one before isl is asked: about its price
MANY: Final = 1 << 20  # and when isl cannot be asked
BUDGET: Final = 2_000_000  # isl operations


class Loop(NamedTuple):
    """`var` runs over `extent` integers from `min`."""

    var: Var
    min: Expr
    extent: Expr


@deep
def carries(loops: Sequence[Loop | None], depth: int, values: Sequence[Expr], conditions: Sequence[Expr]) -> bool:
    """Whether two iterations of `loops[depth]` (outermost first) reach equal `values` where `conditions` hold.

    None stands for a loop without a variable, which repeats whatever is in it. A loop of no iterations that no value
    uses counts as carrying: what stands before it runs all the same.
    """
    loop = loops[depth]
    if loop is None:
        return True
    if isinstance(loop.extent, IntImm) and loop.extent.value == 1:
        return False
    if not any(uses_var(value, lambda used: used is loop.var) for value in values):
        return True
    if any(_tells_apart(value, loops, depth) for value in values) or fixed_by(loop.var, loop.extent, values):
        return False
    if _is_injective_by_a_size(values, loops, depth, conditions):
        return False
    named = [item for item in loops if item is not None]
    query = _Query(named, named.index(loop), values, conditions)
    size = query.size()
    if size is not None and size <= FEW:
        answer = query.by_trying()
        if answer is not None:
            return answer
    answer = query.by_isl()
    if answer is None and size is not None and size <= MANY:
        answer = query.by_trying()
    return True if answer is None else answer


def _tells_apart(value: Expr, loops: Sequence[Loop | None], depth: int) -> bool:
    """Whether `value` is c · loop + (loops within, spanning less than c) + (anything that stands still)."""
    loop = loops[depth]
    inner = {item.var: item for item in loops[depth + 1 :] if item is not None}
    assert loop is not None
    form = _linear(value, {loop.var, *inner})
    if form is None or loop.var not in form:
        return False
    span = 0
    for var, coefficient in form.items():
        if var is loop.var or coefficient == 0:
            continue
        extent = inner[var].extent
        if not isinstance(extent, IntImm):
            return False
        span += abs(coefficient) * max(extent.value - 1, 0)
    return span < abs(form[loop.var])


def _linear(value: Expr, moving: set[Var]) -> dict[Var, int] | None:
    """The coefficients of the moving variables in `value`, or None when it is not linear in them."""
    if isinstance(value, Var):
        return {value: 1} if value in moving else {}
    if isinstance(value, (Add, Sub)) and is_index(value.dtype):
        a, b = _linear(value.a, moving), _linear(value.b, moving)
        if a is None or b is None:
            return None
        sign = 1 if isinstance(value, Add) else -1
        return {var: a.get(var, 0) + sign * b.get(var, 0) for var in {*a, *b}}
    if isinstance(value, Mul) and is_index(value.dtype):
        for factor, other in ((value.a, value.b), (value.b, value.a)):
            if isinstance(factor, IntImm):
                form = _linear(other, moving)
                return None if form is None else {var: c * factor.value for var, c in form.items()}
    if isinstance(value, Cast) and value.value.dtype.is_int and value.dtype.bits >= value.value.dtype.bits:
        return _linear(value.value, moving)
    return None if uses_var(value, moving.__contains__) else {}


def _is_injective_by_a_size(
    values: Sequence[Expr], loops: Sequence[Loop | None], depth: int, conditions: Sequence[Expr]
) -> bool:
    """Whether some value is q · loop + (loops within, from 0 to q - 1 at most), where q is known at run time only."""
    affine = Affine()
    ends: dict[Var, Form | None] = {}
    for item in loops:
        if item is not None:
            low, extent = affine.form(item.min), affine.loose_form(item.extent)
            is_plain = low is not None and not low.terms and not low.const and extent is not None
            ends[item.var] = extent.shifted(-1) if is_plain and extent is not None else None
            affine.own(item.var)
    loop, inner = loops[depth], {item.var for item in loops[depth + 1 :] if item is not None}
    assert loop is not None
    known = inequalities([affine.condition(condition)[0] for condition in conditions])
    for value in values:
        form = affine.loose_form(value)
        split = None if form is None else coefficient_of(form, loop.var)
        if split is None or not split[0].terms:
            continue
        step, rest = split
        inside = Form({term: k for term, k in rest.terms.items() if term in inner}, 0)
        if any([isinstance(term, Part) and not term.variables.isdisjoint(inner) for term in rest.terms]):
            continue
        if any([k < 0 or ends.get(term) is None for term, k in inside.terms.items() if isinstance(term, Var)]):
            continue  # it may be below 0
        room = step.plus(inside, -1).shifted(-1)  # not negative, if it stays below one step
        only = next(iter(inside.terms.items())) if len(inside.terms) == 1 else None
        end = ends.get(only[0]) if only is not None and only[1] == 1 and isinstance(only[0], Var) else None
        if (end is not None and end.key == step.shifted(-1).key) or room.key in [fact.key for fact in known]:
            return True
    return False


class _Query:
    def __init__(self, loops: Sequence[Loop], depth: int, values: Sequence[Expr], conditions: Sequence[Expr]) -> None:
        self.loops, self.depth = loops, depth
        self.values, self.conditions = values, conditions

    def size(self) -> int | None:
        """The number of iterations, if every bound is a literal."""
        if all(isinstance(loop.extent, IntImm) and isinstance(loop.min, IntImm) for loop in self.loops):
            return prod([max(int(loop.extent), 0) for loop in self.loops])  # type: ignore[call-overload]
        return None

    def by_trying(self) -> bool | None:
        """All iterations at once, as numpy arrays; None where an expression is not plain arithmetic on the loops."""
        # Loops of one iteration stand still: numpy counts no more than 64 dimensions.
        moving = [loop for loop in self.loops if int(loop.extent) != 1]  # type: ignore[call-overload]
        sizes = [int(loop.extent) for loop in moving]  # type: ignore[call-overload]
        if any([size <= 0 for size in sizes]):
            return False
        grid = np.indices(sizes, dtype=np.int64).reshape(len(sizes), -1)
        points: dict[Var, Any] = {loop.var: np.int64(int(loop.min)) for loop in self.loops}  # type: ignore[call-overload]
        points |= {loop.var: grid[k] + int(loop.min) for k, loop in enumerate(moving)}  # type: ignore[call-overload]
        try:
            values = [_on_grid(value, points) for value in self.values]
        except NoForm:
            return None
        keep = np.ones(grid.shape[1], dtype=bool)
        for condition in self.conditions:
            try:
                keep &= _on_grid(condition, points)
            except NoForm:
                continue  # without it there are more iterations: an answer of "not carried" stays right
        depth = moving.index(self.loops[self.depth])
        here = grid[depth]
        columns = [*grid[:depth], *[np.broadcast_to(value, here.shape) for value in values], here]
        rows = np.stack([column[keep] for column in columns], axis=1)
        rows = np.unique(rows, axis=0)
        return bool((np.diff(rows[:, :-1], axis=0) == 0).all(axis=1).any())

    def by_isl(self) -> bool | None:
        """The exact answer for linear expressions, also with symbolic bounds; None when there is none."""
        import islpy as isl

        names = Names(converts=True)
        variables = [names.var(loop.var) for loop in self.loops]
        try:
            ranges = [(loop.var, Range.from_min_extent(loop.min, loop.extent)) for loop in self.loops]
            constraints = [range_text(var, domain, names) for var, domain in ranges]
            outputs = [*variables[: self.depth], *[affine_text(value, names) for value in self.values]]
        except NotAffine:
            return None
        for condition in self.conditions:
            with suppress(NotAffine):  # without it there are more iterations: an answer of "not carried" stays right
                constraints.append(condition_text(condition, names))
        head = f"[{', '.join([name for name in names.all() if name not in variables])}] -> "
        where = " and ".join(constraints)
        reach = f"{head}{{ [{', '.join(variables)}] -> [{', '.join(outputs)}] : {where} }}"
        here = variables[self.depth]
        other = [f"j{k}" for k in range(len(variables))]
        later = f"{{ [{', '.join(variables)}] -> [{', '.join(other)}] : {here} < j{self.depth} }}"

        def meet(ctx: Any) -> bool:
            point = isl.Map.read_from_str(ctx, reach)
            twice = point.apply_range(point.reverse())
            return not twice.intersect(isl.Map.read_from_str(ctx, later)).is_empty()

        try:
            return within_budget(meet, BUDGET, 2 * divisions_in(reach))
        except (isl.Error, BudgetExceeded):
            return None


_ARITHMETIC: Final[dict[type[Expr], Callable[[Any, Any], Any]]] = {
    Add: np.add,
    Sub: np.subtract,
    Mul: np.multiply,
    Min: np.minimum,
    Max: np.maximum,
    EQ: np.equal,
    NE: np.not_equal,
    LT: np.less,
    LE: np.less_equal,
    GT: np.greater,
    GE: np.greater_equal,
    And: np.logical_and,
    Or: np.logical_or,
}


def _on_grid(value: Expr, points: dict[Var, Any]) -> Any:
    """`value` at every iteration."""
    if isinstance(value, IntImm):
        return np.int64(value.value) if not value.dtype.is_bool else np.bool_(value.value)
    if isinstance(value, Var) and value in points:
        return points[value]
    if isinstance(value, (Add, Sub, Mul)) and not is_index(value.dtype):
        raise NoForm  # it may wrap around
    if type(value) in _ARITHMETIC:
        return _ARITHMETIC[type(value)](_on_grid(value.a, points), _on_grid(value.b, points))  # type: ignore[attr-defined]
    if isinstance(value, (FloorDiv, FloorMod)):
        divisor = _on_grid(value.b, points)
        if not np.all(divisor):
            raise NoForm
        divide = np.floor_divide if isinstance(value, FloorDiv) else np.mod
        return divide(_on_grid(value.a, points), divisor)
    if isinstance(value, Not):
        return np.logical_not(_on_grid(value.a, points))
    if isinstance(value, Call) and value.op.name == "tir.likely":
        return _on_grid(value.args[0], points)
    if isinstance(value, Cast) and value.value.dtype.is_int and value.dtype.is_int and value.dtype.bits >= 32:
        return _on_grid(value.value, points)
    raise NoForm
