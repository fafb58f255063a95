"""The walk over a model: node by node, from inputs to outputs, once.

It is a partial evaluator. Every tensor is an expression of the graph; beside that its elements are known where they
follow from constants and shapes. What is known is not computed again when the model runs, and tells converters what
they need: axes, shapes, counts. A node whose inputs are all known is computed at once (with the references of relay's
operators), unless the result would be large and its inputs are not.

Types are inferred as the graph grows. Calls carry the name of the node they come from (`span`).
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from loopwright.analysis.queries import undefined_vars
from loopwright.frontends.common.tensors import as_list, name_calls
from loopwright.frontends.errors import ValueNeeded
from loopwright.frontends.onnx import functions
from loopwright.frontends.onnx import shape_values as known
from loopwright.frontends.onnx.attributes import attributes_of
from loopwright.frontends.onnx.element_types import ElementType, of_dtype, of_numpy
from loopwright.frontends.onnx.errors import AbsurdSize, BadNode, BrokenGraph, ShapeNeeded, UnsupportedType
from loopwright.frontends.onnx.load import LoadedModel, node_name, nodes_of, text_of
from loopwright.frontends.onnx.node import Entry, Missing, Node, Scope, Stored
from loopwright.frontends.onnx.registry import Convert, Converter, find, reason_against
from loopwright.frontends.onnx.shape_values import Known, is_symbolic
from loopwright.frontends.onnx.tensors import LARGEST, sparse_to_array, to_array
from loopwright.frontends.onnx.values import OptionalValue, Results, SequenceValue, Value
from loopwright.frontends.op_errors import OpError, OpNotImplemented
from loopwright.ir import Expr as PrimExpr
from loopwright.ir import SizeVar
from loopwright.ir.types import TupleType, Type
from loopwright.relay import interpreter
from loopwright.relay.expr import Call, Constant, Expr, Tuple, TupleWrapper, Var
from loopwright.relay.infer_type import Inference
from loopwright.relay.types import Dim, TensorType, is_dynamic
from loopwright.relay.visitor import parts
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import InternalError, LoopwrightError

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, NodeProto

MOST_FOLDED: Final = 1 << 24  # bytes of a result that is computed though its inputs are smaller

# Operators that hand on the elements they are given: what is carried in another type stays so.
_HAND_ON: Final = frozenset(
    "Identity Reshape Transpose Flatten Squeeze Unsqueeze Concat Gather Slice Expand Split Tile Where Pad".split()
)


class Importer:
    """One import of a model."""

    def __init__(
        self,
        model: LoadedModel,
        *,
        freeze: bool = True,
        dynamic: bool = True,
        config: Mapping[str, object] | None = None,
    ) -> None:
        self.model = model
        self.freeze = freeze
        self.dynamic = dynamic  # operators whose shapes are found when the model runs may be used
        self.config = dict(config or {})
        self.inference = Inference()
        self.elements: dict[Expr, ElementType] = {}
        self.size_vars: dict[str, SizeVar] = {}
        self.inputs: dict[Expr, str] = {}  # variables of the graph's inputs
        self.input_vars: list[Var] = []
        self.params: dict[str, np.ndarray] = {}
        self.param_vars: list[Var] = []
        self._known: dict[Expr, Known] = {}

    def enter_input(self, var: Var, name: str) -> None:
        """Note that a variable is the input of that name, or a part of it."""
        self.inputs[var] = name
        self.input_vars.append(var)

    # What is known of expressions.

    def type_of(self, expression: Expr) -> Type:
        result: Type = self.inference.visit(expression)
        return result

    def set_element(self, expression: Expr, kind: ElementType) -> None:
        self.elements[expression] = kind

    def known_of(self, expression: Expr) -> Known | None:
        if isinstance(expression, Constant):
            return expression.data
        return self._known.get(expression)

    def set_known(self, expression: Expr, value: Known) -> None:
        self._known[expression] = value

    def value_needed(self, node: Node, expression: Expr) -> ValueNeeded:
        return ValueNeeded(node.name, node.op, node.tensor_name(expression), self.sources(expression))

    def sources(self, expression: Expr) -> list[str]:
        """The inputs of the model whose elements (not only shapes) an expression is computed from."""
        result: dict[str, None] = {}
        stack, seen = [expression], {expression}
        while stack:
            one = stack.pop()
            if one in self.inputs:
                result[self.inputs[one]] = None
            if isinstance(one, Call) and getattr(one.op, "name", "") in ("shape_of", "ndarray_size"):
                continue
            for part in parts(one):
                if part not in seen:
                    seen.add(part)
                    stack.append(part)
        return list(result)

    def input_with_sizes(self, sizes: Sequence[Dim]) -> str | None:
        """An input of the model whose shape has a size variable that one of these sizes depends on."""
        wanted = {var for size in sizes if isinstance(size, PrimExpr) for var in undefined_vars(size)}
        for var in self.input_vars:
            of = var.type_annotation
            if isinstance(of, TensorType) and any(size in wanted for size in of.shape):
                return self.inputs[var]
        return None

    def may_run_dynamic(self, expression: Expr) -> bool:
        """Whether an operator may find the value of the expression when the model runs."""
        return self.dynamic

    # Names of sizes.

    def size_var(self, name: str) -> SizeVar:
        """The size variable that stands for a named dimension."""
        result = self.size_vars.get(name)
        if result is None:
            plain = re.sub(r"\W", "_", name) or "n"
            plain = f"n_{plain}" if plain[0].isdigit() else plain
            used = {var.name for var in self.size_vars.values()}
            unique = plain
            count = 1
            while unique in used:
                unique, count = f"{plain}_{count}", count + 1
            result = self.size_vars[name] = SizeVar(unique, "int32")
        return result

    # Graphs.

    def refuse_unsupported(self) -> None:
        """Name every operator that has neither a converter nor a body of other operators."""
        missing: dict[str, list[str]] = {}
        for location, node in nodes_of(self.model.proto.graph):
            domain = "" if node.domain == "ai.onnx" else node.domain
            version = self.model.opsets.get(domain, 1)
            if find(node.op_type, domain, version) is None and not functions.has_body(node.op_type, domain, version):
                label = f"{domain}.{node.op_type}" if domain else node.op_type
                missing.setdefault(label, []).append(node_name(node, location))
        if missing:
            raise not_implemented(missing)

    def convert_graph(self, graph: GraphProto, scope: Scope) -> list[Value]:
        """The outputs of a graph whose inputs `scope` has."""
        for tensor in graph.initializer:
            if tensor.name not in scope.names:
                scope.names[tensor.name] = Stored(tensor, sparse=False)
        for tensor in graph.sparse_initializer:
            scope.names[tensor.values.name] = Stored(tensor, sparse=True)
        for index, node in enumerate(graph.node):
            self.convert_node(node, node_name(node, index), scope)
        return [self._output(scope, value.name) for value in graph.output]

    def lookup(self, scope: Scope, name: str) -> Value | None:
        """What a name stands for; initialisers are read when they are first used."""
        result = scope.find(name)
        if isinstance(result, Missing):
            raise BadNode(result.node, result.op, f"its output {result.place}, {name!r}, is used, and is not made")
        if isinstance(result, Stored):
            read = sparse_to_array if result.sparse else to_array
            array = read(result.proto, self.model.folder)
            result = self.stored(name, array)
            scope.replace(name, result)
        return result

    def _output(self, scope: Scope, name: str) -> Value:
        result = self.lookup(scope, name)
        if result is None:
            raise BrokenGraph(f"{name!r} is used, and nothing makes it")
        return result

    def stored(self, name: str, array: np.ndarray) -> Expr:
        """An initialiser as an expression: a constant, or a parameter whose value is known."""
        if self.freeze:
            return self.constant(array)
        kind = of_numpy(array.dtype)
        data = kind.to_graph(array)
        result = Var(name, TensorType(data.shape, kind.dtype))
        self.param_vars.append(result)
        self.params[name] = data
        self.set_known(result, data)
        if kind.carried:
            self.set_element(result, kind)
        return result

    def constant(self, array: np.ndarray) -> Constant:
        """An array of the model as a constant of the graph."""
        kind = of_numpy(array.dtype)
        result = Constant(kind.to_graph(array))
        if kind.carried:
            self.set_element(result, kind)
        return result

    # Nodes.

    def convert_node(self, proto: NodeProto, name: str, scope: Scope) -> None:
        """Convert one node and give its outputs their names."""
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        inputs = [self.lookup(scope, given) if given else None for given in proto.input]
        attributes, protos = attributes_of(proto, name, self.model.folder, scope.bound)
        node = Node(self, scope, proto.op_type, name, domain, attributes, proto.input, proto.output)
        for expression, given in zip(inputs, proto.input):
            node.tensor_names[expression] = given
        how = find(proto.op_type, domain, node.opset)
        results: Sequence[Value | TupleWrapper | None]
        built: Sequence[Value | None]
        try:
            if how is None:
                results = self._through_body(proto, protos, node, inputs)
            else:
                results = as_list(_call(how.convert, node, inputs))
            finished = [self._finished(node, inputs, result) for result in results]
            built = finished if how is None else self._folded(how, node, inputs, finished)
        except (BadNode, ValueNeeded, ShapeNeeded, OpError, BrokenGraph, AbsurdSize, UnsupportedType, InternalError):
            raise
        except LoopwrightError as error:
            raise BadNode(name, proto.op_type, error.problem, why=error.why, hint=error.hint) from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, AssertionError) as error:
            raise BadNode(name, proto.op_type, f"it cannot be converted: {type(error).__name__}: {error}") from error
        for index, output in enumerate(proto.output):
            if output:
                answer = built[index] if index < len(built) else None
                scope.names[output] = Missing(name, proto.op_type, index) if answer is None else answer

    def _through_body(
        self, proto: NodeProto, protos: Sequence[AttributeProto], node: Node, inputs: Sequence[Value | None]
    ) -> list[Value | None]:
        """The results of a node by the operators that ONNX defines its own by."""
        plain = type(proto).FromString(proto.SerializeToString())
        del plain.attribute[:]
        plain.attribute.extend(protos)
        body = functions.body_of(plain, node.domain, node.opset, [self._described(one) for one in inputs])
        if body is None:
            raise not_implemented({node.op: [node.name]})
        bound = functions.default_attributes(node.op, node.domain, node.opset)
        bound |= {attribute.name: attribute for attribute in protos}
        names: dict[str, Entry] = dict(zip(body.input, [*inputs, *[None] * len(body.input)]))
        scope = Scope(functions.opsets_inside(body, node.scope.opsets, node.domain), names, None, bound)
        for index, inner in enumerate(body.node):
            # An input that the call leaves out is left out inside as well.
            clean = type(inner).FromString(inner.SerializeToString())
            for k, given in enumerate(clean.input):
                if given in names and names[given] is None:
                    clean.input[k] = ""
            self.convert_node(clean, f"{node.name}/{node_name(inner, index)}", scope)
        return [self.lookup(scope, output) if output in scope.names else None for output in body.output]

    def _described(self, value: Value | None) -> functions.Described:
        if isinstance(value, SequenceValue):
            first = self._described(value.items[0]) if value.items else None
            kind = of_dtype(value.dtype) if value.dtype else None
            return [first] if first is not None else [(kind, ())] if kind is not None else None
        if not isinstance(value, Expr):
            return None
        of = self.type_of(value)
        if not isinstance(of, TensorType):
            return None
        return self.elements.get(value) or of_dtype(str(of.dtype)), of.shape

    def _finished(
        self, node: Node, inputs: Sequence[Value | None], result: Value | TupleWrapper | None
    ) -> Value | None:
        """One result with its type inferred and its calls named after the node."""
        if result is None or isinstance(result, (SequenceValue, OptionalValue)):
            return result
        if not isinstance(result, Expr):
            raise InternalError(f"the converter of {node.op} returns {type(result).__name__}")
        name_calls(result, node.name)
        of = self.type_of(result)
        _refuse_absurd(node, of)
        if node.op in _HAND_ON and result not in self.elements:
            source = next((one for one in inputs if one in self.elements), None)
            if source is not None and isinstance(of, TensorType) and of.dtype == self.elements[source].dtype:
                self.set_element(result, self.elements[source])
        return result

    # Computing what is known.

    def _folded(
        self, how: Converter, node: Node, inputs: Sequence[Value | None], built: list[Value | None]
    ) -> Sequence[Value | None]:
        """The results, replaced by constants or noted as known where the inputs are."""
        arguments = [one for one in inputs if one is None or isinstance(one, Expr)]
        result = [one for one in built if one is None or isinstance(one, Expr)]
        if not how.fold or len(arguments) != len(inputs) or len(result) != len(built):
            return built
        values = [None if one is None else self.known_of(one) for one in arguments]
        if any(one is not None and value is None for one, value in zip(arguments, values)):
            return result
        if all(one is None or self.known_of(one) is not None for one in result):
            return result
        if any(value is not None and is_symbolic(value) for value in values):
            return self._symbolic(node, values, result)
        given = sum(value.nbytes for value in values if value is not None)
        if not self._worth_folding(result, given):
            return result
        constants = all(one is None or isinstance(one, Constant) for one in arguments)
        bindings: dict[Any, Known | None] = {
            one: value for one, value in zip(arguments, values) if one is not None and not isinstance(one, Constant)
        }
        if not all(one is None or _closed(one, bindings) for one in result):
            return result
        frame = Tuple([one for one in result if one is not None])
        self.type_of(frame)
        fields = interpreter.evaluate(frame, bindings)
        assert isinstance(fields, list)
        answer = iter(fields)
        return [None if one is None else self._as_known(one, np.asarray(next(answer)), constants) for one in result]

    def _symbolic(
        self, node: Node, values: Sequence[Known | None], result: list[Expr | None]
    ) -> Sequence[Expr | None]:
        if node.domain:
            return result
        answer = known.evaluate(node.op, node, values)
        if answer is None:
            return result
        for one, value in zip(result, answer):
            if one is not None and self.known_of(one) is None:
                self.set_known(one, value)
        return [
            Constant(value.astype(self._dtype(one).numpy())) if one is not None and not is_symbolic(value) else one
            for one, value in zip(result, answer)
        ]

    def _dtype(self, expression: Expr) -> DataType:
        of = self.type_of(expression)
        assert isinstance(of, TensorType)
        return of.dtype

    def _worth_folding(self, result: Iterable[Expr | None], given: int) -> bool:
        total = 0
        for one in result:
            if one is None:
                continue
            of = self.type_of(one)
            if not isinstance(of, TensorType):
                return False
            if not is_dynamic(of):
                total += math.prod(of.concrete_shape) * of.dtype.nbytes
        return total <= max(MOST_FOLDED, 2 * given)

    def _as_known(self, expression: Expr, value: np.ndarray, constant: bool) -> Expr:
        if not constant:
            self.set_known(expression, value)
            return expression
        result = Constant(value, expression.span)
        if expression in self.elements:
            self.set_element(result, self.elements[expression])
        return result


def not_implemented(missing: Mapping[str, Sequence[str]]) -> OpNotImplemented:
    """The error that names operators and the nodes that use them."""
    listed = ", ".join(sorted(missing))
    lines = []
    for op, nodes in sorted(missing.items()):
        reason = reason_against(op.rsplit(".", 1)[-1])
        lines.append(f"{op}: {text_of(nodes)}" + (f" ({reason})" if reason else ""))
    return OpNotImplemented(
        f"The following operators are not supported for frontend ONNX: {listed}",
        why="these nodes use them: " + "; ".join(lines),
        hint="`@converter(name)` of loopwright.frontends.onnx enters a converter of your own",
        fields={"operators": {op: list(nodes) for op, nodes in missing.items()}},
    )


@cache
def _signature(convert: Convert) -> inspect.Signature:
    return inspect.signature(convert)


def _call(convert: Convert, node: Node, inputs: Sequence[Value | None]) -> Results:
    """What a converter makes of the inputs; a BadNode where there are too many or too few of them."""
    try:
        _signature(convert).bind(node, *inputs)
    except TypeError as error:
        raise node.bad(f"it has {len(inputs)} inputs: {error}") from None
    try:
        return convert(node, *inputs)
    except MemoryError as error:  # a table that a converter makes (of a transform, of windows) for an absurd size
        raise node.bad(f"what it is made of does not fit into memory: {error}") from None


def _closed(root: Expr, bindings: Mapping[Expr, object]) -> bool:
    """Whether an expression can be computed now: of constants and `bindings` alone, and the same whenever it is."""
    stack, seen = [root], {root}
    while stack:
        one = stack.pop()
        if one in bindings:
            continue
        if isinstance(one, Var) or (isinstance(one, Call) and getattr(one.attrs, "stateful", False)):
            return False
        for part in parts(one):
            if part not in seen:
                seen.add(part)
                stack.append(part)
    return True


def _refuse_absurd(node: Node, of: Type) -> None:
    if isinstance(of, TupleType):
        for field in of.fields:
            _refuse_absurd(node, field)
    elif isinstance(of, TensorType):
        count = 1
        for size in of.shape:
            if isinstance(size, int):
                if size < 0:
                    raise AbsurdSize(f"the result of node {node.name!r} ({node.op})", of.shape, "a size is negative")
                count *= size
        if count * of.dtype.nbytes > LARGEST and not any(size == 0 for size in of.shape if isinstance(size, int)):
            raise AbsurdSize(
                f"the result of node {node.name!r} ({node.op})",
                of.shape,
                f"it would take {count * of.dtype.nbytes:,} bytes",
            )
