"""check_initialised: no cell of memory that the program allocates is read before something writes it.

A cell is a buffer, the iteration that holds its allocation, and an index. Lemmas settle the common cases: one block
fills the buffer before others read it (`single_writer.py`), an earlier nest wrote the whole buffer, or wrote the very
cell in the same iteration of the loops around both. isl decides the rest exactly. It is asked only whether *any* write
precedes; which one is last does not matter here, and asking for it (isl's dataflow) takes six times as long.

Only certain errors are errors. A store that depends on data may be the one that was needed, so the cells it may reach
count as written. Memory that calls may touch, that has several names or that threads share is not judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from loopwright.analysis.accesses import Access, Program, accesses_of
from loopwright.analysis.dataflow import dataflow_of
from loopwright.analysis.instances import Loop, common_depth
from loopwright.analysis.polyhedral import Undecided
from loopwright.analysis.same_cell import same_home, same_indices
from loopwright.analysis.single_writer import SingleWriterBuffers
from loopwright.analysis.time_order import before
from loopwright.analysis.witness import actor, assignment, at_iteration, element, named_values, values_of
from loopwright.arith.affine import Form
from loopwright.ir import BufferStore, PrimFunc, Var
from loopwright.runtime.errors import LoopwrightError

PAIRS: Final = 100_000  # of reads and writes compared for one buffer, before it goes unproved
ASKED: Final = 1_000  # the same for pairs given to isl


class Writer(NamedTuple):
    """A store that reaches the cell after it was read."""

    access: Access
    values: Mapping[Var, int]


class UninitialisedRead(LoopwrightError, ValueError):
    """The program reads an element of its own memory that nothing has written yet.

    Memory a program allocates starts without values. The message shows the first iteration that reads too early, for
    the smallest sizes, and what writes the element later, if anything does. A reduction into allocated memory needs
    an `init`.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def total(A: T.Buffer(8), B: T.Buffer(1)):
            S = T.alloc_buffer(1)
            for i in range(8):
                S[0] = S[0] + A[i]  # the sum has no start value
            B[0] = S[0]

        loopwright.build(total)
    """

    code = "LW0822"

    def __init__(
        self,
        access: Access,
        indices: Sequence[int],
        values: Mapping[Var, int],
        later: Writer | None,
    ) -> None:
        buffer = access.cell[0]
        cell = element(buffer, indices)
        statement = access.instance.statement
        updates = isinstance(statement, BufferStore) and statement.buffer is access.buffer

        def why() -> str:
            if later is None:
                return f"{buffer.name} is allocated without values, and nothing ever writes {cell}"
            when = assignment(later.values, later.access.loops)
            return (
                f"{buffer.name} is allocated without values, and {actor(later.access)} writes {cell} only later"
                f"{f', at {when}' if when else ''}"
            )

        super().__init__(
            lambda: f"{actor(access)} reads {cell} before anything has written it{at_iteration(values, access.loops)}",
            at=access.instance.statement,
            why=why,
            hint=f"give the reduction a start value: with T.init(): {buffer.name}[…] = 0"
            if updates
            else f"write every element of {buffer.name} that is read, before the statement that reads it",
            fields={
                "buffer": buffer.name,
                "indices": tuple(indices),
                "block": access.instance.block.name_hint if access.instance.block is not None else None,
                "iteration": named_values(values, access.loops),
                "written_later": later is not None,
            },
        )


def check_initialised(function: PrimFunc) -> None:
    """Raise UninitialisedRead when a cell of allocated memory is certainly read before it is written."""
    check_initialised_in(accesses_of(function))


def check_initialised_in(program: Program) -> None:
    """The same for a program already walked."""
    if not program.homes or program.has_threads:
        return
    touched: dict[Var, list[Access]] = {}
    for access in program.accesses:
        data = access.cell[0].data
        if data in program.homes and data not in program.unknown:
            touched.setdefault(data, []).append(access)
    single_writers: SingleWriterBuffers | None = None
    for accesses in touched.values():
        reads = [access for access in accesses if not access.writes and access.is_must]
        writes = [access for access in accesses if access.writes]
        if len(reads) * len(writes) > PAIRS:
            continue
        shape = tuple([program.affine.form(extent) for extent in accesses[0].cell[0].shape])
        open_reads = [read for read in reads if not any([_supplies(program, w, read, shape) for w in writes])]
        if not open_reads:
            continue
        if single_writers is None:
            single_writers = SingleWriterBuffers(dataflow_of(program))
        buffers = {access.cell[0] for access in accesses}
        if len(buffers) == 1 and single_writers.of(buffers.pop()) is not None:
            continue
        if len(open_reads) * len(writes) <= ASKED:
            for read in open_reads:
                try:
                    _ask(program, read, writes, shape)
                except Undecided:
                    continue


# --- the lemmas ---------------------------------------------------------------------------------------------------


def _supplies(program: Program, write: Access, read: Access, shape: Sequence[Form | None]) -> bool:
    """Whether `write`, in one iteration of the loops around both, has written the cell before `read` reads it.

    Each index of the write is either the index of the read, in the variables of the common loops alone, or a loop of
    its own that runs over the whole dimension.
    """
    if write.guards or not write.is_must or None in shape:
        return False
    common = common_depth(write.instance, read.instance)
    if not write.instance.positions[common] < read.instance.positions[common]:
        return False
    shared = {loop.var for loop in write.loops[:common]}
    own = {loop.var: loop for loop in write.loops[common:]}
    for mine, theirs, extent in zip(write.cell[1], read.cell[1], shape, strict=True):
        assert mine is not None and theirs is not None and extent is not None
        runner = next(iter(mine.terms)) if len(mine.terms) == 1 and not mine.const else None
        if isinstance(runner, Var) and runner in own and mine.terms[runner] == 1:
            loop = own.pop(runner)  # a loop may cover one dimension only
            if not _is_constant(loop.low, 0) or loop.high is None or not _equal(loop.high.shifted(1), extent):
                return False
        elif not (_equal(mine, theirs) and mine.variables() <= shared | _parameters(mine, program)):
            return False
    # Other loops only repeat the write, unless they never run.
    return all([_runs(program, loop, write) for loop in own.values()])


def _parameters(form: Form, program: Program) -> set[Var]:
    """The variables of a form that are neither loops nor anything bound within the program."""
    return {var for var in form.variables() if var not in program.affine.values}


def _equal(a: Form, b: Form) -> bool:
    return a.const == b.const and a.terms == b.terms


def _is_constant(form: Form | None, value: int) -> bool:
    return form is not None and not form.terms and form.const == value


def _runs(program: Program, loop: Loop, write: Access) -> bool:
    if loop.low is None or loop.high is None:
        return False
    return program.ranges.is_at_most(loop.low.plus(loop.high, -1), 0, write.loops)


# --- the exact test -----------------------------------------------------------------------------------------------


def _ask(program: Program, read: Access, writes: Sequence[Access], shape: Sequence[Form | None]) -> None:
    """Ask isl for an iteration of `read` that no write precedes; raise UninitialisedRead with it."""
    polyhedra = program.polyhedra.begin()
    names = {loop.var: f"i{k}" for k, loop in enumerate(read.loops)}
    runs = polyhedra.domain(read.loops, read.guards, names)
    for index, extent in zip(read.cell[1], shape, strict=True):
        # Reads outside the buffer are left out: they are wrong for another reason.
        if index is not None and extent is not None:
            runs.append(f"0 <= {polyhedra.form(index, names)} < {polyhedra.form(extent, names)}")
    earlier = [_precedes(program, write, read, names) for write in writes]
    point = polyhedra.smallest(list(names.values()), runs, [text for text in earlier if text is not None])
    if point is not None:
        values = values_of(point, names, polyhedra)
        indices = [index.at(values) for index in read.cell[1] if index is not None]
        raise UninitialisedRead(read, indices, values, _later(program, read, indices, values, writes))


def _precedes(program: Program, write: Access, read: Access, names: Mapping[Var, str]) -> str | None:
    """The condition, as isl text, that `write` has touched the cell before `read` does; None when it never has.

    An index of the write that is not affine may be anything.
    """
    polyhedra = program.polyhedra
    own = {loop.var: f"w{k}" for k, loop in enumerate(write.loops)}
    earlier = before(write.time_in(own), read.time_in(names))  # a statement loads before it stores
    if earlier is None:
        return None
    constraints = polyhedra.domain(write.loops, write.guards, own)
    constraints += same_home(program, read, own, names) + same_indices(program, write, own, read, names)
    constraints.append(earlier)
    text = " and ".join(constraints)
    return f"exists ({', '.join(own.values())} : {text})" if own else text


def _later(
    program: Program, read: Access, indices: Sequence[int], values: Mapping[Var, int], writes: Sequence[Access]
) -> Writer | None:
    """The first store in the program that certainly writes the cell."""
    polyhedra = program.polyhedra
    home = program.homes[read.cell[0].data]
    parameters = [f"{name} = {values[var]}" for var, name in polyhedra.parameters.items()]
    for write in writes:
        if not write.is_must:
            continue
        names = {loop.var: f"w{k}" for k, loop in enumerate(write.loops)}
        same = [f"{names[loop.var]} = {values[loop.var]}" for loop in home if loop.var in names and loop.var in values]
        for index, value in zip(write.cell[1], indices, strict=True):
            assert index is not None
            same.append(f"{polyhedra.form(index, names)} = {value}")
        constraints = [*parameters, *same, *polyhedra.domain(write.loops, write.guards, names)]
        try:
            point = polyhedra.smallest(list(names.values()), constraints, certain=False)
        except Undecided:
            continue
        if point is not None:
            own = values_of(point, names, polyhedra)
            return Writer(write, {loop.var: own[loop.var] for loop in write.loops})
    return None
