"""FoldExplicitPadding: cells around the data become the padding of what reads it.

    %0 = nn.pad(%x, 0, pad_width=[(0, 0), (0, 0), (1, 1), (1, 1)]);    →    nn.conv2d(%x, %w, padding=[1, 1, 1, 1])
    nn.conv2d(%0, %w)

The cells must be what the operator takes its own padding for: 0 for convolutions and means, the zero point of a
quantized convolution, the least number for a maximum. A mean counts such cells, so `count_include_pad` is switched on;
where it had padding of its own that was not counted, nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Constant, Expr, Function
from loopwright.relay.op.nn.convolutions import each
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.simplify.rules.rule import splat
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call
from loopwright.topi.parts.pad_amounts import get_pad_tuple_generic

# Operator → the letters of its windows.
_CONVOLUTIONS: Final = {
    "nn.conv1d": "W",
    "nn.conv2d": "HW",
    "nn.conv3d": "DHW",
    "nn.contrib_conv2d_nchwc": "HW",
    "qnn.conv2d": "HW",
}
_POOLS: Final = {f"nn.{kind}_pool{len(letters)}d": letters for kind in ("max", "avg") for letters in ("W", "HW", "DHW")}


class _FoldPadding(TypedRewrite):
    def rewrite(self, call: Call) -> Expr:
        letters = _CONVOLUTIONS.get(call.op.name) or _POOLS.get(call.op.name)
        if letters is None or not is_call(call.args[0], "nn.pad"):
            return call
        pad = call.args[0]
        layout = str(call.attrs.data_layout if call.op.name in _CONVOLUTIONS else call.attrs.layout)
        axes = [letter for letter in layout if letter.isalpha()]
        widths = dict(zip(axes, pad.attrs.pad_width, strict=False))
        if len(axes) != len(pad.attrs.pad_width) or any(
            tuple(width) != (0, 0) for letter, width in widths.items() if letter not in letters
        ):
            return call
        if not all(_adds(widths[letter]) for letter in letters) or isinstance(call.attrs.padding, str):
            return call
        if pad.attrs.pad_mode != "constant" or not self._is_own_padding(call, pad):
            return call
        before, after = get_pad_tuple_generic(call.attrs.padding, [1] * len(letters))
        changes: dict[str, object] = {
            "padding": (
                *[int(own) + int(widths[letter][0]) for own, letter in zip(before, letters, strict=True)],
                *[int(own) + int(widths[letter][1]) for own, letter in zip(after, letters, strict=True)],
            )
        }
        if "avg" in call.op.name:
            if not call.attrs.count_include_pad and any((*before, *after)):
                return call
            changes["count_include_pad"] = True
        return Call(call.op, [pad.args[0], *call.args[1:]], call.attrs.with_(**changes))

    def _is_own_padding(self, call: Call, pad: Call) -> bool:
        """Whether the cells are what the operator would put there itself."""
        value = splat(pad.args[1])
        if value is None or not isinstance(pad.args[1], Constant):
            return False
        if call.op.name == "qnn.conv2d":
            zero = splat(call.args[2])
            return zero is not None and bool(value == zero)
        if "max" not in call.op.name:
            return bool(value == 0)
        of = self.tensor_type(pad)
        if of is None:
            return False
        if value == of.dtype.min_value():
            return True
        # Of a window that lies in the border alone the maximum is the least number, and not minus infinity.
        return bool(value == -np.inf) and self._has_inner_cells(call, pad)

    def _has_inner_cells(self, call: Call, pad: Call) -> bool:
        """Whether the border is narrower than every window, so that none lies in it alone."""
        count = len(_POOLS[call.op.name])
        window, spread = each(call.attrs.pool_size, count), each(call.attrs.dilation, count)
        widest = max(max(width) for width in pad.attrs.pad_width)
        before, after = get_pad_tuple_generic(call.attrs.padding, [1] * count)
        return all(step == 1 for step in spread) and widest + max(*before, *after) < min(window)


def _adds(width: Iterable[object]) -> bool:
    """Whether a known number of cells is added, and none cut off."""
    return all(isinstance(side, int) and side >= 0 for side in width)


def FoldExplicitPadding() -> GraphPass:
    """Let convolutions and pools pad their data themselves."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _FoldPadding(mod).apply(function)

    return GraphPass(change, PassInfo(0, "FoldExplicitPadding"))
