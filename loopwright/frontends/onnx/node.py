"""What a converter asks about its node: attributes, shapes and types of tensors, and values that are known.

axis = node.attr("axis", -1)
rows, *_ = node.shape(x)                 sizes: numbers, expressions of size variables, or AnyDim()
axes = node.ints(axes)                   the elements of a tensor; ValueNeeded where they are not known
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, overload

import numpy as np

from loopwright.frontends.common.tensors import Tensor, Tensors, shape_text
from loopwright.frontends.errors import ValueNeeded
from loopwright.frontends.onnx.element_types import ElementType, of_dtype
from loopwright.frontends.onnx.errors import BadNode, BrokenGraph, ShapeNeeded
from loopwright.frontends.onnx.load import LoadedModel
from loopwright.frontends.onnx.shape_values import Known, is_symbolic
from loopwright.frontends.onnx.values import Value
from loopwright.frontends.op_errors import OpAttributeInvalid, OpAttributeRequired, OpAttributeUnImplemented
from loopwright.ir import Expr as PrimExpr
from loopwright.ir.types import Type
from loopwright.relay.expr import Constant, Expr
from loopwright.relay.types import Dim, is_any
from loopwright.runtime.errors import LoopwrightError

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, SparseTensorProto, TensorProto

_NEEDED: Final = object()

D = TypeVar("D")


class Missing:
    """An output that its converter does not make; an error only for the one who uses it."""

    def __init__(self, node: str, op: str, index: int) -> None:
        self.node, self.op, self.place = node, op, index


class Stored:
    """An initialiser that nobody has used yet."""

    def __init__(self, proto: TensorProto | SparseTensorProto, sparse: bool) -> None:
        self.proto = proto
        self.sparse = sparse


# What a name of a graph stands for: a value, or what becomes one, or an error, when it is used; None inside the body of
# a function, for an input that the call leaves out.
Entry: TypeAlias = Value | Missing | Stored | None


class Scope:
    """The tensors that have names in a graph, and around it."""

    def __init__(
        self,
        opsets: Mapping[str, int],
        names: dict[str, Entry] | None = None,
        around: Scope | None = None,
        bound: Mapping[str, AttributeProto] | None = None,
    ) -> None:
        self.opsets = opsets
        self.names: dict[str, Entry] = {} if names is None else names
        self.around = around
        self.bound = bound  # AttributeProtos of the call whose function body this is

    def child(self, names: dict[str, Entry]) -> Scope:
        return Scope(self.opsets, names, self, self.bound)

    def find(self, name: str) -> Entry:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.around
        raise BrokenGraph(f"{name!r} is used, and nothing makes it")

    def replace(self, name: str, value: Entry) -> None:
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.around
        (scope or self).names[name] = value


class Importing(Protocol):
    """The import that is going on, as nodes and converters ask it; `importer.py` has it."""

    model: LoadedModel
    dynamic: bool  # operators whose shapes are found when the model runs may be used
    config: dict[str, object]
    elements: dict[Expr, ElementType]

    def type_of(self, expression: Expr) -> Type: ...

    def set_element(self, expression: Expr, kind: ElementType) -> None: ...

    def known_of(self, expression: Expr) -> Known | None: ...

    def set_known(self, expression: Expr, value: Known) -> None: ...

    def value_needed(self, node: Node, expression: Expr) -> ValueNeeded: ...

    def sources(self, expression: Expr) -> list[str]: ...

    def input_with_sizes(self, sizes: Sequence[Dim]) -> str | None: ...

    def may_run_dynamic(self, expression: Expr) -> bool: ...

    def convert_graph(self, graph: GraphProto, scope: Scope) -> list[Value]: ...

    def constant(self, array: np.ndarray) -> Constant: ...


class Node(Tensors):
    """One node of the model while it is converted."""

    def __init__(
        self,
        importer: Importing,
        scope: Scope,
        op: str,
        name: str,
        domain: str,
        attributes: Mapping[str, object],
        inputs: Sequence[str],
        outputs: Sequence[str],
    ) -> None:
        self.importer = importer
        self.scope = scope
        self.op = op
        self.name = name
        self.domain = domain
        self.attributes = attributes
        self.input_names = tuple(inputs)
        self.output_names = tuple(outputs)
        self.opset = scope.opsets.get(domain, 1)
        self.tensor_names: dict[Value | None, str] = {}

    # Attributes.

    @overload
    def attr(self, name: str, default: None = None) -> Any: ...

    @overload
    def attr(self, name: str, default: D) -> D: ...

    def attr(self, name: str, default: object = _NEEDED) -> object:
        """An attribute: a number, text, list, stored tensor or graph; `default`, which is of its type, if not given."""
        if name in self.attributes:
            return self.attributes[name]
        if default is _NEEDED:
            raise OpAttributeRequired(f"node {self.name!r} ({self.op}): the attribute {name} is missing")
        return default

    @property
    def output_count(self) -> int:
        return len(self.output_names)

    def wants(self, index: int) -> bool:
        """Whether the output at that place has a name, so that somebody may use it."""
        return index < len(self.output_names) and bool(self.output_names[index])

    # Types.

    def type_of(self, x: Expr) -> Type:
        return self.importer.type_of(x)

    def static_shape(self, x: Tensor) -> tuple[int, ...]:
        """The shape as numbers; a refusal where a size is not one."""
        shape = self.shape(x)
        if not all(isinstance(size, int) for size in shape):
            raise self.sizes_needed(f"the shape {shape_text(shape)} has sizes that are not numbers", shape)
        return tuple(int(size) for size in shape if isinstance(size, int))

    def element(self, x: Expr) -> ElementType:
        """The element type in the model; the graph may carry it in another."""
        return self.importer.elements.get(x) or of_dtype(str(self.dtype(x)))

    def carries(self, x: Expr, kind: ElementType) -> Expr:
        """Say that an expression carries elements of that type."""
        if kind.carried:
            self.importer.set_element(x, kind)
        return x

    def same_element(self, x: Expr, like: Expr) -> Expr:
        return self.carries(x, self.element(like))

    # Values.

    def known(self, x: Expr) -> Known | None:
        """The elements of a tensor where they are known: numbers, or objects with sizes that have names."""
        result = self.importer.known_of(x)
        if result is None:
            shape = [size for size in self.shape(x) if isinstance(size, int)]
            if 0 in shape and len(shape) == self.rank(x):
                return np.zeros(shape, self.dtype(x).numpy())  # of no elements, all are known
        return result

    def value(self, x: Expr) -> np.ndarray:
        """The elements of a tensor as numbers, which the graph cannot be made without."""
        result = self.known(x)
        if result is None or is_symbolic(result):
            raise self.importer.value_needed(self, x)
        return result

    def ints(self, x: Expr) -> list[int]:
        """The elements of a tensor of integers (of one dimension, or none)."""
        return [int(item) for item in self.value(x).reshape(-1)]

    def scalar(self, x: Expr) -> int | float | bool:
        """The one element of a tensor, as a number of Python."""
        array = self.value(x)
        if array.size != 1:
            raise self.bad(f"one number is needed, and {self.tensor_name(x)!r} has {array.size}")
        number: int | float | bool = array.reshape(()).item()
        return number

    def sizes(self, x: Expr) -> list[int | PrimExpr]:
        """The elements of a tensor that says a shape: ints and expressions of size variables."""
        result = self.known(x)
        if result is None:
            raise self.importer.value_needed(self, x)
        return [item if not isinstance(item, np.integer) else int(item) for item in result.reshape(-1).tolist()]

    def sizes_if_known(self, x: Expr) -> list[int | PrimExpr] | None:
        """`sizes`, or None where the operator is to find them when the model runs."""
        return self.sizes(x) if self.known(x) is not None or not self.importer.may_run_dynamic(x) else None

    # Making expressions.

    def subgraph(self, graph: GraphProto, inputs: Mapping[str, Value] | None = None) -> list[Value]:
        """The outputs of a graph inside this node; `inputs` are what its input names stand for."""
        return self.importer.convert_graph(graph, self.scope.child(dict(inputs or {})))

    # What is wrong.

    def tensor_name(self, x: Expr) -> str:
        return self.tensor_names.get(x, "a tensor")

    def bad(self, problem: str, hint: str | None = None) -> BadNode:
        return BadNode(self.name, self.op, problem, hint=hint)

    def invalid(self, attribute: str, value: object, allowed: str) -> OpAttributeInvalid:
        return OpAttributeInvalid(f"node {self.name!r} ({self.op}): {attribute} is {value!r}", hint=f"it is {allowed}")

    def sizes_needed(self, problem: str, sizes: Sequence[Dim]) -> LoopwrightError:
        """Sizes have to be numbers: an error that names the input that has them, where there is one."""
        result = self.importer.input_with_sizes(sizes)
        if result is None or self.importer.dynamic:
            return self.unsupported(problem, hint="give `shape=`")
        return ShapeNeeded(result, f"has sizes that node {self.name!r} ({self.op}) needs as numbers: {problem}")

    def unsupported(self, problem: str, hint: str | None = None) -> OpAttributeUnImplemented:
        return OpAttributeUnImplemented(f"node {self.name!r} ({self.op}): {problem} is not supported", hint=hint)


def all_known(shape: Sequence[Dim]) -> bool:
    return not any(is_any(size) for size in shape)
