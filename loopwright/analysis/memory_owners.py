"""Memory owners: the thread axes whose every index has a buffer for itself, read off the text.

    C = T.alloc_buffer((2,), scope="local")                 every use of C is under blockIdx.x and threadIdx.x,
    for b in T.thread_binding(3, thread="blockIdx.x"):      so each thread of each block has a C
        for t in T.thread_binding(4, thread="threadIdx.x"):
            …  C[vi] = A[b, t, vi]

`Program.owners` knows it of every program. A schedule asks after each step, of a function that is almost the one
before: here what a statement says is kept with the statement. Where the text does not tell, there is no answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from loopwright.analysis.effects import is_pure_call
from loopwright.analysis.thread_axes import is_per, scope_of, tag_of
from loopwright.ir import (
    Allocate,
    AttrStmt,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRealize,
    BufferStore,
    Call,
    Expr,
    For,
    IntImm,
    IterType,
    LetStmt,
    Node,
    Stmt,
    Var,
    collect,
    deep,
    pre_order_visit,
)

Owners = dict[Buffer, tuple[str | Var, ...]]


class _Uses(NamedTuple):
    """What a statement says of memory that is not one for all."""

    around: dict[Buffer, frozenset[str]]  # the thread axes in the statement around every use of the buffer
    allocated: frozenset[Var]
    summed: frozenset[Var]  # variables from outside that say which part of a reduction it is
    is_plain: bool  # false: the text does not tell all


_NONE: Final = _Uses({}, frozenset(), frozenset(), True)
_UNKNOWN: Final = _Uses({}, frozenset(), frozenset(), False)

_KNOWN: Final[dict[Stmt, _Uses]] = {}  # most steps of a schedule leave most statements as they are
_MOST: Final = 16384


@deep
def written_owners(body: Stmt) -> Owners | None:
    """Of each buffer outside global memory that is used, whose it is; None where the text does not tell.

    It does not where such memory is allocated inside thread loops, or seen through windows; where threads take turns at
    a reduction; where threads are launched by an attribute, or addresses taken.
    """
    if len(_KNOWN) > _MOST:
        _KNOWN.clear()
    uses = _uses(body)
    if not uses.is_plain:
        return None
    return {
        buffer: tuple(sorted([tag for tag in tags if is_per(scope_of(buffer.data), tag)]))
        if buffer.data in uses.allocated
        else ()
        for buffer, tags in uses.around.items()
    }


def _uses(statement: Stmt) -> _Uses:
    result = _KNOWN.get(statement)
    if result is None:
        result = _KNOWN[statement] = _ask(statement)
    return result


def _ask(statement: Stmt) -> _Uses:
    if isinstance(statement, For):
        return _of_loop(statement)
    if isinstance(statement, BlockRealize):
        return _of_realize(statement)
    if isinstance(statement, Block):
        return _of_block(statement)
    if isinstance(statement, (Allocate, BufferRealize)) or (isinstance(statement, AttrStmt) and tag_of(statement)):
        return _UNKNOWN
    parts = [_uses(child) if isinstance(child, Stmt) else _of_expr(child) for child in statement.children()]
    if isinstance(statement, BufferStore) and statement.buffer.scope() != "global":
        parts.append(_NONE._replace(around={statement.buffer: frozenset()}))
    result = _together(parts)
    if isinstance(statement, LetStmt) and statement.var in result.summed:
        result = result._replace(summed=result.summed | _variables([statement.value]))
    return result


def _of_loop(loop: For) -> _Uses:
    inside = _uses(loop.body)
    tag = tag_of(loop)
    if tag:
        if loop.loop_var in inside.summed or any([scope_of(data) != "global" for data in inside.allocated]):
            return _UNKNOWN
        inside = inside._replace(around={buffer: tags | {tag} for buffer, tags in inside.around.items()})
    return _together([inside, _of_expr(loop.min), _of_expr(loop.extent)])


def _of_realize(realize: BlockRealize) -> _Uses:
    block = realize.block
    inside = _uses(block)
    result = _together([inside, *map(_of_expr, realize.iter_values), _of_expr(realize.predicate)])
    parts = [
        value
        for item, value in zip(block.iter_vars, realize.iter_values, strict=True)
        if item.iter_type is IterType.CommReduce or item.var in inside.summed
    ]
    return result._replace(summed=result.summed | _variables(parts)) if parts else result


def _of_block(block: Block) -> _Uses:
    if block.match_buffers:
        return _UNKNOWN
    result = _together([_uses(block.body), _NONE if block.init is None else _uses(block.init)])
    if block.alloc_buffers:
        result = result._replace(allocated=result.allocated | {buffer.data for buffer in block.alloc_buffers})
    return result


def _of_expr(part: Node) -> _Uses:
    around: dict[Buffer, frozenset[str]] = {}
    is_plain = True

    def look(node: Node) -> None:
        nonlocal is_plain
        if isinstance(node, BufferLoad):
            if node.buffer.scope() != "global":
                around[node.buffer] = frozenset()
        elif isinstance(node, Call):
            is_plain = is_plain and is_pure_call(node)  # an address is none

    if not isinstance(part, Expr) or isinstance(part, (Var, IntImm)):
        return _NONE
    pre_order_visit(part, look)
    if not is_plain:
        return _UNKNOWN
    return _NONE._replace(around=around) if around else _NONE


def _together(parts: Iterable[_Uses]) -> _Uses:
    known = [part for part in parts if part is not _NONE]
    if len(known) < 2:
        return known[0] if known else _NONE
    if not all([part.is_plain for part in known]):
        return _UNKNOWN
    around = dict(known[0].around)
    for part in known[1:]:
        for buffer, tags in part.around.items():
            around[buffer] = around[buffer] & tags if buffer in around else tags
    allocated = frozenset().union(*[part.allocated for part in known])
    return _Uses(around, allocated, frozenset().union(*[part.summed for part in known]), True)


def _variables(parts: Iterable[Expr]) -> frozenset[Var]:
    return frozenset([var for part in parts for var in collect(part, Var)])
