"""Which operators and element types a graph has, and how many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from loopwright.ir.function import IRModule
from loopwright.ir.types import TupleType, Type
from loopwright.relay.expr import Call, Expr, Var
from loopwright.relay.graph_functions import graph_function, graph_functions
from loopwright.relay.op.registry import Op
from loopwright.relay.types import FuncType, RefType, TensorType
from loopwright.relay.visitor import parts, post_order


def list_op_freqs(mod: Expr | IRModule) -> dict[str, int]:
    """How often each operator is called, in a module or an expression."""
    return dict(Counter(call.op.name for call in operator_calls(mod)))


def operator_calls(root: Expr | IRModule) -> Iterator[Call]:
    """Every call of an operator, in a module or an expression."""
    roots = graph_functions(root).values() if isinstance(root, IRModule) else [root]
    for one in roots:
        for result in post_order(one):
            if isinstance(result, Call) and isinstance(result.op, Op):
                yield result


def all_dtypes(expr: Expr) -> set[str]:
    """The element types of all tensors in a typed expression."""
    result: set[str] = set()

    def meet(of: Type | None) -> None:
        if isinstance(of, TensorType):
            result.add(str(of.dtype))
        elif isinstance(of, TupleType):
            for field in of.fields:
                meet(field)
        elif isinstance(of, FuncType):
            for part in (*of.arg_types, of.ret_type):
                meet(part)
        elif isinstance(of, RefType):
            meet(of.value)

    for part in post_order(expr):
        meet(getattr(part, "checked_type_", None) or getattr(part, "type_annotation", None))
    return result


def count_layers(expr: Expr | IRModule, valid_ops: Sequence[str] = ("nn.conv2d", "nn.dense")) -> int:
    """How many of these operators lie one behind the other, on the longest way through the graph."""
    root = graph_function(expr) if isinstance(expr, IRModule) else expr
    depths: dict[Expr, int] = {}
    for part in post_order(root):
        below = max((depths[inner] for inner in parts(part)), default=0)
        is_layer = isinstance(part, Call) and isinstance(part.op, Op) and part.op.name in valid_ops
        depths[part] = below + is_layer
    return depths[root]


def list_fake_quantized_op_freqs(mod: IRModule) -> dict[str, int]:
    """How often each operator stands between qnn.dequantize and qnn.quantize: what could compute on integers.

    An operator counts when all its tensors come from qnn.dequantize, or are constants, and its result goes, through
    others like it, to qnn.quantize.
    """
    counted: Counter[str] = Counter()
    seen: set[Call] = set()
    for call in operator_calls(mod):
        if call.op.name != "qnn.quantize":
            continue
        island = _island(call)
        for inner in island or ():
            if inner not in seen:
                seen.add(inner)
                counted[inner.op.name] += 1
    return dict(counted)


def _island(quantize: Call) -> list[Call] | None:
    """The calls between a quantize and the dequantizes it depends on; None where another value flows in."""
    result: list[Call] = []
    waiting: list[Expr] = [quantize.args[0]]
    seen: set[Expr] = set()
    for expression in waiting:
        if expression in seen:
            continue
        seen.add(expression)
        if isinstance(expression, Call):
            if not isinstance(expression.op, Op):
                return None
            if expression.op.name == "qnn.dequantize":
                continue
            result.append(expression)
        elif isinstance(expression, Var):
            return None
        waiting.extend(parts(expression))
    return result
