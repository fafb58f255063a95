"""check_domains: a block runs only with axes inside the domains it declares.

A declared domain is what schedule steps, proofs and the written-down init of a reduction go by: an axis that leaves it
reads and writes what nobody counted on. As with bounds, loop bounds settle nearly every axis, isl decides the rest
exactly, and what depends on data is left to the evaluator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loopwright.analysis.accesses import Program, accesses_of
from loopwright.analysis.instances import Loop, Realized
from loopwright.analysis.polyhedral import Undecided
from loopwright.analysis.witness import at_iteration, named_values, values_of
from loopwright.arith.affine import Form, inequalities
from loopwright.ir import Block, BlockRealize, PrimFunc, Var
from loopwright.runtime.errors import LoopwrightError


class AxisLeavesDomain(LoopwrightError, ValueError):
    """A block would run with an axis outside the domain that the block declares for it.

    `vi = T.axis.spatial(8, i)` promises that the block runs only with vi from 0 to 7, and everything that is proved
    about the program rests on it. Either the loop runs too far (put the block under `T.where`), or the binding is off,
    or the domain is declared too small.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def shifted(A: T.Buffer((16,), "float32")):
            for i in range(8):
                with T.block("A"):
                    vi = T.axis.spatial(8, i + 1)
                    A[vi] = T.float32(0)

        loopwright.build(shifted)
    """

    code = "LW0824"

    def __init__(
        self,
        realize: BlockRealize,
        axis: int,
        value: int,
        domain: range,
        values: Mapping[Var, int],
        loops: Sequence[Loop],
    ) -> None:
        block, name = realize.block, realize.block.iter_vars[axis].var.name
        allowed = f"{domain.start} to {domain.stop - 1}" if domain else "without any value"
        super().__init__(
            lambda: (
                f'block "{block.name_hint}" runs with {name} = {value}, outside its domain {allowed}'
                f"{at_iteration(values, loops)}"
            ),
            at=realize,
            why=lambda: f"{name} is bound to {realize.iter_values[axis]!r}",
            hint="put the block under a condition (T.where), correct the binding, or declare a larger domain",
            fields={
                "block": block.name_hint,
                "axis": name,
                "value": value,
                "domain": (domain.start, domain.stop),
                "iteration": named_values(values, loops),
            },
        )


class _Axis(NamedTuple):
    """An axis whose value and domain are affine: right where no form of `limits` is negative."""

    position: int
    value: Form
    low: Form
    extent: Form

    @property
    def limits(self) -> tuple[Form, Form]:
        above = self.value.plus(self.low, -1)
        return above, self.extent.plus(above, -1).shifted(-1)


def check_domains(function: PrimFunc) -> None:
    """Raise AxisLeavesDomain unless every block runs with affine axes inside their domains."""
    check_domains_in(accesses_of(function))


def check_domains_in(program: Program) -> None:
    """The same for a program already walked."""
    for realized in program.realized:
        axes = _axes(program, realized)
        if realized.exact and not _proved(program, realized, axes):
            try:
                _ask(program, realized, axes)
            except Undecided:
                continue


def stays_in_domains(program: Program, block: Block) -> bool:
    """Whether a block is proved to run with all of its axes inside their domains, for all sizes and scalars."""
    for realized in program.realized:
        if realized.node.block is block:
            axes = _axes(program, realized)
            if len(axes) < len([axis for axis in block.iter_vars if axis.dom is not None]):
                return False
            if not _proved(program, realized, axes):
                try:
                    _ask(program, realized, axes)
                except (AxisLeavesDomain, Undecided):
                    return False
    return True


def _axes(program: Program, realized: Realized) -> list[_Axis]:
    result = []
    for position, (axis, value) in enumerate(zip(realized.node.block.iter_vars, realized.values, strict=True)):
        if axis.dom is None or value is None:
            continue
        low, extent = program.affine.form(axis.dom.min), program.affine.form(axis.dom.extent)
        if low is not None and extent is not None:
            result.append(_Axis(position, value, low, extent))
    return result


def _proved(program: Program, realized: Realized, axes: Sequence[_Axis]) -> bool:
    """Whether loop bounds and single conditions keep every axis in its domain."""
    known: list[Form] | None = None
    for axis in axes:
        for limit in axis.limits:
            result = program.ranges.greatest(limit.negated(), realized.loops)
            if result is None or result > 0:
                known = inequalities(realized.guards) if known is None else known
                if not program.ranges.is_at_most(limit.negated(), 0, realized.loops, known):
                    return False
    return True


def _ask(program: Program, realized: Realized, axes: Sequence[_Axis]) -> None:
    """Ask isl for an iteration with an axis outside; raise AxisLeavesDomain with it."""
    polyhedra, loops = program.polyhedra.begin(), realized.loops
    names = {loop.var: f"i{k}" for k, loop in enumerate(loops)}
    wrong = [f"{polyhedra.form(limit, names)} < 0" for axis in axes for limit in axis.limits]
    constraints = [*polyhedra.domain(loops, realized.guards, names), f"({' or '.join(wrong)})"]
    point = polyhedra.smallest(list(names.values()), constraints)
    if point is None:
        return
    values = values_of(point, names, polyhedra)
    for axis in axes:
        value, low, extent = axis.value.at(values), axis.low.at(values), axis.extent.at(values)
        domain = range(low, low + extent)
        if value not in domain:
            raise AxisLeavesDomain(realized.node, axis.position, value, domain, values, loops)
