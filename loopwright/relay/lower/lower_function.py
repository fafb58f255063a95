"""From a fused function to loops: its operators' computes chained, as one PrimFunc.

    fn (%p0, %p1, Primitive=1) { nn.relu(add(%p0, %p1)) }    →    PrimFunc of blocks T_add, T_relu

What is scheduled is the whole of it: element-wise stages are inlined by the rules of `autosched`. A constant inside is
a number of the program where it is one element, and a table otherwise. Tuples among the parameters and the results are
taken apart: every tensor is one parameter, inputs first, then outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from loopwright import te
from loopwright.arith import Analyzer
from loopwright.ir import Expr as PrimExpr
from loopwright.ir import IntImm, as_expr, logical_or
from loopwright.ir.annotations import ASSUMED_SIZES, CHECKED_INDICES
from loopwright.ir.expr import SizeVar
from loopwright.ir.expr import Var as PrimVar
from loopwright.ir.function import PrimFunc
from loopwright.ir.types import TupleType, Type
from loopwright.ir.visitor import variables_in
from loopwright.relay.errors import CannotCompile
from loopwright.relay.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var
from loopwright.relay.index_checks import ranges_of
from loopwright.relay.lower.kernel_size_params import OwnSizes
from loopwright.relay.nested import Nested, fields, flat
from loopwright.relay.op.index_ranges import IndexRange, input_at
from loopwright.relay.op.registry import Op
from loopwright.relay.op.strategies import kernel
from loopwright.relay.size_checks import equal_sizes
from loopwright.relay.types import TensorType, is_any, known_sizes, type_text
from loopwright.relay.visitor import ExprFunctor, post_order
from loopwright.te.assumed_sizes import Assumption, collected


@dataclass(frozen=True)
class Lowered:
    """A fused function as loops, with the types of its tensors: parameters and then results."""

    func: PrimFunc
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    name: str
    operators: tuple[str, ...]
    decided: tuple[SizeVar, ...] = ()  # size variables whose values the kernel writes into its last output
    named: tuple[PrimVar, ...] = ()  # size variables that it gets by name: no tensor has one of them as a dimension


class _Compute(ExprFunctor[Nested[te.Tensor]]):
    """The tensor (or list of tensors) that each expression is."""

    def __init__(self, sizes: OwnSizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.operators: list[str] = []
        self.used: dict[PrimVar, None] = {}  # in sizes that are attributes

    def visit_var(self, var: Var) -> Nested[te.Tensor]:
        raise ValueError(f"{var.name_hint} is no parameter of the function that is lowered")

    def visit_constant(self, constant: Constant) -> Nested[te.Tensor]:
        return constant_tensor(constant.data)

    def visit_tuple(self, tup: Tuple) -> Nested[te.Tensor]:
        return [self.visit(field) for field in tup.fields]

    def visit_tuple_getitem(self, get: TupleGetItem) -> Nested[te.Tensor]:
        return fields(self.visit(get.tuple_value))[get.index]

    def visit_call(self, call: Call) -> Nested[te.Tensor]:
        args = [self.visit(arg) for arg in call.args]
        if not isinstance(call.op, Op):
            raise ValueError("a fused function calls operators alone")
        self.operators.append(call.op.name)
        attrs = self.sizes.attrs(call.attrs)
        self.used.update(dict.fromkeys(var for size in attrs.size_expressions() for var in variables_in(size)))
        return kernel(call.op, attrs, args, call.checked_type)


def constant_tensor(array: np.ndarray) -> te.Tensor:
    """A tensor whose elements are numbers of the program: one of them, or few enough to choose from."""
    if array.ndim == 0 or array.size == 1:
        number = te.const(array.reshape(()).item(), array.dtype.name)
        return te.compute(array.shape, lambda *_: number, name="constant", tag="elemwise")
    raise ValueError(f"a constant of shape {array.shape} is a parameter of a kernel, not a part of its program")


def flat_types(of: Type) -> list[TensorType]:
    """The tensors that a value of this type consists of."""
    if isinstance(of, TensorType):
        return [of]
    if isinstance(of, TupleType):
        return [tensor for field in of.fields for tensor in flat_types(field)]
    raise TypeError(f"{of} is neither a tensor nor a tuple of them")


def _placeholders(of: Type, name: str, result: list[te.Tensor], sizes: OwnSizes) -> Nested[te.Tensor]:
    if isinstance(of, TupleType):
        return [_placeholders(field, f"{name}_{k}", result, sizes) for k, field in enumerate(of.fields)]
    if not isinstance(of, TensorType) or any(is_any(size) for size in of.shape):
        raise CannotCompile(
            f"a kernel takes tensors of known sizes, and not {type_text(of)}",
            hint="relay.create_executor('vm') finds sizes as it runs",
        )
    tensor = te.placeholder(sizes.shape(known_sizes(of)), of.dtype, name=name)
    result.append(tensor)
    return tensor


class _Stages(NamedTuple):
    """What a kernel computes: its tensors, its sizes, and what they are assumed to be."""

    sizes: OwnSizes
    compute: _Compute
    inputs: list[te.Tensor]
    outputs: list[te.Tensor]
    assumed: list[Assumption]

    def unknown(self) -> list[PrimVar]:
        """The size variables of inputs and of operators that no tensor has as a dimension, and nobody passes by name.

        There are no others: operators compute all sizes from these.
        """
        dims = {size for tensor in (*self.inputs, *self.outputs) for size in tensor.shape if isinstance(size, PrimVar)}
        inputs = [var for tensor in self.inputs for size in tensor.shape for var in variables_in(size)]
        used = dict.fromkeys((*inputs, *self.compute.used))
        return [var for var in used if var not in dims and var not in self.sizes.needed]


def _stages(function: Function, types: Sequence[TensorType]) -> _Stages:
    """The stages of a function; its sizes are read off tensors of these types, or passed by name."""
    sizes = OwnSizes(types, function.body, equal_sizes(function))
    compute = _Compute(sizes)
    inputs: list[te.Tensor] = []
    for index, param in enumerate(function.params):
        value = _placeholders(param.checked_type, f"p{index}", inputs, sizes)
        compute.memo_map[param] = value
    with collected() as assumed:
        results = flat(compute.visit(function.body))
    return _Stages(sizes, compute, inputs, _own_results(results, inputs), assumed)


def lower_function(function: Function, name: str | None = None) -> Lowered:
    """The loops of a function whose types are inferred and whose body is operators alone."""
    given = [tensor for param in function.params for tensor in flat_types(param.checked_type)]
    decided = decided_sizes(function.body)
    stages = _stages(function, given if decided else [*given, *flat_types(function.body.checked_type)])
    if stages.unknown():
        # An operator computes the size of a result in other words than its type says: `min(size1, size0)` tells
        # nobody what size1 is.
        stages = _stages(function, given)
    sizes, compute, inputs, outputs, assumed = stages
    # What the kernel finds is in the type of its result, but nobody can pass it.
    named = tuple(var for var in (*sizes.needed, *stages.unknown()) if var not in decided)
    called = name or "fused_" + "_".join(kernel_words(compute.operators))
    func = te.create_prim_func([*inputs, *outputs, *named]).with_attr("global_symbol", called)
    trusted = _checked_indices(function, compute)
    if trusted:
        func = func.with_attr(CHECKED_INDICES, trusted)
    conditions = [*[one.condition for one in assumed], *sizes.conditions, *_indexed_axes(function, compute)]
    if conditions:
        func = func.with_attr(ASSUMED_SIZES, tuple(conditions))
    # What a shape holds the caller passes with it; the others are parameters.
    shown = {var for buffer in func.argument_buffers() for size in buffer.shape for var in variables_in(size)}
    if any(var in shown for var in named):
        func = func.with_(params=tuple(param for param in func.params if param not in named or param not in shown))
    return Lowered(
        func,
        tuple(given),
        tuple(TensorType(tensor.shape, tensor.dtype) for tensor in outputs)
        if decided
        else tuple(flat_types(function.body.checked_type)),
        called,
        tuple(compute.operators),
        decided,
        named,
    )


def _trusted_ranges(function: Function) -> Iterator[tuple[Call, IndexRange]]:
    """The indices that the operators of a function trust: every caller checks them (`index_checks.py`)."""
    for call in post_order(function.body):
        if isinstance(call, Call) and isinstance(call.op, Op):
            for each in ranges_of(call):
                yield call, each


def _checked_indices(function: Function, compute: _Compute) -> tuple[str, ...]:
    """The names of the inputs that checked indices are made of."""
    result: list[str] = []
    for call, each in _trusted_ranges(function):
        for part in post_order(input_at(call.args, each.indices)):
            if isinstance(part, Var):
                result += [tensor.name for tensor in flat(compute.memo_map[part])]
    return tuple(dict.fromkeys(result))


def _indexed_axes(function: Function, compute: _Compute) -> Iterator[PrimExpr]:
    """That the axes are not empty which checked indices lie in, unless there are none of these.

    Where an axis has one element at most, its index is 0, and nothing in the kernel says that it came from data.
    """
    for call, each in _trusted_ranges(function):
        indices, data = (compute.memo_map.get(input_at(call.args, of)) for of in (each.indices, each.data))
        if each.ignored is not None or not isinstance(indices, te.Tensor) or not isinstance(data, te.Tensor):
            continue
        none = [as_expr(size).equal(0) for size in indices.shape]
        for size in data.shape if each.axis is None else (data.shape[each.axis],):
            condition = Analyzer().simplify(logical_or(as_expr(size) >= 1, *none))
            if not isinstance(condition, IntImm):
                yield condition


def decided_sizes(body: Expr) -> tuple[SizeVar, ...]:
    """The size variables that the values of an operator decide, in the order of its last output, which holds them."""
    if not isinstance(body, Call) or not isinstance(body.op, Op) or not body.attrs.data_dependent:
        return ()
    named = [tensor.shape[0] for tensor in flat_types(body.checked_type) if tensor.shape]
    return tuple(size for size in named if isinstance(size, SizeVar))


def kernel_words(operators: Sequence[str]) -> list[str]:
    return [name.replace(".", "_") for name in operators] or ["copy"]


def _own_results(results: Sequence[te.Tensor], inputs: Sequence[te.Tensor]) -> list[te.Tensor]:
    """A kernel writes each result into memory of its own: an input returned, or a result returned twice, is copied."""
    own: list[te.Tensor] = []
    for tensor in results:
        if any(tensor is other for other in (*inputs, *own)):
            source = tensor
            tensor = te.compute(source.shape, lambda *index, of=source: of[index], name="T_copy", tag="elemwise")
        own.append(tensor)
    return own
