"""Places: where in a program a copy, a nest or memory may stand, told from paths from the root down to blocks."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir import (
    Allocate,
    AllocateConst,
    AttrStmt,
    BlockRealize,
    Buffer,
    DeclBuffer,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
)
from loopwright.schedule.handles import block_key
from loopwright.schedule.view import Path, View


def common_path(paths: Sequence[Path]) -> Path:
    """The statements that all paths share, from the root."""
    shared = list(paths[0])
    for path in paths[1:]:
        count = 0
        for a, b in zip(shared, path, strict=False):
            if a is not b:
                break
            count += 1
        del shared[count:]
    return tuple(shared)


def child_on(path: Path, parent: Path) -> Stmt:
    """The statement on `path` right below the end of `parent`."""
    return path[len(parent)]


def visible_from(path: Path, buffer: Buffer) -> int:
    """How many statements of a path stand around the buffer's declaration: from there on it may be used."""
    result = 0
    for position, statement in enumerate(path):
        allocates = isinstance(statement, Allocate) and statement.buffer_var is buffer.data
        if allocates or (isinstance(statement, DeclBuffer) and statement.buffer is buffer):
            result = position + 1
    return result


# Statements that only declare things or put others in order.
_DECLARING = (SeqStmt, Allocate, AllocateConst, DeclBuffer, LetStmt, AttrStmt)


def doing_in(path: Path, position: int, buffer: Buffer) -> int:
    """Where on a path, below `position`, the first statement is that does something and that `buffer` exists at."""
    start = max(position + 1, visible_from(path, buffer))  # a condition may stand around its allocation
    return next(k for k in range(start, len(path)) if not isinstance(path[k], _DECLARING))


def place_before(view: View, scope: BlockRealize, consumers: Sequence[Path], writers: Sequence[Path]) -> Path:
    """The statement that the copy stands before.

    Where a writer shares loops with the first consumer, the copy stands in these loops, too: each iteration copies.
    """
    result: Path | None = None
    while writers:
        shared = common_path([*consumers, *writers])
        if not isinstance(shared[-1], SeqStmt):
            break
        order = list(shared[-1].seq)
        first = min(_position(order, child_on(path, shared)) for path in consumers)
        result = (*shared, order[first])
        consumers, writers = (
            [path for path in paths if child_on(path, shared) is order[first]] for paths in (consumers, writers)
        )
    if result is not None:
        return result
    path: list[Stmt] = [*view.block_path(block_key(scope.block)), scope.block]
    start = scope.block.body
    while isinstance(start, (SeqStmt, AllocateConst, DeclBuffer)):  # constants are declared before anything happens
        if isinstance(start, SeqStmt):
            start = start.seq[0]
        else:
            path.append(start)
            start = start.body
    return (*path, start)


def place_beside(view: View, scope: BlockRealize, path: Path) -> Path:
    """The nest of the block at the end of `path`, right in `scope`."""
    length = len(view.block_path(block_key(scope.block))) + 1
    while isinstance(path[length], (SeqStmt, AllocateConst, DeclBuffer)):
        length += 1
    return path[: length + 1]


def _position(order: Sequence[Stmt], statement: Stmt) -> int:
    return next(k for k, item in enumerate(order) if item is statement)


def place_after(view: View, scope: BlockRealize, path: Path, readers: Sequence[Path], start: int) -> Path:
    """The statement that the copy stands after: the nest of the block, as far out as readers and allocation allow."""
    around = path[: max(start, len(view.block_path(block_key(scope.block))) + 1)]
    # A reader that shares loops with the block reads in each iteration what that iteration has written.
    for shared in sorted([common_path([path, reader]) for reader in readers], key=len, reverse=True):
        if len(shared) >= len(around) and isinstance(shared[-1], SeqStmt):
            return (*shared, child_on(path, shared))
    while isinstance(path[len(around)], (SeqStmt, AllocateConst, DeclBuffer, IfThenElse)):
        around = (*around, path[len(around)])
    return (*around, path[len(around)])


def behind(location: Path, first: Sequence[Path], others: Sequence[Path]) -> Path:
    """A statement of the same sequence, behind those of `first`, unless one of `others` stands before it."""
    sequence = location[-2]
    if not isinstance(sequence, SeqStmt):
        return location
    around, order = location[:-1], list(sequence.seq)
    here = [_position(order, path[len(around)]) for path in first if path[: len(around)] == around]
    last = max([_position(order, location[-1]), *here])
    limits = [_position(order, path[len(around)]) for path in others if path[: len(around)] == around]
    return (*around, order[last]) if all([limit > last for limit in limits]) else location
