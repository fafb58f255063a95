"""Effects: calls that may do anything, outside the program too, so that their number and order are part of its meaning.

    T.call_packed("count", i)        T.call_extern("int32", "log_line", i)        a call of another function

Such calls are never duplicated, dropped or reordered, nor made by two iterations at once. Operators of the machine that
only touch the memory they point to (`mma_sync`, `ptx_cp_async`, …) are not among them: that memory is looked at.

To the proof, what is outside of the program is a cell that every such call reads and then writes: `OUTSIDE`. Each call
sees the one before it, the caller sees the last, so the flow through this cell is the sequence of calls.
"""

from __future__ import annotations

from typing import Final

from loopwright.analysis.thread_axes import LAUNCHES
from loopwright.ir import (
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    For,
    ForKind,
    Node,
    Op,
    PrimFunc,
    StringImm,
    const,
    decl_buffer,
    deep,
    pre_order_visit,
)

_ANYTHING: Final = frozenset(
    f"tir.{name}"
    for name in (
        "call_cpacked",
        "call_cpacked_lowered",
        "call_extern",
        "call_llvm_intrin",
        "call_packed",
        "call_packed_lowered",
        "call_tir",
        "end_profile_intrinsic",
        "start_profile_intrinsic",
        "tvm_call_cpacked",
        "tvm_call_packed",
        "tvm_call_trace_packed",
    )
)

OUTSIDE: Final[Buffer] = decl_buffer((), "int32", "outside")
SEES: Final = BufferLoad(OUTSIDE, ())
CHANGES: Final = BufferStore(OUTSIDE, const(0), ())


def reaches_outside(call: Call) -> bool:
    """Whether the call may depend on, or change, something that is no memory of the program."""
    op = call.op
    if not isinstance(op, Op):  # another function
        return True
    return op.name in _ANYTHING or (op.name in Op.of_users and not op.is_pure)


def called_name(call: Call) -> str:
    """What is called, for messages."""
    names = [argument.value for argument in call.args if isinstance(argument, StringImm)]
    return repr(names[0]) if names and call.op.name in _ANYTHING else call.op.name


@deep
def calls_of_threads(function: PrimFunc) -> list[Call]:
    """The calls that reach outside from within loops that threads run."""
    result: list[Call] = []

    def outside(node: Node) -> bool:
        launches = isinstance(node, AttrStmt) and node.attr_key in LAUNCHES
        if launches or (isinstance(node, For) and node.kind is ForKind.THREAD_BINDING):
            pre_order_visit(node, inside)
            return False
        return True

    def inside(node: Node) -> None:
        if isinstance(node, Call) and reaches_outside(node):
            result.append(node)

    pre_order_visit(function.body, outside)
    return result
