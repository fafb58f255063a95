"""check_thread_memory: what a thread keeps for itself, no other thread reads.

Memory of scope "local" is one a thread, "shared" one a block of threads (`thread_axes.py` has the whole list). A read
finds there what its own thread or block has written, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from loopwright.analysis.accesses import Access, Program, accesses_of
from loopwright.analysis.polyhedral import Undecided
from loopwright.analysis.same_cell import same_home, same_indices, same_owner
from loopwright.analysis.thread_axes import is_of_block
from loopwright.analysis.witness import actor, assignment, element, named_values, values_of
from loopwright.ir import Buffer, PrimFunc, Var
from loopwright.runtime.errors import LoopwrightError

PAIRS: Final = 200


class PrivateMemoryShared(LoopwrightError, ValueError):
    """A thread reads an element of private memory that only another thread has written.

    Every thread has its own "local" memory, every block its own "shared" memory. To pass values between threads of a
    block use scope "shared"; between blocks "global", and a kernel of its own for the reading.

    For example:

        from loopwright.analysis import check_program
        from loopwright.script import tir as T

        @T.prim_func
        def reverse(A: T.Buffer(32), B: T.Buffer(32)):
            L = T.alloc_buffer(32, scope="local")
            for tx in T.thread_binding(32, thread="threadIdx.x"):
                L[tx] = A[tx]
            for tx in T.thread_binding(32, thread="threadIdx.x"):
                B[tx] = L[31 - tx]

        check_program(reverse)
    """

    code = "LW0836"

    def __init__(self, pair: tuple[Access, Access], values: tuple[Mapping[Var, int], Mapping[Var, int]]) -> None:
        read, write = pair
        buffer = read.cell[0]
        whose = "block" if is_of_block(buffer.scope()) else "thread"
        cell = element(buffer, [index.at(values[0]) for index in read.cell[1] if index is not None])
        wider = "global" if whose == "block" else "shared"

        super().__init__(
            lambda: f"{actor(read)} reads {cell} in another {whose} than the one that wrote it",
            at=read.instance.statement,
            why=lambda: (
                f"{buffer.name} has scope {buffer.scope()!r}, one copy a {whose}: {actor(write)} writes {cell} at "
                f"{assignment(values[1], write.loops)}, and it is read at {assignment(values[0], read.loops)}"
            ),
            hint=f'put {buffer.name} into "{wider}" memory, or let the {whose} that reads an element write it',
            fields={
                "buffer": buffer.name,
                "scope": buffer.scope(),
                "read": named_values(values[0], read.loops),
                "written": named_values(values[1], write.loops),
            },
        )


def check_thread_memory(function: PrimFunc) -> None:
    """Raise PrivateMemoryShared when a thread certainly reads what only another one has."""
    check_thread_memory_in(accesses_of(function))


def check_thread_memory_in(program: Program) -> None:
    """The same for a program already walked."""
    if not program.has_threads or program.regions.reason is not None:
        return
    touched: dict[Buffer, list[Access]] = {}
    for access in program.accesses:
        if program.owners(access.cell[0]) and access.cell[0].data not in program.unknown:
            touched.setdefault(access.cell[0], []).append(access)
    for accesses in touched.values():
        reads = [access for access in accesses if not access.writes and access.is_must]
        writes = [access for access in accesses if access.writes]
        if len(reads) * len(writes) <= PAIRS:
            for read in reads:
                for write in writes:
                    if write.is_must:
                        _ask(program, read, write, writes)


def _ask(program: Program, read: Access, write: Access, writes: Sequence[Access]) -> None:
    polyhedra = program.polyhedra.begin()
    first = {loop.var: f"i{k}" for k, loop in enumerate(read.loops)}
    second = {loop.var: f"j{k}" for k, loop in enumerate(write.loops)}
    try:
        constraints = polyhedra.domain(read.loops, read.guards, first)
        constraints += _touches(program, write, read, second, first)
        own = [_own(program, item, read, first) for item in writes]
        dims = [*first.values(), *second.values()]
        point = polyhedra.smallest(dims, constraints, own)
    except Undecided:
        return
    if point is not None:
        values = values_of(point, first, polyhedra), values_of(point, second, polyhedra)
        raise PrivateMemoryShared((read, write), values)


def _touches(
    program: Program, write: Access, read: Access, own: Mapping[Var, str], names: Mapping[Var, str]
) -> list[str]:
    """The constraints that the write touches the cell of the read, in whatever thread."""
    constraints = program.polyhedra.domain(write.loops, write.guards, own)
    return constraints + same_home(program, read, own, names) + same_indices(program, write, own, read, names)


def _own(program: Program, write: Access, read: Access, names: Mapping[Var, str]) -> str:
    """The condition that the write touches the cell in the thread of the read."""
    own = {loop.var: f"w{k}" for k, loop in enumerate(write.loops)}
    constraints = _touches(program, write, read, own, names)
    constraints += same_owner(program, write, own, read, names)
    text = " and ".join(constraints) or "0 = 0"
    return f"exists ({', '.join(own.values())} : {text})" if own else text
