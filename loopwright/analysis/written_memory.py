"""Written memory: the pointers that a function stores through, or may store through by way of a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from loopwright import ir

_NONE: Final[Mapping[str, ir.PrimFunc]] = {}


def written_pointers(
    function: ir.PrimFunc, functions: Mapping[str, ir.PrimFunc] = _NONE, by_others: bool = True
) -> set[ir.Var]:
    """The memory that the function stores to, or may store to through a call; a window of it counts as all of it.

    A call of one of `functions` writes what that function may write; any other call, all that it has a pointer to, or
    nothing unless `by_others`.
    """
    result: dict[ir.PrimFunc, set[ir.Var]] = {}
    while True:  # functions that call each other tell more in a second round
        before = sum(map(len, result.values()))
        written = _written(function, functions, result, set(), by_others)
        if not functions or sum(map(len, result.values())) == before:
            return written


def _written(
    function: ir.PrimFunc,
    functions: Mapping[str, ir.PrimFunc],
    result: dict[ir.PrimFunc, set[ir.Var]],
    seen: set[ir.PrimFunc],
    by_others: bool,
) -> set[ir.Var]:
    written = result.setdefault(function, set())
    if function in seen:
        return written
    seen.add(function)
    whole: dict[ir.Var, set[ir.Var]] = {}  # what a window, or another name of a pointer, is made of

    def look(node: ir.Node) -> bool:
        if isinstance(node, ir.BufferStore):
            written.add(node.buffer.data)
        elif isinstance(node, ir.MatchBufferRegion):
            whole.setdefault(node.buffer.data, set()).add(node.source.buffer.data)
        elif isinstance(node, (ir.LetStmt, ir.Let)) and node.var.dtype.kind == "handle":
            whole.setdefault(node.var, set()).update(_pointers_in(node.value))
        elif isinstance(node, ir.Call) and not (isinstance(node.op, ir.Op) and node.op.is_pure):
            if node.op.name == "tir.prefetch" or _only_reads(node):
                return False  # takes an address, but writes nothing there
            called = functions.get(node.op.name) if isinstance(node.op, ir.GlobalVar) else None
            if called is None:
                if by_others:
                    written.update(*map(_pointers_in, node.args))
            else:
                inside = _written(called, functions, result, seen, by_others)
                for param, arg in zip(called.params, node.args, strict=False):
                    if (called.buffer_map[param].data if param in called.buffer_map else param) in inside:
                        written.update(_pointers_in(arg))
        return True

    ir.pre_order_visit(function.body, look)
    pending = list(written)
    while pending:
        for pointer in whole.get(pending.pop(), ()):
            if pointer not in written:
                written.add(pointer)
                pending.append(pointer)
    return written


def _pointers_in(value: ir.Expr) -> set[ir.Var]:
    """The pointers that reach whoever is given the value."""
    result: set[ir.Var] = set()

    def look(node: ir.Node) -> bool:
        if isinstance(node, ir.Var) and node.dtype.kind == "handle":
            result.add(node)
        elif isinstance(node, ir.Call) and node.op.name == "tir.address_of" and isinstance(node.args[0], ir.BufferLoad):
            result.add(node.args[0].buffer.data)
        elif isinstance(node, ir.Buffer):
            result.add(node.data)
        return not isinstance(node, ir.BufferLoad)  # a value was loaded: its buffer does not reach the function

    ir.pre_order_visit(value, look)
    return result


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
