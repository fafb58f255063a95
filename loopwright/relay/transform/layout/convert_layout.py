"""ConvertLayout: operators compute in the layouts that the user wants.

    nn.relu(nn.conv2d(%x, %w))    →    %0 = nn.conv2d(layout_transform(%x, "NCHW", "NHWC"),
                                                      layout_transform(%w, "OIHW", "HWIO"), data_layout="NHWC", …);
                                       layout_transform(nn.relu(%0), "NHWC", "NCHW")

    ConvertLayout({"nn.conv2d": ["NHWC", "default"], "nn.max_pool2d": ["NHWC"]})

Layouts are listed by operator: of the data, then of the weight; "default" is that which goes with the data's. Other
operators follow where they can (`layouts.py`), so that between two convolutions nothing is moved. `LayoutConfig`
leaves some convolutions as they are, by their number.

An operator with layouts in attributes (`data_layout` and `kernel_layout`, or `layout`) is converted by those. One that
needs more says so itself: `convert_layout(self, call, desired, brought)` of its class returns an expression that equals
the call, computed in the layouts `desired`, or None; `brought(value, source, layout)` brings a tensor into a layout.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import Final

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Expr, Function
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.layout.layouts import brought, sink
from loopwright.relay.transform.typed_rewrite import TypedRewrite
from loopwright.relay.types import same_type
from loopwright.runtime.errors import LoopwrightError, user_stack_level

# The layout of a weight that goes with one of the data; depthwise weights have their channels first of the two.
_WEIGHTS: Final = {
    "NCW": "OIW",
    "NWC": "WIO",
    "NCHW": "OIHW",
    "NHWC": "HWIO",
    "NCDHW": "OIDHW",
    "NDHWC": "DHWIO",
}

_skipped: ContextVar[tuple[int, ...]] = ContextVar("loopwright_layout_skip", default=())


class LayoutConfig:
    """`with LayoutConfig(skip_layers=[0]):` ConvertLayout leaves the first convolution as it is."""

    def __init__(self, skip_layers: Sequence[int] | None = None) -> None:
        self.skip_layers = tuple(skip_layers or ())

    def __enter__(self) -> LayoutConfig:
        self._before = _skipped.set(self.skip_layers)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _skipped.reset(self._before)


class BadLayouts(LoopwrightError, ValueError, TypeError):
    """ConvertLayout was given something else than layouts by operator.

    For example:

        from loopwright import relay

        relay.transform.ConvertLayout({"nn.conv2d": "NHWC"})
    """

    code = "LW1223"

    def __init__(self, given: object) -> None:
        super().__init__(
            f"ConvertLayout takes a list of layouts for each operator, and not {given!r:.80}",
            hint='write {"nn.conv2d": ["NHWC", "default"]}: the layout of the data, then that of the weight',
        )


class _Convert(TypedRewrite):
    def __init__(self, mod: IRModule, wanted: Mapping[str, Sequence[str]], skip: Sequence[int]) -> None:
        super().__init__(mod)
        self.wanted = wanted
        self.skip = skip
        self.layers = 0

    def rewrite(self, call: Call) -> Expr:
        desired = self.wanted.get(call.op.name)
        if "kernel_layout" in call.attrs:
            self.layers += 1
            if self.layers - 1 in self.skip:
                return call
        if desired is not None:
            result = self._converted(call, list(desired))
            if result is not None:
                return result
        answer = sink(call, self)
        return call if answer is None else answer

    def _converted(self, call: Call, desired: list[str]) -> Expr | None:
        own = call.attrs.convert_layout
        if own is not None:
            result = own(call, desired, brought)
        elif "kernel_layout" in call.attrs:
            result = self._product(call, desired)
        elif "layout" in call.attrs:
            result = self._data_alone(call, desired[0])
        else:
            message = f"ConvertLayout: {call.op.name} has no layouts; it stays as it is"
            warnings.warn(message, UserWarning, stacklevel=user_stack_level())
            return None
        if result is None:
            return None
        try:
            answer = self.type_of(result)
        except LoopwrightError:
            return None  # the operator does not take these layouts
        return result if same_type(answer, self.type_of(call)) else None

    def _product(self, call: Call, desired: list[str]) -> Expr | None:
        attrs = call.attrs
        layout = desired[0] if desired[0] != "default" else attrs.data_layout
        kernel: str | None = desired[1] if len(desired) > 1 else "default"
        if kernel == "default":
            kernel = self._weight_layout(call, layout)
        if kernel is None or (layout == attrs.data_layout and kernel == attrs.kernel_layout):
            return None
        if attrs.out_layout not in ("", attrs.data_layout):
            return None
        data, weight, *rest = call.args
        args = [brought(data, attrs.data_layout, layout), brought(weight, attrs.kernel_layout, kernel), *rest]
        made = Call(call.op, args, attrs.with_(data_layout=layout, kernel_layout=kernel, out_layout=""), span=call.span)
        return brought(made, layout, attrs.data_layout)

    def _weight_layout(self, call: Call, layout: str) -> str | None:
        plain = _WEIGHTS.get(layout)
        if plain is None:
            return None
        if "transpose" in call.op.name:
            plain = plain.replace("OI", "IO") if "OI" in plain else plain.replace("IO", "OI")
            return plain
        depthwise = getattr(call.attrs, "is_depthwise", None)
        types = [self.tensor_type(arg) for arg in call.args[:2]]
        if depthwise is not None and None not in types and depthwise(*types):
            return plain.replace("IO", "OI")
        return plain

    def _data_alone(self, call: Call, layout: str) -> Expr | None:
        own = call.attrs.layout
        if layout in ("default", own) or ("out_layout" in call.attrs and call.attrs.out_layout not in ("", own)):
            return None
        args = [brought(call.args[0], own, layout), *call.args[1:]]
        return brought(Call(call.op, args, call.attrs.with_(layout=layout), span=call.span), layout, own)


def ConvertLayout(desired_layouts: Mapping[str, Sequence[str]]) -> GraphPass:
    """Have the operators named compute in the layouts listed, and others follow."""
    if not isinstance(desired_layouts, Mapping):
        raise BadLayouts(desired_layouts)
    for layouts in desired_layouts.values():
        if isinstance(layouts, str) or not layouts or not all(isinstance(layout, str) for layout in layouts):
            raise BadLayouts(desired_layouts)

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _Convert(mod, desired_layouts, _skipped.get()).apply(function)

    return GraphPass(change, PassInfo(3, "ConvertLayout"))
