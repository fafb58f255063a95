"""pointees: what each pointer of a function points to, where that is one type throughout."""

from __future__ import annotations

from loopwright import ir
from loopwright.codegen.source.types import memory_type


def pointees(function: ir.PrimFunc) -> dict[ir.Var, str]:
    """The type behind each pointer; a pointer that is used as several types is not among them."""
    types: dict[ir.Var, set[str]] = {}

    def look(node: ir.Node) -> None:
        if isinstance(node, (ir.BufferLoad, ir.BufferStore)):
            types.setdefault(node.buffer.data, set()).add(memory_type(node.buffer.dtype))
        elif isinstance(node, (ir.Allocate, ir.AllocateConst)):
            types.setdefault(node.buffer_var, set()).add(memory_type(node.dtype))

    for buffer in function.argument_buffers():
        types[buffer.data] = {memory_type(buffer.dtype)}
    ir.pre_order_visit(function.body, look)
    return {var: next(iter(result)) for var, result in types.items() if len(result) == 1}
