"""Wide accesses: copies of neighbouring elements that one instruction of 2, 4, 8 or 16 bytes makes.

    B[T.Ramp(i * 4, 1, 4)] = A[T.Ramp(j * 8, 1, 4)]         four float32 at once: both indices are multiples of 4

A processor without vectors (a thread of a GPU) has such loads and stores all the same. The address has to be a multiple
of the bytes: the index is proved to be, for sizes that are multiples of the lanes where it takes that; where memory
begins, its allocation says, or whoever has its address.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from typing import Final

from loopwright.analysis.thread_axes import scope_of
from loopwright.arith import Analyzer
from loopwright.ir import (
    Add,
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    For,
    IntImm,
    IterVar,
    Let,
    LetStmt,
    Max,
    Min,
    Mul,
    Node,
    Ramp,
    Select,
    Stmt,
    Sub,
    Var,
    collect,
    pre_order_visit,
)

WIDEST_BYTES: Final = 16
_ALL: Final = 64  # zero is a multiple of every power of two


def aligned_for(index: Expr, lanes: int, sizes: Collection[Var] = ()) -> frozenset[Var] | None:
    """Which of `sizes` have to be multiples of `lanes`, a power of two, for `index` to be one; None: it need not be."""
    if _is_multiple(index, lanes, ()):
        return frozenset()
    used = [var for var in dict.fromkeys(collect(index, Var)) if var in sizes]
    if not used or not _is_multiple(index, lanes, used):
        return None
    for var in list(used):
        others = [other for other in used if other is not var]
        if _is_multiple(index, lanes, others):
            used = others
    return frozenset(used)


def _is_multiple(index: Expr, lanes: int, multiples: Collection[Var]) -> bool:
    wanted = lanes.bit_length() - 1
    if _zeros(index, dict.fromkeys(multiples, wanted)) >= wanted:
        return True
    facts = Analyzer()
    with ExitStack() as stack:
        for var in multiples:
            stack.enter_context(facts.constraint_scope(var % lanes == 0))
        coeff, base = facts.modular_set(index)
    return coeff % lanes == 0 and base % lanes == 0


def _zeros(expr: Expr, known: dict[Var, int]) -> int:
    """How many of the lowest bits are zero for certain; what wraps around keeps its low bits."""
    if isinstance(expr, IntImm):
        return (expr.value & -expr.value).bit_length() - 1 if expr.value else _ALL
    if isinstance(expr, Var):
        return known.get(expr, 0)
    if isinstance(expr, (Add, Sub, Min, Max)):
        return min(_zeros(expr.a, known), _zeros(expr.b, known))
    if isinstance(expr, Mul):
        return min(_ALL, _zeros(expr.a, known) + _zeros(expr.b, known))
    if isinstance(expr, (FloorDiv, FloorMod)) and isinstance(expr.b, IntImm) and expr.b.value > 0:
        dividend, divisor = _zeros(expr.a, known), _zeros(expr.b, known)
        if isinstance(expr, FloorMod):
            return min(dividend, divisor)
        return max(0, dividend - divisor) if expr.b.value == 1 << divisor else 0
    if isinstance(expr, Select):
        return min(_zeros(expr.true_value, known), _zeros(expr.false_value, known))
    if isinstance(expr, Cast) and expr.dtype.is_int and expr.value.dtype.is_int:
        return _zeros(expr.value, known)
    if isinstance(expr, Call) and expr.op.name == "tir.if_then_else":
        return min(_zeros(expr.args[1], known), _zeros(expr.args[2], known))
    return 0


def widths(dtype_bytes: int, lanes: int) -> list[int]:
    """How many elements one access may have, the most first, where `lanes` are a whole number of accesses."""
    return [width for width in (16, 8, 4, 2) if lanes % width == 0 and width * dtype_bytes <= WIDEST_BYTES]


def is_given(buffer: Buffer) -> bool:
    """Whether the memory is not a thread's or a block's own: whoever launches says where it begins."""
    return scope_of(buffer.data) in ("global", "")


def wide_index(buffer: Buffer, index: Expr, sizes: Collection[Var] = ()) -> frozenset[Var] | None:
    """What has to be a multiple of the lanes for all lanes of `buffer[index]` to be one access; None: they are not."""
    if not isinstance(index, Ramp) or not _is_one(index.stride) or buffer.dtype.lanes != 1:
        return None
    bits = buffer.dtype.bits
    if index.lanes not in widths(max(bits // 8, 1), index.lanes) or (bits < 8 and not buffer.dtype.is_bool):
        return None
    return aligned_for(index.base, index.lanes, sizes if is_given(buffer) else ())


def _is_one(stride: Expr) -> bool:
    return isinstance(stride, IntImm) and stride.value == 1


def wide_copy(store: BufferStore, sizes: Collection[Var] = ()) -> frozenset[Var] | None:
    """What has to be a multiple of the lanes for a statement to be one wide load and one wide store; None: it is not.

    `sizes` are the variables that whoever launches can ask that of.
    """
    load = store.value
    if not isinstance(load, BufferLoad) or len(load.indices) != 1 or len(store.indices) != 1:
        return None
    if load.buffer.dtype is not store.buffer.dtype:
        return None
    wanted = [wide_index(access.buffer, access.indices[0], sizes) for access in (store, load)]
    if wanted[0] is None or wanted[1] is None:
        return None
    return wanted[0] | wanted[1]


def free_integers(body: Stmt) -> set[Var]:
    """The integers that a function is given: of no loop, launch or let inside."""
    used: set[Var] = set()
    bound: set[Var] = set()

    def look(node: Node) -> None:
        if isinstance(node, Var):
            if node.dtype.is_int:
                used.add(node)
        elif isinstance(node, For):
            bound.add(node.loop_var)
        elif isinstance(node, (Let, LetStmt)):
            bound.add(node.var)
        elif isinstance(node, AttrStmt) and isinstance(node.node, IterVar):
            bound.add(node.node.var)

    pre_order_visit(body, look)
    return used - bound
