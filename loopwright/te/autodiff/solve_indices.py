"""Which points of a loop nest read a given element: the indices of a load, solved for the axes.

    A[i * 2 + k] is A[x]      i = (x - k) // 2, for those k with (x - k) % 2 == 0 and i in its range

Each equation gives away the axis with the most iterations, so that as few as possible are left to run over. What is no
linear equation, and no rearrangement of digits (`i // 4, i % 4`), stays a condition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from loopwright.arith import Analyzer, detect_iter_map, inverse_affine_iter_map, linear_coefficients
from loopwright.arith.iter_map import NotInvertible
from loopwright.ir import EQ, Expr, IntImm, Range, Var, const, substitute, uses_var


@dataclass
class Solution:
    """The axes in `values` are given by the element and the other axes, which run free; where `conditions` hold."""

    values: dict[Var, Expr] = field(default_factory=dict)
    conditions: list[Expr] = field(default_factory=list)

    def at(self, expr: Expr) -> Expr:
        """An expression of the axes, where the solved ones have their values."""
        return substitute(expr, self.values)


def solve(
    indices: Sequence[Expr],
    element: Sequence[Var],
    axes: Mapping[Var, Range],
    extents: Mapping[Var, Range],
    known: Mapping[Var, Expr],
) -> Solution:
    """The points of `axes` at which `indices` are `element`; `extents` are the ranges of the element's variables.

    `known` are axes whose value is given from the start.
    """
    return _Solver(axes, extents, known).run(list(indices), list(element))


class _Solver:
    def __init__(self, axes: Mapping[Var, Range], extents: Mapping[Var, Range], known: Mapping[Var, Expr]) -> None:
        self.axes = axes
        self.facts = Analyzer()
        for var, domain in [*axes.items(), *extents.items()]:
            self.facts.bind(var, domain)
        self.found = Solution(dict(known))
        self.to_check: list[Var] = []  # solved axes, whose value must lie in their range

    def run(self, indices: list[Expr], element: list[Var]) -> Solution:
        equations = list(zip(indices, element, strict=True))
        # An index that is an axis says so at once; the others are solved with what is known by then.
        for index, at in list(equations):
            if isinstance(index, Var) and index in self._open():
                self._give(index, at)
                equations.remove((index, at))
        equations = self._rearranged(equations)
        for index, at in sorted(equations, key=lambda pair: self._solved_how(pair[0])):
            self._equation(index, at)
        for var in self.to_check:
            self._keep_in_range(var)
        return self.found

    def _open(self) -> list[Var]:
        return [var for var in self.axes if var not in self.found.values]

    def _solved_how(self, index: Expr) -> int:
        """Equations with fewer axes first."""
        return sum([uses_var(self.found.at(index), lambda used, var=var: used is var) for var in self._open()])  # type: ignore[misc]

    def _give(self, var: Var, value: Expr) -> None:
        given = {var: value}
        for other, old in self.found.values.items():
            self.found.values[other] = substitute(old, given)
        self.found.values[var] = value
        self.found.conditions = [substitute(condition, given) for condition in self.found.conditions]
        self.to_check.append(var)

    def _rearranged(self, equations: list[tuple[Expr, Var]]) -> list[tuple[Expr, Var]]:
        """Equations whose indices are digits of axes, solved together; those that are left."""
        open_axes = self._open()
        now = [(self.facts.simplify(self.found.at(index)), at) for index, at in equations]
        digits = [(index, at) for index, at in now if linear_coefficients(index, open_axes, self.facts) is None]
        if not digits:
            return now
        used = {
            var: self.axes[var]
            for var in open_axes
            if any([uses_var(index, lambda one, var=var: one is var) for index, _ in digits])  # type: ignore[misc]
        }
        result = detect_iter_map([index for index, _ in digits], used, check_level="onto").indices if used else []
        if not result:
            return now
        try:
            inverse = inverse_affine_iter_map(result, [at for _, at in digits])
        except NotInvertible:
            return now
        if set(inverse) != set(used):
            return now
        for var, value in inverse.items():
            self._give(var, self.facts.simplify(value))
        # The inverse is right for elements that some point reads; it remains to ask whether there is one.
        self._require_equal(digits)
        return [pair for pair in now if pair not in digits]

    def _require_equal(self, equations: Sequence[tuple[Expr, Expr]]) -> None:
        for index, at in equations:
            value = self.facts.simplify(self.found.at(index))
            if not self.facts.can_prove_equal(value, at):
                self.found.conditions.append(EQ(value, at.astype(value.dtype)))

    def _equation(self, index: Expr, at: Var) -> None:
        index = self.facts.simplify(self.found.at(index))
        open_axes = [var for var in self._open() if uses_var(index, lambda used, var=var: used is var)]  # type: ignore[misc]
        linear = linear_coefficients(index, open_axes, self.facts) if open_axes else None
        if linear is None:
            self._require_equal([(index, at)])
            return
        steps = {
            var: step.value
            for var, step in zip(open_axes, linear[0], strict=True)
            if isinstance(step, IntImm) and step.value != 0
        }
        if not steps:
            self._require_equal([(index, at)])
            return
        var = max(steps, key=lambda one: (self._iterations(one), abs(steps[one]) == 1))
        step = steps[var]
        rest = self.facts.simplify(at.astype(index.dtype) - substitute(index, {var: const(0, var.dtype)}))
        if step < 0:
            step, rest = -step, self.facts.simplify(const(0, rest.dtype) - rest)
        if step != 1:
            divisor = const(step, rest.dtype)
            is_whole = EQ(rest % divisor, const(0, rest.dtype))
            rest, remainder = self.facts.simplify(rest // divisor), is_whole
            if not self.facts.can_prove(remainder):
                self.found.conditions.append(remainder)
        self._give(var, rest.astype(var.dtype))

    def _iterations(self, var: Var) -> int:
        extent = self.axes[var].extent
        return extent.value if isinstance(extent, IntImm) else 2**62  # a size that is not known is taken to be large

    def _keep_in_range(self, var: Var) -> None:
        value, domain = self.found.values[var], self.axes[var]
        low, high = self.found.at(domain.min), self.found.at(domain.min + domain.extent)
        for condition in (value >= low, value < high):
            if not self.facts.can_prove(condition):
                self.found.conditions.append(self.facts.simplify(condition))
