"""Rules about reshapes, transposes and slices: several become one, and those that move nothing go.

reshape(reshape(x, a), b)                    →    reshape(x, b)
transpose(transpose(x, p), q)                →    transpose(x, p∘q)
layout_transform(layout_transform(x, A→B), B→A)    →    x
"""

from __future__ import annotations

from loopwright.ir.visitor import variables_in
from loopwright.relay.expr import Call, Expr, Tuple
from loopwright.relay.op.registry import make
from loopwright.relay.transform.simplify.rules.rule import rule, same_value, shape_of
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call
from loopwright.relay.types import is_dynamic, same_dim
from loopwright.te.assumed_sizes import collected

_RESHAPES = ("reshape", "contrib_reverse_reshape", "expand_dims", "squeeze", "nn.batch_flatten", "reshape_like")


@rule(*_RESHAPES)
def reshape_of_a_reshape(call: Call, types: TypedRewrite) -> Expr | None:
    """One reshape to the last shape; none where that is the first."""
    source: Expr = call
    assumed: set[object] = set()
    while is_call(source, *_RESHAPES):
        assumed |= _assumed(source, types)
        source = source.args[0]
    if same_value(types, call, source):
        return None if assumed else source
    if source is call.args[0]:
        return None
    shape = shape_of(types, call)
    # A size of 0 would be a code.
    if shape is None or any(isinstance(size, int) and size == 0 for size in shape):
        return None
    result = make("reshape", source, newshape=shape)
    # Of open sizes, several may say more than one: that axis 0 is 2, not only that there are 2 * m elements.
    return result if assumed <= _assumed(result, types) else None


def _assumed(call: Call, types: TypedRewrite) -> set[object]:
    """What a call assumes of open sizes, as something to compare."""
    given = [types.type_of(arg) for arg in call.args]
    if not any(map(is_dynamic, given)) and not call.attrs.size_expressions():
        return set()
    with collected() as result:
        call.attrs.infer(*given)
    return {(str(one.condition), frozenset(variables_in(one.condition))) for one in result}


def permutation(call: Expr, rank: int) -> list[int] | None:
    """The order of axes that a transpose, or a layout transform without blocks, gives."""
    if is_call(call, "transpose"):
        axes = call.attrs.axes
        return list(range(rank))[::-1] if axes is None else [axis % rank for axis in axes]
    if is_call(call, "layout_transform"):
        one, other = call.attrs.src_layout, call.attrs.dst_layout
        if one.isalpha() and one.isupper() and sorted(one) == sorted(other) and len(one) == rank:
            return [one.index(axis) for axis in other]
    return None


@rule("transpose", "layout_transform")
def transpose_of_a_transpose(call: Call, types: TypedRewrite) -> Expr | None:
    """The axes ordered once; none where the order is the one they had."""
    of = types.tensor_type(call.args[0])
    if of is None:
        return None
    rank = len(of.shape)
    order = permutation(call, rank)
    if order is None:
        return None
    source: Expr = call.args[0]
    chained = False
    while (inner := permutation(source, rank)) is not None:
        order = [inner[axis] for axis in order]
        assert isinstance(source, Call)
        source, chained = source.args[0], True
    if order == list(range(rank)):
        return source
    shape = shape_of(types, source)
    if shape is not None:
        wide = [axis for axis in order if not same_dim(shape[axis], 1)]
        if wide == sorted(wide) and not any(isinstance(size, int) and size == 0 for size in shape):
            # Only sizes of 1 move: the elements lie as they lay.
            return make("reshape", source, newshape=tuple(shape[axis] for axis in order))
    return make("transpose", source, axes=tuple(order)) if chained else None


@rule("layout_transform")
def layout_there_and_back(call: Call, types: TypedRewrite) -> Expr | None:
    """One change of layout for two; blocks that are filled up with zeros would be, and are not, cut off."""
    inner = call.args[0]
    if call.attrs.src_layout == call.attrs.dst_layout:
        return inner
    if not is_call(inner, "layout_transform") or inner.attrs.dst_layout != call.attrs.src_layout:
        return None
    if inner.attrs.src_layout == call.attrs.dst_layout:
        return inner.args[0] if same_value(types, call, inner.args[0]) else None
    changed = make(
        "layout_transform", inner.args[0], src_layout=inner.attrs.src_layout, dst_layout=call.attrs.dst_layout
    )
    return changed if same_value(types, call, changed) else None


@rule("concatenate")
def concatenate_one(call: Call, types: TypedRewrite) -> Expr | None:
    """One tensor alone is joined already."""
    parts = call.args[0]
    return parts.fields[0] if isinstance(parts, Tuple) and len(parts.fields) == 1 else None


@rule("strided_slice")
def slice_everything(call: Call, types: TypedRewrite) -> Expr | None:
    """A slice of all there is, forwards."""
    strides = call.attrs.strides
    if strides is not None and any(step != 1 for step in strides):
        return None
    return call.args[0] if same_value(types, call, call.args[0]) else None


@rule("broadcast_to", "tile", "collapse_sum_to")
def repeat_to_own_shape(call: Call, types: TypedRewrite) -> Expr | None:
    """Repeated to the shape it has."""
    return call.args[0] if same_value(types, call, call.args[0]) else None
