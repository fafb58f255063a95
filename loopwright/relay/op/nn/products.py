"""Products of matrices in graphs, and what stands around them: bias_add, batch_flatten."""

from __future__ import annotations

from loopwright.ir.types import Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Call, Constant, Expr, Var
from loopwright.relay.op.from_topi import FromTopi
from loopwright.relay.op.registry import Kind, calls, make, register
from loopwright.relay.op.sizes import equal_dim, normal_axis, tensor_type_of
from loopwright.relay.types import Dim, TensorType


@register("nn.dense", Kind.OUT_FUSABLE)
class Dense(FromTopi):
    """The data times the transposed weight, which is (units, in); the data may have batches before its rows."""

    units: int | None = None
    out_dtype: str = ""

    def infer_inputs(self, data: TensorType | None, weight: TensorType | None) -> list[Type | None]:
        if data is not None and weight is None and self.units is not None:
            weight = TensorType((self.units, data.shape[-1]), str(data.dtype))
        return [data, weight]

    def infer(self, data: TensorType, weight: TensorType) -> Type:
        if self.units is not None and weight.shape and not equal_dim(weight.shape[0], self.units):
            raise TypeMismatch(f"nn.dense: units is {self.units}, and the weight {weight} has {weight.shape[0]}")
        return self.type_of_compute(data, weight)

    def equal_sizes(self, data: TensorType, weight: TensorType) -> list[tuple[Dim, Dim]]:
        return [(data.shape[-1], weight.shape[-1])]

    def arguments(self, data: object, weight: object) -> list[object]:
        return [data, weight, None, self.out_dtype or None]

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        data, weight = call.args
        units, inner = tensor_type_of(weight).shape
        flat = make("reshape", grad, newshape=(-1, units)), make("reshape", data, newshape=(-1, inner))
        return [make("nn.matmul", grad, weight), make("nn.matmul", *flat, transpose_a=True)]


@register("nn.matmul", Kind.OUT_FUSABLE)
class Matmul(FromTopi):
    """The product of the last two dimensions, either operand transposed; those before them are broadcast."""

    units: int | None = None
    out_dtype: str = ""
    transpose_a: bool = False
    transpose_b: bool = False

    def infer_inputs(self, tensor_a: TensorType | None, tensor_b: TensorType | None) -> list[Type | None]:
        if tensor_a is not None and tensor_b is None and self.units is not None:
            inner = tensor_a.shape[-2 if self.transpose_a else -1]
            shape = (self.units, inner) if self.transpose_b else (inner, self.units)
            tensor_b = TensorType(shape, str(tensor_a.dtype))
        return [tensor_a, tensor_b]

    def infer(self, tensor_a: TensorType, tensor_b: TensorType) -> Type:
        return self.type_of_compute(tensor_a, tensor_b)

    def equal_sizes(self, tensor_a: TensorType, tensor_b: TensorType) -> list[tuple[Dim, Dim]]:
        return [_depths(tensor_a, tensor_b, self.transpose_a, self.transpose_b)]

    def arguments(self, tensor_a: object, tensor_b: object) -> list[object]:
        return [tensor_a, tensor_b, None, self.out_dtype or None, self.transpose_a, self.transpose_b]

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return _product_gradient(call, grad, self.transpose_a, self.transpose_b, "nn.matmul")


@calls("nn.matmul")
def matmul(
    tensor_a: Expr,
    tensor_b: Expr,
    units: int | None = None,
    out_dtype: str = "",
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Expr:
    """The product of two matrices; where only the second is transposed, and nothing else, that is nn.dense."""
    if transpose_b and not transpose_a and _is_matrix(tensor_b):
        dense: Expr = make("nn.dense", tensor_a, tensor_b, units=units, out_dtype=out_dtype)
        return dense
    product: Expr = make(
        "nn.matmul",
        tensor_a,
        tensor_b,
        units=units,
        out_dtype=out_dtype,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
    )
    return product


def _depths(one: TensorType, other: TensorType, turn_one: bool, turn_other: bool) -> tuple[Dim, Dim]:
    """The sizes that a product runs over."""
    return one.shape[-2 if turn_one else -1], other.shape[-1 if turn_other else -2]


def _is_matrix(expression: Expr) -> bool:
    """Whether this is known to have two dimensions, as the weight of nn.dense has."""
    if isinstance(expression, Constant):
        return expression.data.ndim == 2
    known = expression.type_annotation if isinstance(expression, Var) else getattr(expression, "checked_type_", None)
    return isinstance(known, TensorType) and len(known.shape) == 2


def _product_gradient(call: Call, grad: Expr, turn_a: bool, turn_b: bool, name: str) -> list[Expr]:
    """For out = a b: grad_a = grad bᵀ and grad_b = aᵀ grad, each transposed back where its operand was."""
    a, b = call.args

    def product(one: Expr, other: Expr, turn_one: bool, turn_other: bool) -> Expr:
        result: Expr = make(name, one, other, transpose_a=turn_one, transpose_b=turn_other)
        return result

    by_a = product(b, grad, turn_b, True) if turn_a else product(grad, b, False, not turn_b)
    by_b = product(grad, a, True, turn_a) if turn_b else product(a, grad, not turn_a, False)
    # What was repeated to all batches gets the sum over them.
    return [make("collapse_sum_like", by_a, a), make("collapse_sum_like", by_b, b)]


@register("nn.batch_matmul", Kind.OUT_FUSABLE)
class BatchMatmul(FromTopi):
    """One product for each batch; the second operand is transposed unless the call says otherwise."""

    out_dtype: str = ""
    transpose_a: bool = False
    transpose_b: bool = True

    def infer(self, tensor_a: TensorType, tensor_b: TensorType) -> Type:
        return self.type_of_compute(tensor_a, tensor_b)

    def equal_sizes(self, tensor_a: TensorType, tensor_b: TensorType) -> list[tuple[Dim, Dim]]:
        return [_depths(tensor_a, tensor_b, self.transpose_a, self.transpose_b)]

    def arguments(self, tensor_a: object, tensor_b: object) -> list[object]:
        return [tensor_a, tensor_b, None, self.out_dtype or None, self.transpose_a, self.transpose_b]

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return _product_gradient(call, grad, self.transpose_a, self.transpose_b, "nn.batch_matmul")


@register("nn.contrib_dense_pack", Kind.OUT_FUSABLE)
class DensePack(FromTopi):
    """nn.dense with a weight in blocks of units: (units // block, in, block)."""

    topi_name = "nn.dense_pack"

    weight_layout: str = "NC"
    units: int | None = None
    out_dtype: str = ""

    def infer(self, data: TensorType, weight: TensorType) -> Type:
        return self.type_of_compute(data, weight)

    def arguments(self, data: object, weight: object) -> list[object]:
        return [data, weight, None, self.out_dtype or None]


@register("nn.bias_add", Kind.BROADCAST)
class BiasAdd(FromTopi):
    """The data plus one number for each index along `axis`."""

    axis: int = 1

    def infer_inputs(self, data: TensorType | None, bias: TensorType | None) -> list[Type | None]:
        if data is not None and bias is None:
            axis = normal_axis("nn.bias_add", self.axis, len(data.shape))
            bias = TensorType((data.shape[axis],), str(data.dtype))
        return [data, bias]

    def infer(self, data: TensorType, bias: TensorType) -> Type:
        return self.type_of_compute(data, bias)

    def equal_sizes(self, data: TensorType, bias: TensorType) -> list[tuple[Dim, Dim]]:
        return [(data.shape[self.axis], bias.shape[0])]

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [grad, make("sum", grad, axis=self.axis, keepdims=False, exclude=True)]


@register("nn.batch_flatten", Kind.INJECTIVE)
class BatchFlatten(FromTopi):
    """All dimensions but the first as one."""

    topi_name = "nn.flatten"

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("reshape_like", grad, call.args[0])]
