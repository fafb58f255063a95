"""check_bounds: every affine access stays within its buffer, for all sizes of the arguments.

Bounds of loops settle nearly every access; isl decides the rest exactly and gives the smallest iteration that goes
wrong. Left to run time: indices and conditions that depend on data, products of symbolic sizes, and what isl cannot
decide within its budget. Scalar arguments that are no size count as data: an access is refused only when it is wrong
whatever they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopwright.analysis.accesses import Access, Program, accesses_of
from loopwright.analysis.affine import Form, inequalities
from loopwright.analysis.polyhedral import Polyhedra, Undecided
from loopwright.analysis.witness import actor, at_iteration, deed, element, named_values, tuple_text, values_of
from loopwright.ir import Buffer, PrimFunc, Var
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
                "indices": tuple(indices),
                "shape": tuple(shape),
                "axis": axis,
                "writes": access.writes,
                "block": access.instance.block.name_hint if access.instance.block is not None else None,
                "iteration": named_values(values, access.loops),
            },
        )


def check_bounds(function: PrimFunc) -> None:
    """Raise OutOfBounds unless every affine access stays within its buffer."""
    check_bounds_in(accesses_of(function))


def check_bounds_in(program: Program) -> None:
    """The same for a program already walked."""
    shapes: dict[Buffer, tuple[Form | None, ...]] = {}
    asked: set[object] = set()
    for access in program.accesses:
        places = [(access.buffer, access.indices)]
        if access.cell[0] is not access.buffer:
            places.append(access.cell)
        for buffer, indices in places:
            shape = shapes.get(buffer)
            if shape is None:
                shape = shapes[buffer] = tuple([program.affine.form(extent) for extent in buffer.shape])
            if access.exact and not _proved(program, access, indices, shape):
                try:
                    _ask(program.polyhedra.begin(), access, buffer, indices, shape, asked)
                except Undecided:
                    continue


def _proved(program: Program, access: Access, indices: tuple[Form | None, ...], shape: tuple[Form | None, ...]) -> bool:
    """Whether loop bounds and single conditions show that no affine index leaves the shape."""
    known: list[Form] | None = None
    for index, extent in zip(indices, shape, strict=True):
        if index is None or extent is None:
            continue
        for form, limit in ((index.negated(), 0), (index.plus(extent, -1), -1)):
            found = program.ranges.greatest(form, access.loops)
            if found is None or found > limit:
                if known is None:
                    known = inequalities(access.guards)
                if not program.ranges.is_at_most(form, limit, access.loops, known):
                    return False
    return True


def _ask(
    polyhedra: Polyhedra,
    access: Access,
    buffer: Buffer,
    indices: tuple[Form | None, ...],
    shape: tuple[Form | None, ...],
    asked: set[object],
) -> None:
    """Ask isl for an iteration whose index leaves the shape; raise OutOfBounds with it."""
    names = {loop.var: f"i{k}" for k, loop in enumerate(access.loops)}
    wrong = []
    for index, extent in zip(indices, shape, strict=True):
        if index is not None and extent is not None:
            text = polyhedra.form(index, names)
            wrong += [f"{text} < 0", f"{text} >= {polyhedra.form(extent, names)}"]
    constraints = [*polyhedra.domain(access.loops, access.guards, names), f"({' or '.join(wrong)})"]
    question = tuple(constraints)
    if question in asked:
        return  # answered before: no such iteration
    asked.add(question)
    point = polyhedra.smallest(list(names.values()), constraints)
    if point is None:
        return
    values = values_of(point, names, polyhedra)
    found = [None if index is None else index.at(values) for index in indices]
    # A dimension whose index is not affine was not part of the question: variables in its size have no value.
    sizes = [
        None if extent is None or (index is None and extent.terms) else extent.at(values)
        for index, extent in zip(indices, shape, strict=True)
    ]
    for axis, (at, size) in enumerate(zip(found, sizes, strict=True)):
        if at is not None and size is not None and not 0 <= at < size:
            raise OutOfBounds(access, buffer, found, sizes, axis, values)
