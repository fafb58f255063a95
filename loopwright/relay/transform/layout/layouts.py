"""layouts: changes of layout move towards the end of a graph, where they meet others and vanish.

    nn.relu(layout_transform(%x, "NHWC", "NCHW"))    →    layout_transform(nn.relu(%x), "NHWC", "NCHW")

Each rule says it of one kind of operator: what it does in the layout of the source, its axes renamed. An operator
without a rule reads its data in the layout it always had.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from loopwright.ir.types import TupleType
from loopwright.relay.expr import Call, Expr, Tuple, TupleGetItem
from loopwright.relay.op.registry import Kind, make
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call, is_constant
from loopwright.relay.types import TensorType, same_dim


class Laid(NamedTuple):
    """A tensor in layout `source` that stands for one in `layout`."""

    value: Expr
    source: str
    layout: str

    @property
    def is_permuted(self) -> bool:
        """Whether only the order of axes changes."""
        return self.source.isalpha() and sorted(self.source) == sorted(self.layout)

    def axis(self, axis: int) -> int:
        """Where an axis lies in the source."""
        return self.source.index(self.layout[axis % len(self.layout)])

    def back(self, value: Expr) -> Expr:
        """What was computed in the source's layout, in the one it stands for."""
        return make("layout_transform", value, src_layout=self.source, dst_layout=self.layout)

    def same(self, other: Laid) -> bool:
        return (self.source, self.layout) == (other.source, other.layout)


def laid(value: Expr) -> Laid | None:
    """The tensor before a change of layout."""
    if not is_call(value, "layout_transform"):
        return None
    return Laid(value.args[0], value.attrs.src_layout, value.attrs.dst_layout)


def brought(value: Expr, source: str, layout: str) -> Expr:
    """A tensor in another layout; one that came from there as it was."""
    if source == layout:
        return value
    result = laid(value)
    if result is not None and (result.source, result.layout) == (layout, source):
        return result.value
    return make("layout_transform", value, src_layout=source, dst_layout=layout)


def letters(layout: str) -> list[str]:
    """The axes of a layout: `NCHW4c` has N, C, H, W and c."""
    return [letter for letter in layout if letter.isalpha()]


Sink = Callable[[Call, Laid, TypedRewrite], Expr | None]
_RULES: Final[dict[str, Sink]] = {}


def _sinks(*names: str) -> Callable[[Sink], Sink]:
    def enter(rule: Sink) -> Sink:
        for name in names:
            _RULES[name] = rule
        return rule

    return enter


def follows(call: Call) -> bool:
    """Whether there is a rule for the operator, so that it can be computed in another order of axes."""
    kind = call.attrs.kind
    element_wise = kind == Kind.ELEMWISE or (kind == Kind.BROADCAST and len(call.args) > 1)
    return element_wise or call.op.name in _RULES or is_call(call, "concatenate")


def sink(call: Call, types: TypedRewrite) -> Expr | None:
    """The call computed in the layout its data came from, brought back after it; None where there is no rule."""
    if is_call(call, "concatenate"):
        return _concatenate(call)
    operands = [laid(arg) for arg in call.args]
    if not any(operands) or is_call(call, "layout_transform"):
        return None
    first = operands[0]
    if call.attrs.kind <= Kind.BROADCAST and len(call.args) > 1 and call.op.name not in _RULES:
        return _element_wise(call, operands, types)
    if first is None:
        return None
    rule = _RULES.get(call.op.name)
    if rule is not None:
        return rule(call, first, types) if first.is_permuted else None
    if call.attrs.kind == Kind.ELEMWISE and len(call.args) == 1:
        return first.back(Call(call.op, [first.value], call.attrs, span=call.span))
    return None


def _element_wise(call: Call, operands: Sequence[Laid | None], types: TypedRewrite) -> Expr | None:
    """Operands of one layout; others that are small are brought into it."""
    answer = next(one for one in operands if one is not None)
    of = types.tensor_type(call)
    if of is None or len(of.shape) != len(letters(answer.layout)):
        return None
    args = []
    for arg, one in zip(call.args, operands, strict=True):
        if one is not None and one.same(answer):
            args.append(one.value)
            continue
        result = _small_operand(arg, answer, of, types)
        if result is None:
            return None
        args.append(result)
    return answer.back(Call(call.op, args, call.attrs, span=call.span))


def _small_operand(arg: Expr, answer: Laid, result: TensorType, types: TypedRewrite) -> Expr | None:
    of = types.tensor_type(arg)
    if of is None:
        return None
    rank = len(result.shape)
    sizes = [*[1] * (rank - len(of.shape)), *of.shape]
    wide = [axis for axis in range(rank) if not same_dim(sizes[axis], 1)]
    if not wide:
        return make("reshape", arg, newshape=(1,)) if of.shape else arg
    if len(wide) > 1 and not is_constant(arg):
        return None
    blocked = {letter.upper() for letter in letters(answer.source) if letter.islower()}
    if any(axis not in wide for axis, letter in enumerate(answer.layout) if letter in blocked):
        return None
    missing = rank - len(of.shape)
    full = make("expand_dims", arg, axis=0, num_newaxis=missing) if missing else arg
    return make("layout_transform", full, src_layout=answer.layout, dst_layout=answer.source)


@_sinks("nn.bias_add", "nn.prelu", "nn.softmax", "nn.log_softmax", "qnn.quantize", "qnn.dequantize", "qnn.requantize")
def _with_axis(call: Call, data: Laid, types: TypedRewrite) -> Expr | None:
    attrs = call.attrs.with_(axis=data.axis(call.attrs.axis))
    return data.back(Call(call.op, [data.value, *call.args[1:]], attrs, span=call.span))


@_sinks("nn.batch_norm")
def _batch_norm(call: Call, data: Laid, types: TypedRewrite) -> Expr | None:
    attrs = call.attrs.with_(axis=data.axis(call.attrs.axis))
    result = Call(call.op, [data.value, *call.args[1:]], attrs, span=call.span)
    return Tuple([data.back(TupleGetItem(result, 0)), TupleGetItem(result, 1), TupleGetItem(result, 2)])


@_sinks(
    *[
        f"nn.{prefix}{kind}_pool{rank}d"
        for prefix in ("", "global_", "adaptive_")
        for kind in ("max", "avg")
        for rank in (1, 2, 3)
    ],
    *["image.resize1d", "image.resize2d", "image.resize3d", "nn.upsampling", "nn.upsampling3d"],
    *["nn.depth_to_space", "nn.space_to_depth"],
)
def _with_layout(call: Call, data: Laid, types: TypedRewrite) -> Expr | None:
    if call.attrs.layout != data.layout or (
        "out_layout" in call.attrs and call.attrs.out_layout not in ("", data.layout)
    ):
        return None
    return data.back(Call(call.op, [data.value], call.attrs.with_(layout=data.source), span=call.span))


@_sinks("sum", "mean", "max", "min", "prod", "all", "any")
def _reduction(call: Call, data: Laid, types: TypedRewrite) -> Expr | None:
    rank = len(data.layout)
    given = call.attrs.axis
    named = range(rank) if given in (None, ()) else [given] if isinstance(given, int) else given
    axes = {axis % rank for axis in named}
    if call.attrs.exclude:
        axes = set(range(rank)) - axes
    attrs = call.attrs.with_(axis=tuple(sorted(data.axis(axis) for axis in axes)), exclude=False)
    if not axes:
        return None
    result = Call(call.op, [data.value], attrs, span=call.span)
    if call.attrs.keepdims:
        return data.back(result)
    left = [letter for axis, letter in enumerate(data.layout) if axis not in axes]
    there = [letter for letter in data.source if letter in left]
    return result if left == there else make("transpose", result, axes=tuple(there.index(letter) for letter in left))


@_sinks("nn.pad")
def _pad(call: Call, data: Laid, types: TypedRewrite) -> Expr | None:
    widths = tuple(call.attrs.pad_width[data.layout.index(letter)] for letter in data.source)
    return data.back(Call(call.op, [data.value, call.args[1]], call.attrs.with_(pad_width=widths), span=call.span))


@_sinks("strided_slice")
def _slice(call: Call, data: Laid, types: TypedRewrite) -> Expr | None:
    axes = range(len(call.attrs.begin)) if call.attrs.axes is None else call.attrs.axes
    attrs = call.attrs.with_(axes=tuple(data.axis(axis) for axis in axes))
    return data.back(Call(call.op, [data.value], attrs, span=call.span))


@_sinks("split")
def _split(call: Call, data: Laid, types: TypedRewrite) -> Expr | None:
    result = Call(call.op, [data.value], call.attrs.with_(axis=data.axis(call.attrs.axis)), span=call.span)
    of = types.type_of(call)
    assert isinstance(of, TupleType)
    return Tuple([data.back(TupleGetItem(result, k)) for k in range(len(of.fields))])


def _concatenate(call: Call) -> Expr | None:
    parts = call.args[0]
    if not isinstance(parts, Tuple):
        return None
    result = [laid(field) for field in parts.fields]
    first = result[0]
    if first is None or not first.is_permuted or not all(one is not None and one.same(first) for one in result):
        return None
    joined = Tuple([one.value for one in result if one is not None])
    return first.back(Call(call.op, [joined], call.attrs.with_(axis=first.axis(call.attrs.axis)), span=call.span))
