"""The walk over an exported graph: node by node, once.

Tensors are expressions. Numbers of Python stay numbers, and sizes are numbers, expressions of size variables, or (found
when the model runs) tensors of one number. What torch says of a node's result (`meta["val"]`) is held against what we
make of it: shapes must agree, and element types are made to.

Types are inferred as the graph grows. Calls carry the name of the node they come from (`span`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loopwright.frontends.common.tensors import as_list, name_calls, shape_text
from loopwright.frontends.op_errors import OpError, OpNotImplemented
from loopwright.frontends.pytorch.element_types import as_array, our_dtype
from loopwright.frontends.pytorch.errors import BadTorchNode, UnsupportedTorchType
from loopwright.frontends.pytorch.node import Node
from loopwright.frontends.pytorch.registry import find, names_of
from loopwright.frontends.pytorch.scalars import scalar, size_tensor
from loopwright.frontends.pytorch.sizes import Sizes
from loopwright.frontends.pytorch.values import Argument, Results
from loopwright.ir import Expr as PrimExpr
from loopwright.ir.types import Type
from loopwright.relay.expr import Constant, Expr, TupleWrapper
from loopwright.relay.infer_type import Inference
from loopwright.relay.types import TensorType, dims_differ, is_any
from loopwright.runtime.errors import InternalError, LoopwrightError

if TYPE_CHECKING:
    import torch

# Where tensors are, and how they lie there, is the compiler's to decide.
_LEFT_OUT = frozenset({"device", "layout", "memory_format", "non_blocking", "pin_memory", "requires_grad", "stable"})


class Importer:
    """One import of an exported program."""

    def __init__(self, custom: Mapping[str, Callable[..., Results]] | None = None, scopes: bool = False) -> None:
        self.custom = dict(custom or {})
        self.scopes = scopes
        self.sizes = Sizes()
        self.inference = Inference()
        self._size_tensors: dict[int | PrimExpr, Expr] = {}

    def type_of(self, expression: Expr) -> Type:
        result: Type = self.inference.visit(expression)
        return result

    def size_tensor(self, size: int | PrimExpr) -> Expr:
        """A size as a tensor of one int64 number, read from the shape of an input."""
        if size not in self._size_tensors:
            self._size_tensors[size] = size_tensor(size, self.sizes.places)
        return self._size_tensors[size]

    # Graphs.

    def convert(self, module: torch.fx.GraphModule, inputs: Sequence[Argument]) -> list[Argument]:
        """The outputs of the graph of a module for these inputs."""
        values: dict[torch.fx.Node, Argument] = {}
        given = iter(inputs)
        used = _used(module)
        for fx in module.graph.nodes:
            if fx.op == "placeholder":
                values[fx] = next(given)
            elif fx.op == "get_attr":
                values[fx] = self._attribute(module, fx)
            elif fx.op == "output":
                results = _filled(fx.args[0], values)
                return results if isinstance(results, list) else [results]
            elif fx in used:
                values[fx] = self._node(fx, values)
        return []

    def _attribute(self, module: torch.fx.GraphModule, fx: torch.fx.Node) -> Argument:
        result = module
        for part in fx.target.split("."):
            result = getattr(result, part)
        return Constant(as_array(result, fx.target)) if hasattr(result, "dtype") else result

    def _node(self, fx: torch.fx.Node, values: Mapping[torch.fx.Node, Argument]) -> Argument:
        args = _filled(fx.args, values)
        named = {key: _filled(value, values) for key, value in fx.kwargs.items() if key not in _LEFT_OUT}
        if fx.target is operator.getitem and isinstance(args[0], (list, tuple, TupleWrapper)):
            return args[0][args[1]]
        if is_number(fx.meta.get("val")):
            return scalar(self, fx, args)
        exact, plain = names_of(fx.target)
        node = Node(self, self._span(fx), exact.removesuffix(".default"), fx)
        custom = self.custom.get(exact) or self.custom.get(plain)
        how = find(fx.target)
        try:
            if custom is not None:
                results = custom([*args, *named.values()], self._input_types(args))
            elif how is not None:
                results = how(node, *args, **named)
            else:
                raise not_implemented({plain: [fx.name]})
            return self._finished(node, results)
        except (BadTorchNode, UnsupportedTorchType, OpError, InternalError):
            raise
        except LoopwrightError as error:
            raise BadTorchNode(node.name, node.op, error.problem, why=error.why, hint=error.hint) from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, AssertionError) as error:
            raise BadTorchNode(
                node.name, node.op, f"it cannot be converted: {type(error).__name__}: {error}"
            ) from error

    def _span(self, fx: torch.fx.Node) -> str:
        """The name of the node; with the path of the module it is in, where that is wanted."""
        stack = fx.meta.get("nn_module_stack")
        if not self.scopes or not stack:
            return str(fx.name)
        path = next(reversed(stack.values()))[0]
        return f"{path}.{fx.name}" if path else str(fx.name)

    def _input_types(self, args: Sequence[object]) -> list[str]:
        return [str(self.type_of(one).dtype) if isinstance(one, Expr) else type(one).__name__ for one in args]  # type: ignore[attr-defined]

    def _finished(self, node: Node, results: Results) -> Argument:
        """Results as torch has them: one, or a list; named, typed, and of the element types that torch says."""
        expected = node.results
        several = isinstance(expected, (list, tuple))
        result = as_list(results)
        if not several:
            return self._checked(node, result[0], expected)
        result += [None] * (len(expected) - len(result))
        return [None if one is None else self._checked(node, one, of) for one, of in zip(result, expected)]

    def _checked(self, node: Node, result: object, expected: object) -> Expr:
        if not isinstance(result, Expr):
            raise InternalError(f"the converter of {node.op} returns {type(result).__name__}")
        if hasattr(expected, "dtype"):
            result = node.cast(result, our_dtype(expected.dtype, f"the result of node {node.name!r} ({node.op})"))
        name_calls(result, node.name)
        of = self.type_of(result)
        if hasattr(expected, "shape") and isinstance(of, TensorType):
            wanted = [self.sizes.of(size) for size in expected.shape]
            if len(wanted) != len(of.shape) or any(
                dims_differ(one, other) for one, other in zip(of.shape, wanted) if not (is_any(one) or is_any(other))
            ):
                raise node.bad(f"its result has shape {shape_text(of.shape)} here, and {shape_text(wanted)} in torch")
        return result

    # Operators.

    def refuse_unsupported(self, module: torch.fx.GraphModule) -> None:
        """Name every operator that has no converter."""
        missing: dict[str, list[str]] = {}
        _look_for_missing(module, self.custom, missing)
        if missing:
            raise not_implemented(missing)


def is_number(value: object) -> bool:
    """Whether torch says that a result is a number: one that is known, or one with a symbol."""
    return isinstance(value, (bool, int, float)) or type(value).__name__ in ("SymInt", "SymFloat", "SymBool")


def _used(module: torch.fx.GraphModule) -> set[torch.fx.Node]:
    """The nodes that results are computed from; the others are checks, which torch has made."""
    nodes = list(module.graph.nodes)
    result: set[torch.fx.Node] = {fx for fx in nodes if fx.op == "output"}
    for fx in reversed(nodes):
        if fx in result:
            result.update(fx.all_input_nodes)
    return result


def _look_for_missing(
    module: torch.fx.GraphModule, custom: Mapping[str, object], missing: dict[str, list[str]]
) -> None:
    used = _used(module)
    for fx in module.graph.nodes:
        if fx.op != "call_function" or fx not in used or fx.target is operator.getitem:
            continue
        if is_number(fx.meta.get("val")):
            continue
        exact, plain = names_of(fx.target)
        if find(fx.target) is None and exact not in custom and plain not in custom:
            missing.setdefault(exact.removesuffix(".default"), []).append(fx.name)
    for _, child in module.named_children():
        if hasattr(child, "graph"):
            _look_for_missing(child, custom, missing)


def not_implemented(missing: Mapping[str, Sequence[str]]) -> OpNotImplemented:
    """The error that names operators and the nodes that use them."""
    lines = [f"{op}: {', '.join(nodes[:8])}{' …' * (len(nodes) > 8)}" for op, nodes in sorted(missing.items())]
    return OpNotImplemented(
        f"The following operators are not implemented: {sorted(missing)}",
        why="these nodes use them: " + "; ".join(lines),
        hint="custom_convert_map={name: function} gives a converter of your own",
        fields={"operators": {op: list(nodes) for op, nodes in missing.items()}},
    )


def _filled(value: object, values: Mapping[torch.fx.Node, Argument]) -> Any:
    """Arguments of a node with what its inputs stand for."""
    if isinstance(value, (list, tuple)):
        return [_filled(item, values) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, values) for key, item in value.items()}
    if type(value).__name__ == "Node" and hasattr(value, "all_input_nodes"):
        return values[value]
    return value
