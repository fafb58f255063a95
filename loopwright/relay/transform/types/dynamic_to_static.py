"""DynamicToStatic: shapes that are operands become attributes, where their values are known.

    dyn.reshape(%x, concatenate((take(shape_of(%x), 0), [12i64, 64i64])))    →    reshape(%x, newshape=(n, 12, 64))

Known is what depends on constants and on the shapes of tensors: `shape_values.py` computes it, with size variables as
symbols. What is made static has a type, from which the shapes of what follows are known in turn: one walk is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Final

import numpy as np

from loopwright.ir import Expr as PrimExpr
from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Constant, Expr, Function
from loopwright.relay.op.registry import make
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call
from loopwright.relay.transform.types.shape_values import ShapeValues
from loopwright.relay.types import as_dim, is_any

Rule = Callable[[Call, ShapeValues], Expr | None]


def _sized(name: str, attribute: str, index: int) -> Rule:
    """The operator `name`, whose `attribute` is operand number `index` of the dynamic one."""

    def rule(call: Call, values: ShapeValues) -> Expr | None:
        sizes = values.sizes(call.args[index])
        if sizes is None:
            return None
        rest = [arg for k, arg in enumerate(call.args) if k != index]
        return make(name, *rest, **{**dict(call.attrs.items()), attribute: sizes})

    return rule


def _numbered(name: str, attribute: str, index: int) -> Rule:
    """The same for an attribute that is one integer."""

    def rule(call: Call, values: ShapeValues) -> Expr | None:
        sizes = values.sizes(call.args[index])
        if sizes is None or len(sizes) != 1 or not isinstance(sizes[0], int):
            return None
        rest = [arg for k, arg in enumerate(call.args) if k != index]
        result = make(name, *rest, **{**dict(call.attrs.items()), attribute: sizes[0]})
        return result.tuple_value if hasattr(result, "tuple_value") and not isinstance(result, Call) else result

    return rule


def _squeeze(call: Call, values: ShapeValues) -> Expr | None:
    axes = values.numbers(call.args[1])
    return None if axes is None else make("squeeze", call.args[0], axis=tuple(int(axis) for axis in axes.flat))


def _strided_slice(call: Call, values: ShapeValues) -> Expr | None:
    bounds = [values.sizes(arg) for arg in call.args[1:]]
    if any(bound is None for bound in bounds):
        return None
    begin, end, strides = bounds
    return make("strided_slice", call.args[0], begin=begin, end=end, strides=strides, slice_mode=call.attrs.slice_mode)


def _pad(call: Call, values: ShapeValues) -> Expr | None:
    widths = values.numbers(call.args[1])
    if widths is None:
        return None
    pairs = tuple((int(low), int(high)) for low, high in widths.reshape(-1, 2))
    return make("nn.pad", call.args[0], call.args[2], pad_width=pairs, pad_mode=call.attrs.pad_mode)


def _upsampling(*names: str) -> Rule:
    def rule(call: Call, values: ShapeValues) -> Expr | None:
        scales = [values.numbers(arg) for arg in call.args[1:]]
        if any(scale is None or scale.size != 1 for scale in scales):
            return None
        given = {name: np.asarray(scale).reshape(()).item() for name, scale in zip(names, scales, strict=True)}
        return make(call.op.name.removeprefix("dyn."), call.args[0], **given, **dict(call.attrs.items()))

    return rule


def _arange(call: Call, values: ShapeValues) -> Expr | None:
    """The size of a range; of whole numbers with symbols, one that counts up by 1."""
    if call.attrs.size is not None:
        return None
    given = [values.of(arg) for arg in call.args]
    result = [value for value in given if isinstance(value, np.ndarray) and value.size == 1]
    if len(result) < len(given):
        return None
    low, high, step = (value.reshape(()).item() for value in result)
    if any(bound is None for bound in (low, high, step)):
        return None
    if not any(isinstance(bound, PrimExpr) for bound in (low, high, step)):
        if step == 0:
            return None
        return Call(call.op, call.args, call.attrs.with_(size=max(ceil((high - low) / step), 0)))
    if step != 1 or isinstance(low, float):
        return None
    return Call(call.op, call.args, call.attrs.with_(size=as_dim(high - low)))


_RULES: Final[dict[str, Rule]] = {
    "arange": _arange,
    "dyn.broadcast_to": _sized("broadcast_to", "shape", 1),
    "dyn.expand_dims": _numbered("expand_dims", "axis", 1),
    "dyn.full": _sized("full", "shape", 1),
    "dyn.image.resize1d": _sized("image.resize1d", "size", 1),
    "dyn.image.resize2d": _sized("image.resize2d", "size", 1),
    "dyn.image.resize3d": _sized("image.resize3d", "size", 1),
    "dyn.nn.pad": _pad,
    "dyn.nn.upsampling": _upsampling("scale_h", "scale_w"),
    "dyn.nn.upsampling3d": _upsampling("scale_d", "scale_h", "scale_w"),
    "dyn.one_hot": _numbered("one_hot", "depth", 3),
    "dyn.ones": _sized("ones", "shape", 0),
    "dyn.reshape": _sized("reshape", "newshape", 1),
    "dyn.sparse_to_dense": _sized("sparse_to_dense", "output_shape", 3),
    "dyn.squeeze": _squeeze,
    "dyn.strided_slice": _strided_slice,
    "dyn.tile": _sized("tile", "reps", 1),
    "dyn.topk": _numbered("topk", "k", 1),
    "dyn.zeros": _sized("zeros", "shape", 0),
}


class _ToStatic(TypedRewrite):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.values = ShapeValues(self.types)

    def rewrite(self, call: Call) -> Expr:
        rule = _RULES.get(call.op.name)
        if rule is not None:
            result = rule(call, self.values)
            return call if result is None else result
        if is_call(call, "shape_of", "ndarray_size"):
            # The shape itself, where it is numbers: what is computed from it may be more than a shape.
            of = self.tensor_type(call.args[0])
            if of is not None and not any(is_any(size) or isinstance(size, PrimExpr) for size in of.shape):
                numbers = self.values.numbers(call)
                return call if numbers is None else Constant(numbers.astype(call.attrs.dtype))
        return call


def DynamicToStatic() -> GraphPass:
    """Give operators whose shapes are operands those shapes as attributes, where they are known."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        changed = _ToStatic(mod).apply(function)
        if changed is function:
            return function
        # What the function returned may have had unknown sizes; now they are found anew.
        return changed.rebuilt(changed.params, changed.body)

    return GraphPass(change, PassInfo(2, "DynamicToStatic"))
