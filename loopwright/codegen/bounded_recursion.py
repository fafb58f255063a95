"""bounded_recursion: functions that call themselves count how deep they are.

    def f(n):                      →    def f(n):
        if n > 0:                           f_counted(n, 0)
            f(n - 1)
                                        def f_counted(n, depth):
                                            assert depth < 4096
                                            if n > 0:
                                                f_counted(n - 1, depth + 1)

A stack that overflows kills the process; an error tells which function went too deep.
Leaves: nothing else changed; modules without such functions come back as they are.
"""

from __future__ import annotations

from math import prod
from typing import Final

from loopwright import ir
from loopwright.codegen.describe_module import result_dtype
from loopwright.ir.intrinsics import ret
from loopwright.ir.machine_intrinsics import call_error
from loopwright.ir.visitor import Rewriter, any_node
from loopwright.runtime.dtype import VOID

INNER: Final = "loopwright.inner"  # an attribute: only functions of the module call it
_STACK_BYTES: Final = 4 << 20  # half of what threads commonly have
_FRAME_BYTES: Final = 1024  # of a function without arrays
_MOST_ARRAY_BYTES: Final = 1 << 18  # of all arrays of one function on the stack


def bounded_recursion(module: ir.IRModule) -> ir.IRModule:
    """The module with every function that may call itself, by way of others too, bounded in its depth."""
    functions = dict(module.functions_items())
    calls = {name: _called(function) & functions.keys() for name, function in functions.items()}
    reached = {name: _reached(name, calls) for name in functions if calls[name]}
    recursive = [name for name, others in reached.items() if name in others]
    if not recursive:
        return module
    used = {*functions, *(function.name for function in functions.values())}
    inner = {}
    for name in recursive:
        new = f"{name}_counted"
        while new in used:
            new += "_"
        used.add(new)
        inner[name] = ir.GlobalVar(new)
    bounded = ir.IRModule(attrs=module.attrs)
    for name, function in functions.items():
        if name not in inner:
            bounded[module.get_global_var(name)] = function
            continue
        group = {other: inner[other] for other in recursive if other in reached[name] and name in reached[other]}
        limit = _STACK_BYTES // max(_frame(functions[other]) for other in group)
        bounded[module.get_global_var(name)] = _outer(function, inner[name])
        bounded[inner[name]] = _counted(function, inner[name].name, group, limit)
    return bounded


def _called(function: ir.PrimFunc) -> set[str]:
    result = set()

    def look(node: ir.Node) -> bool:
        if isinstance(node, ir.Call) and isinstance(node.op, ir.GlobalVar):
            result.add(node.op.name)
        return False

    any_node(function.body, look)  # each object once
    return result


def _reached(name: str, calls: dict[str, set[str]]) -> set[str]:
    """The functions that `name` calls, and those they call; itself if it is one of them."""
    result: set[str] = set()
    left = [name]
    while left:
        new = calls[left.pop()] - result
        result |= new
        left += new
    return result


def _frame(function: ir.PrimFunc) -> int:
    """Bytes of stack that one call may take."""
    arrays, nodes = 0, 0

    def look(node: ir.Node) -> bool:
        nonlocal arrays, nodes
        nodes += 1
        if isinstance(node, ir.Allocate):
            arrays += node.dtype.nbytes * node.dtype.lanes * prod(map(_count, node.extents))
        return False

    any_node(function.body, look)
    return _FRAME_BYTES + min(arrays, _MOST_ARRAY_BYTES) + 8 * max(nodes - 64, 0)


def _count(extent: ir.Expr) -> int:
    return max(extent.value, 0) if isinstance(extent, ir.IntImm) else 0  # unknown sizes are not for the stack


def _outer(function: ir.PrimFunc, inner: ir.GlobalVar) -> ir.PrimFunc:
    dtype = result_dtype(function)
    given = [function.buffer_map[param].data if param in function.buffer_map else param for param in function.params]
    value = ir.Call(dtype or VOID, inner, (*given, ir.IntImm("int32", 0)))
    return function.with_(body=ir.Evaluate(value if dtype is None else ret(value)))


def _counted(function: ir.PrimFunc, name: str, group: dict[str, ir.GlobalVar], limit: int) -> ir.PrimFunc:
    depth = ir.Var("depth", "int32")
    text = f"{function.name}: calls itself more than {limit} calls deep".replace("%", "%%")
    body = ir.AssertStmt(
        depth < ir.IntImm("int32", limit),
        call_error("RecursionTooDeep", text),
        _CountCalls(group, depth).visit(function.body),
    )
    counted = function.with_(params=(*function.params, depth), body=body)
    return counted.with_attr("global_symbol", name).with_attr(INNER, True)


class _CountCalls(Rewriter):
    def __init__(self, group: dict[str, ir.GlobalVar], depth: ir.Var) -> None:
        self.group, self.depth = group, depth

    def visit_Call(self, call: ir.Call) -> ir.Expr:
        call = self.rebuild(call)
        if not isinstance(call.op, ir.GlobalVar) or call.op.name not in self.group:
            return call
        return ir.Call(call.dtype, self.group[call.op.name], (*call.args, self.depth + ir.IntImm("int32", 1)))
