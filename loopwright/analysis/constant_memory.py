"""check_constants: nothing stores into constant memory.

    with T.allocate_const([1, 2], "int32", [2]) as p:
        K = T.decl_buffer((2,), "int32", data=p)
        K[0] = 3                                      refused, and so is a store through any other name of that memory

Compiled code has constants in sections that are read-only, or in the instructions themselves. A call that reaches
outside of the program gets an address of memory that can be written (`writable_constants`): what it does there is not
ours to know, and is no crash.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopwright.analysis.written_memory import written_pointers
from loopwright.ir import AllocateConst, BufferStore, PrimFunc, Var, collect, collect_statements, deep
from loopwright.runtime.call_errors import SEPARATOR, ReadOnlyArgument


@deep
def check_constants(function: PrimFunc, functions: Mapping[str, PrimFunc]) -> None:
    """Raise ReadOnlyArgument if the function, or one of `functions` that it calls, stores into constant memory."""
    constants = constants_of(function)
    if not constants:
        return
    written = written_pointers(function, functions, by_others=False)
    for constant in constants:
        if constant in written:
            name = _stored_as(function, constant) or constant.name
            hint = "copy the constant into a buffer of the program (T.alloc_buffer), and write that"
            message = f"{function.name} writes {name}, whose memory is constant (T.allocate_const)"
            raise ReadOnlyArgument(SEPARATOR.join((message, "", hint)))


def writable_constants(function: PrimFunc, functions: Mapping[str, PrimFunc]) -> set[Var]:
    """The constants of a function whose address reaches a call that may write there."""
    constants = constants_of(function)
    return written_pointers(function, functions).intersection(constants) if constants else set()


def constants_of(function: PrimFunc) -> list[Var]:
    """The pointers to the constants of a function."""
    return [node.buffer_var for node in collect_statements(function.body, AllocateConst)]


def _stored_as(function: PrimFunc, constant: Var) -> str | None:
    """The name of a buffer on the constant that is stored to."""
    result = [node.buffer.name for node in collect(function.body, BufferStore) if node.buffer.data is constant]
    return result[0] if result else None
