"""unchanged_writers: buffers that hold the same in both versions, because the statements that write them are the same.

    for f in …: W writes B[f // 70001, f % 70001]      the very nodes, in both versions, and nobody else writes B
    for …: R reads B[vi, vj]                            R[vi, vj] sees what it saw, whatever W does

A reader that comes after all of W finds in a cell what W left there, and a reader that stands for another one, at other
axis values, finds the same where both read one cell (`same_source.py`). So the loops and the indices of W need not be
looked at: isl, which is asked else, takes minutes over quotients of large primes, and the other lemmas know no threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.analysis.accesses import Access
from loopwright.analysis.dataflow import BlockKey, Dataflow, InitOf
from loopwright.analysis.effects import OUTSIDE
from loopwright.analysis.single_writer import SingleWriterBuffers
from loopwright.analysis.thread_axes import scope_of
from loopwright.ir import Block, Buffer, PrimFunc, Stmt, Var, collect_statements
from loopwright.schedule.origins import Origins
from loopwright.schedule.proof.lemmas import memory_named, top_level, touched
from loopwright.schedule.proof.reaching_writes import tells_its_loops


def with_unchanged_writers(old: SingleWriterBuffers, new: SingleWriterBuffers, origins: Origins) -> frozenset[Buffer]:
    """The buffers whose readers, in both versions, find what the very same statements left in their cells."""
    flows = before, after = old.dataflow, new.dataflow
    if any([place.block is None for flow in flows for place in flow.by_place]):
        return frozenset()  # statements outside of blocks have no names of their own
    moved = {_block_of(key) for key in (*origins.copies, *origins.rewritten, *origins.renamed)}
    moved |= {_block_of(key) for key, _ in (*origins.renamed.values(), *origins.loads)}
    moved |= {_block_of(key) for key, _, _ in origins.loads.values()}
    users = _users(before.program.function), _users(after.program.function)
    result: set[Buffer] = set()
    for buffer in after.by_buffer:
        writers = _first_writers(users[0].get(buffer.data, ()))
        others = _first_writers(users[1].get(buffer.data, ()))
        if writers is None or others is None or not _are_the_same(writers, others):
            continue
        if buffer is OUTSIDE or not all([_is_plain_memory(flow, buffer) for flow in flows]):
            continue
        if not writers and not all([buffer in flow.arguments for flow in flows]):
            continue
        inside = {key for statement in writers for key in _keys_in(statement)}
        elsewhere = {key for flow in flows for key in _keys_beside(flow.program.function, writers)}
        if inside & (moved | elsewhere):
            continue
        if all([_one_value_a_name(new, access) for access in after.by_buffer[buffer] if access.writes]):
            result.add(buffer)
    return frozenset(result)


def _users(function: PrimFunc) -> dict[Var, list[tuple[Stmt, bool]]]:
    """The top-level statements that touch each memory, in their order, and whether they may write it."""
    result: dict[Var, list[tuple[Stmt, bool]]] = {}
    for statement in top_level(function):
        known = touched(statement)
        for data in memory_named(statement):
            result.setdefault(data, []).append((statement, known is None or data in known.writes))
    return result


def _first_writers(users: Sequence[tuple[Stmt, bool]]) -> list[Stmt] | None:
    """Those that write, where all that only read come after them; else None."""
    writers = [statement for statement, writes in users if writes]
    return writers if all([writes for _, writes in users[: len(writers)]]) else None


def _are_the_same(some: Sequence[Stmt], others: Sequence[Stmt]) -> bool:
    return len(some) == len(others) and all([a is b for a, b in zip(some, others, strict=True)])


def _is_plain_memory(flow: Dataflow, buffer: Buffer) -> bool:
    """Whether the buffer is memory of the whole program, and goes by one name."""
    program = flow.program
    if buffer.data in program.unknown or program.homes.get(buffer.data, ()) or scope_of(buffer.data) != "global":
        return False
    accesses = flow.by_buffer.get(buffer, ())
    if program.owners(buffer) or any([one.cell[0] is not one.buffer or one.pointer is not None for one in accesses]):
        return False
    return not any([other.data is buffer.data and other is not buffer for other in flow.by_buffer])


def _keys_in(statement: Stmt) -> set[BlockKey]:
    blocks = collect_statements(statement, Block)
    return {block.iter_vars[0].var if block.iter_vars else block.name_hint for block in blocks}


def _keys_beside(function: PrimFunc, statements: Sequence[Stmt]) -> set[BlockKey]:
    """The blocks of the other top-level statements."""
    known = {id(statement) for statement in statements}
    return {key for other in top_level(function) if id(other) not in known for key in _keys_in(other)}


def _block_of(key: BlockKey) -> BlockKey:
    return key.block if isinstance(key, InitOf) else key


def _one_value_a_name(version: SingleWriterBuffers, writer: Access) -> bool:
    """Whether iterations of the writer with equal axis values write equal values, as far as is seen here."""
    flow, place = version.dataflow, writer.instance.place
    if tells_its_loops(flow, writer):
        return True
    loads = [access for access in flow.by_place[place] if not access.writes and not flow.is_update(access)]
    return all([version.is_fixed_input(load) for load in loads])
