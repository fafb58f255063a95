"""check_bounds: every affine access stays within its buffer, for all sizes of the arguments.

Bounds of loops settle nearly every access; isl decides the rest exactly and gives the smallest iteration that goes
wrong. Indices that are not affine are bounded by `opaque_indices.py`. What is neither proved nor wrong for certain is
*unproved*, and checked when the program runs (`transform/passes/check_accesses.py`): indices and conditions that depend
on data, and what isl cannot decide within its budget. Scalar arguments that are no size count as data: an access is
refused only when it is wrong whatever they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from loopwright.analysis.accesses import Access, Program, accesses_of
from loopwright.analysis.opaque_indices import InsideProof, Polynomials, unproved_axes
from loopwright.analysis.polyhedral import Polyhedra, Undecided
from loopwright.analysis.witness import actor, at_iteration, deed, element, named_values, tuple_text, values_of
from loopwright.arith.affine import Form, inequalities
from loopwright.ir import Buffer, BufferLoad, Expr, Node, PrimFunc, Var, deep, pre_order_visit
from loopwright.ir.annotations import CHECKED_INDICES
from loopwright.runtime.errors import LoopwrightError


class OutOfBounds(LoopwrightError, IndexError):
    """The program reads or writes an element that its buffer does not have.

    Found before anything runs: loop bounds, conditions and indices are affine, so every iteration is known. The message
    shows the first iteration that goes wrong, for the smallest sizes. Either the loop runs too far, or the access needs
    a condition: `if`, `T.where` or `if_then_else` around it (not `Select`, which computes both of its sides).

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def shift(A: T.Buffer(8)):
            for i in range(8):
                A[i] = A[i + 1]

        loopwright.build(shift)
    """

    code = "LW0821"

    def __init__(
        self,
        access: Access,
        buffer: Buffer,
        indices: Sequence[int | None],
        shape: Sequence[int | None],
        axis: int,
        values: Mapping[Var, int],
    ) -> None:
        self.indices, self.shape = tuple(indices), tuple(shape)
        self.iteration: Mapping[str, int] = named_values(values, access.loops)

        def why() -> str:
            index, extent = indices[axis], shape[axis]
            if not extent:
                limit = "but that axis is empty"
            else:
                limit = "below 0" if index is not None and index < 0 else f"but the last one is {extent - 1}"
            what = repr(access.node.indices[axis]) if buffer is access.buffer else f"of {buffer.name}"
            return f"index {what} on axis {axis} is {index}, {limit}"

        super().__init__(
            lambda: (
                f"{element(buffer, indices)} is outside its shape {tuple_text(shape)}: "
                f"{actor(access)} {deed(access)} it{at_iteration(values, access.loops)}"
            ),
            at=access.instance.statement,
            why=why,
            hint="shorten the loop, enlarge the buffer, or put the store under a condition (if, T.where)"
            if access.writes
            else "shorten the loop, enlarge the buffer, or guard the load: if_then_else(condition, load, other) reads "
            "only where the condition holds (Select reads always)",
            fields={
                "buffer": buffer.name,
                "indices": self.indices,
                "shape": self.shape,
                "axis": axis,
                "writes": access.writes,
                "block": access.instance.block.name_hint if access.instance.block is not None else None,
                "iteration": self.iteration,
            },
        )


class Unproved(NamedTuple):
    """An access that is not proved to stay inside its buffer, nor certain to leave it; `axes` are those in doubt."""

    access: Access
    axes: tuple[int, ...]


def check_bounds(function: PrimFunc) -> None:
    """Raise OutOfBounds unless every affine access stays within its buffer."""
    check_bounds_in(accesses_of(function))


@deep
def check_bounds_in(program: Program) -> list[Unproved]:
    """The same for a program already walked; what is left to be checked when it runs comes back."""
    return _Check(program, refuses=True).unproved()


@deep
def unproved_in(program: Program) -> list[Unproved]:
    """The accesses that are not proved to stay inside, those that are certainly wrong among them."""
    return _Check(program, refuses=False).unproved()


def is_inside(program: Program, access: Access) -> bool:
    """Whether an access is proved to stay inside; raises OutOfBounds where it certainly does not."""
    return not _Check(program, refuses=True).axes(access)


class _Check:
    """The check of one program."""

    def __init__(self, program: Program, refuses: bool) -> None:
        self.program = program
        self.refuses = refuses
        self.shapes: dict[Buffer, tuple[Form | None, ...]] = {}
        self.asked: dict[object, bool] = {}  # questions to isl, and whether no iteration goes wrong
        self.polynomials: Polynomials | None = None

    def unproved(self) -> list[Unproved]:
        result = []
        for access in [*self.program.accesses, *self.program.addresses]:
            axes = self._axes(access, access.buffer, access.indices)
            cell, indices = access.cell
            if cell is not access.buffer and self._axes(access, cell, indices):
                axes = tuple(range(access.buffer.ndim))  # the region of a sub-buffer is in doubt, not one index
            axes = tuple([axis for axis in axes if not self._is_checked(access.node.indices[axis])])
            if axes:
                result.append(Unproved(access, axes))
        return result

    def axes(self, access: Access) -> tuple[int, ...]:
        """The axes along which an access is not proved."""
        return self._axes(access, *access.cell)

    def _is_checked(self, index: Expr) -> bool:
        """Whether data that every caller has checked is the only data that decides the index."""
        names: Any = self.program.function.attrs.get(CHECKED_INDICES, ())
        if not names:
            return False
        read: set[str] = set()

        def look(node: Node) -> None:
            if isinstance(node, BufferLoad):
                read.add(node.buffer.name)
            elif isinstance(node, Var) and node in self.program.definitions:
                pre_order_visit(self.program.definitions[node].value, look)

        pre_order_visit(index, look)
        return bool(read) and read <= set(names)

    def _axes(self, access: Access, buffer: Buffer, indices: tuple[Form | None, ...]) -> tuple[int, ...]:
        """The axes of `buffer` along which `access` is not proved; raises OutOfBounds where it is certainly wrong."""
        shape = self.shapes.get(buffer)
        if shape is None:
            shape = self.shapes[buffer] = tuple([self.program.affine.form(extent) for extent in buffer.shape])
        affine = _unproved(self.program, access, indices, shape)
        # One element may stand for an axis, whatever the index: that is known when the function is called.
        refuses = self.refuses and not (buffer.buffer_type == "auto_broadcast" and not access.writes)
        if affine and access.exact and refuses and self._ask(access, buffer, indices, shape, certain=True):
            affine = []
        opaque = [axis for axis, pair in enumerate(zip(indices, shape, strict=True)) if None in pair]
        if not affine and not opaque:
            return ()
        if buffer is not access.buffer:
            return (*affine, *opaque)  # there are no expressions for these indices
        if self.polynomials is None:
            self.polynomials = Polynomials(self.program)
        proof = InsideProof(self.polynomials, access)
        left = unproved_axes(proof, buffer, access.node.indices, [*affine, *opaque])
        if set(left) & set(affine) and self._ask(access, buffer, indices, shape, certain=False):
            left = [axis for axis in left if axis not in affine]
        return tuple(left)

    def _ask(
        self,
        access: Access,
        buffer: Buffer,
        indices: tuple[Form | None, ...],
        shape: tuple[Form | None, ...],
        certain: bool,
    ) -> bool:
        """Whether isl finds no iteration whose index leaves the shape.

        With `certain`, one that leaves it whatever the scalars are raises OutOfBounds.
        """
        try:
            return _ask(self.program.polyhedra.begin(), access, buffer, indices, shape, self.asked, certain)
        except Undecided:
            return False


def _unproved(
    program: Program, access: Access, indices: tuple[Form | None, ...], shape: tuple[Form | None, ...]
) -> list[int]:
    """The axes with an affine index that loop bounds and single conditions do not show to stay inside."""
    known: list[Form] | None = None
    result = []
    for axis, (index, extent) in enumerate(zip(indices, shape, strict=True)):
        if index is None or extent is None:
            continue
        for form, limit in ((index.negated(), 0), (index.plus(extent, -1), -1)):
            greatest = program.ranges.greatest(form, access.loops)
            if greatest is None or greatest > limit:
                if known is None:
                    known = inequalities(access.guards)
                if not program.ranges.is_at_most(form, limit, access.loops, known):
                    result.append(axis)
                    break
    return result


def _ask(
    polyhedra: Polyhedra,
    access: Access,
    buffer: Buffer,
    indices: tuple[Form | None, ...],
    shape: tuple[Form | None, ...],
    asked: dict[object, bool],
    certain: bool,
) -> bool:
    """Whether isl finds no iteration whose index leaves the shape; raises OutOfBounds with one that is certain."""
    names = {loop.var: f"i{k}" for k, loop in enumerate(access.loops)}
    wrong = []
    for index, extent in zip(indices, shape, strict=True):
        if index is not None and extent is not None:
            text = polyhedra.form(index, names)
            wrong += [f"{text} < 0", f"{text} >= {polyhedra.form(extent, names)}"]
    constraints = [*polyhedra.domain(access.loops, access.guards, names), f"({' or '.join(wrong)})"]
    question = (certain, *constraints)
    if question in asked:
        return asked[question]
    asked[question] = False
    dims = list(names.values())
    choices = polyhedra.program.choices
    if not certain:
        asked[question] = polyhedra.is_impossible(dims, constraints)
        if choices and not asked[question]:
            constraints += [polyhedra.condition(choice, names) for choice in choices]
            asked[question] = polyhedra.is_impossible(dims, constraints)
        return asked[question]
    point = polyhedra.smallest(dims, constraints)
    if choices and point is not None:
        constraints += [polyhedra.condition(choice, names) for choice in choices]
        point = polyhedra.smallest(dims, constraints)
    if point is None:
        # That none is wrong whatever the scalars are does not mean that none is wrong for some of them.
        asked[question] = all([var in polyhedra.program.sizes for var in polyhedra.parameters])
        return asked[question]
    values = values_of(point, names, polyhedra)
    result = [None if index is None else index.at(values) for index in indices]
    # A dimension whose index is not affine was not part of the question: variables in its size have no value.
    sizes = [
        None if extent is None or (index is None and extent.terms) else extent.at(values)
        for index, extent in zip(indices, shape, strict=True)
    ]
    for axis, (at, size) in enumerate(zip(result, sizes, strict=True)):
        if at is not None and size is not None and not 0 <= at < size:
            raise OutOfBounds(access, buffer, result, sizes, axis, values)
    return False
