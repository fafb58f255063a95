"""Written memory: the pointers that a function stores through, or may store through by way of a call."""

from __future__ import annotations

from loopwright import ir


def written_pointers(function: ir.PrimFunc) -> set[ir.Var]:
    """The memory that the function stores to, or may store to through a call; a window of it counts as all of it."""
    written: set[ir.Var] = set()
    whole: dict[ir.Var, ir.Var] = {}  # what a window is a window of

    def look(node: ir.Node) -> bool:
        if isinstance(node, ir.BufferStore):
            written.add(node.buffer.data)
        elif isinstance(node, ir.MatchBufferRegion):
            whole[node.buffer.data] = node.source.buffer.data
        elif isinstance(node, ir.Call) and not (isinstance(node.op, ir.Op) and node.op.is_pure):
            if node.op.name == "tir.prefetch" or _only_reads(node):
                return False  # takes an address, but writes nothing there
            for arg in node.args:
                ir.pre_order_visit(arg, escapes)
        return True

    def escapes(node: ir.Node) -> bool:
        if isinstance(node, ir.Var) and node.dtype.kind == "handle":
            written.add(node)
        elif isinstance(node, ir.Call) and node.op.name == "tir.address_of" and isinstance(node.args[0], ir.BufferLoad):
            written.add(node.args[0].buffer.data)
        elif isinstance(node, ir.Buffer):
            written.add(node.data)
        return not isinstance(node, ir.BufferLoad)  # a value was loaded: its buffer does not reach the function

    ir.pre_order_visit(function.body, look)
    for pointer in list(written):
        while pointer in whole and whole[pointer] is not pointer:
            pointer = whole[pointer]
            written.add(pointer)
    return written


def _only_reads(call: ir.Call) -> bool:
    """Whether it is an LLVM intrinsic that reads from the address it takes."""
    name = call.args[0] if call.args else None
    return isinstance(name, ir.StringImm) and name.value in ("llvm.x86.tileloadd64", "llvm.x86.ldtilecfg")


def written_arguments(function: ir.PrimFunc) -> list[int]:
    """The positions of the arguments that the function writes."""
    written = written_pointers(function)
    return [
        position
        for position, param in enumerate(function.params)
        if param in function.buffer_map and function.buffer_map[param].data in written
    ]
