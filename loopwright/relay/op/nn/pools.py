"""Pooling in graphs: by windows, over everything, to a given size; and the gradients of the first kind.

A mean counts the cells of the padding only where `count_include_pad` says so: here it does not unless told to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from loopwright import te, topi
from loopwright.ir.types import Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Call, Expr, const
from loopwright.relay.op.from_topi import type_of_compute
from loopwright.relay.op.nn.convolutions import each, windows
from loopwright.relay.op.registry import Kind, Operator, make, register
from loopwright.relay.op.sizes import tensor_type_of
from loopwright.relay.types import TensorType
from loopwright.topi.parts.pad_amounts import get_pad_tuple_generic
from loopwright.topi.registry import OPERATORS


class Pooling(Operator):
    """What all of them share: the letters of their windows, max or avg, and a layout of the result."""

    spatial: ClassVar[str]
    pool_type: ClassVar[str]

    def infer(self, data: TensorType) -> Type:
        return type_of_compute(self, data)

    def call_topi(self, *inputs: Any) -> tuple[str, list[object]]:
        """The function of topi, and its arguments."""
        raise NotImplementedError

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        name, arguments = self.call_topi(*inputs)
        out = getattr(topi.nn, name)(*arguments)
        layout, wanted = str(self.layout), str(self.out_layout)  # type: ignore[attr-defined]
        return topi.layout_transform(out, layout, wanted) if wanted and wanted != layout else out

    def reference(self, *inputs: np.ndarray) -> np.ndarray:
        name, arguments = self.call_topi(*inputs)
        letters = [axis for axis in str(self.layout) if axis.isalpha()]  # type: ignore[attr-defined]
        out = OPERATORS[f"nn.{name}"].reference(*[_letters(one) for one in arguments])
        wanted = [axis for axis in str(self.out_layout) if axis.isalpha()]  # type: ignore[attr-defined]
        return out.transpose([letters.index(axis) for axis in wanted]) if wanted and wanted != letters else out


def _letters(argument: object) -> object:
    """Layouts without the sizes of their blocks, which numpy does not need."""
    return "".join(axis for axis in argument if not axis.isdigit()) if isinstance(argument, str) else argument


class _Windows(Pooling):
    pool_size: int | Sequence[int]
    strides: int | Sequence[int]
    dilation: int | Sequence[int]
    padding: int | Sequence[int]
    layout: str
    out_layout: str = ""
    ceil_mode: bool = False

    def call_topi(self, data: te.Tensor | np.ndarray) -> tuple[str, list[object]]:
        count = len(self.spatial)
        kernel = each(self.pool_size, count)
        before, after = get_pad_tuple_generic(self.padding, kernel)
        window = kernel, each(self.strides, count), each(self.dilation, count), [*before, *after]
        counted = getattr(self, "count_include_pad", True)
        return f"pool{count}d", [data, *window, self.pool_type, self.ceil_mode, self.layout, counted]

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        attributes = {name: value for name, value in self.items() if name != "dilation"}
        return [make(f"{self.op_name}_grad", grad, call.args[0], **attributes)]


class _Global(Pooling):
    layout: str
    out_layout: str = ""

    def call_topi(self, data: te.Tensor | np.ndarray) -> tuple[str, list[object]]:
        return "global_pool", [data, self.pool_type, self.layout]

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        """That of a mean is dealt out in equal parts."""
        if self.pool_type != "avg" or self.out_layout not in ("", self.layout):
            raise TypeMismatch(f"{self.op_name} has no gradient")
        shape: Sequence[Any] = tensor_type_of(call.args[0]).shape
        sizes = zip([axis for axis in self.layout if axis.isalpha()], shape, strict=True)
        count = int(np.prod([int(size) for axis, size in sizes if axis in self.spatial]))
        spread = make("broadcast_to_like", grad, call.args[0])
        return [make("divide", spread, make("full_like", spread, const(float(count))))]


class _Adaptive(Pooling):
    output_size: int | Sequence[int] | None = None
    layout: str
    out_layout: str = ""

    def call_topi(self, data: te.Tensor | np.ndarray) -> tuple[str, list[object]]:
        letters = [axis for axis in self.layout if axis.isalpha()]
        own = [data.shape[letters.index(axis)] for axis in self.spatial]
        sizes = own if self.output_size in (None, ()) else each(self.output_size, len(self.spatial))
        name = {1: "adaptive_pool1d", 2: "adaptive_pool", 3: "adaptive_pool3d"}[len(self.spatial)]
        return name, [data, sizes, self.pool_type, self.layout]


def _register_all() -> None:
    for spatial in ("W", "HW", "DHW"):
        count, layout = len(spatial), "NC" + spatial
        ones, zeros = (1,) * count, (0,) * count
        for kind, words in (("max", "The greatest value"), ("avg", "The mean")):
            shared = {"spatial": spatial, "pool_type": kind, "layout": layout}
            window: dict[str, object] = {
                **shared,
                "normal": windows(count),
                "pool_size": ones,
                "strides": ones,
                "dilation": ones,
                "padding": zeros,
            }
            if kind == "avg":
                window |= {"__annotations__": {"count_include_pad": "bool"}, "count_include_pad": False}
            result = (
                ("", _Windows, window, f"{words} of each window along {spatial}."),
                ("global_", _Global, shared, f"{words} along all of {spatial}, which stay as 1."),
                ("adaptive_", _Adaptive, shared, f"{words} of windows that give `output_size`."),
            )
            for prefix, base, fields, doc in result:
                name = f"{prefix}{kind}_pool{count}d"
                title = name.title().replace("_", "")
                register(f"nn.{name}", Kind.OUT_FUSABLE)(type(title, (base,), {**fields, "__doc__": doc}))


_register_all()


class _PoolGradient(Pooling):
    spatial = "HW"
    normal = windows(2)

    pool_size: int | Sequence[int] = (1, 1)
    strides: int | Sequence[int] = (1, 1)
    padding: int | Sequence[int] = (0, 0)
    layout: str = "NCHW"
    out_layout: str = ""
    ceil_mode: bool = False

    def infer(self, out_grad: TensorType, data: TensorType) -> Type:  # type: ignore[override]
        return type_of_compute(self, out_grad, data)

    def call_topi(self, out_grad: te.Tensor | np.ndarray, data: te.Tensor | np.ndarray) -> tuple[str, list[object]]:
        kernel = each(self.pool_size, 2)
        before, after = get_pad_tuple_generic(self.padding, kernel)
        window = kernel, each(self.strides, 2), [*before, *after]
        counted = getattr(self, "count_include_pad", True)
        return "pool_grad", [out_grad, data, *window, self.pool_type, self.ceil_mode, self.layout, counted]


@register("nn.max_pool2d_grad", Kind.OUT_FUSABLE)
class MaxPool2dGrad(_PoolGradient):
    """The gradient of nn.max_pool2d: each goes to the first cell that has the maximum of its window."""

    pool_type = "max"


@register("nn.avg_pool2d_grad", Kind.OUT_FUSABLE)
class AvgPool2dGrad(_PoolGradient):
    """The gradient of nn.avg_pool2d: each goes in equal parts to the cells of its window."""

    pool_type = "avg"
    count_include_pad: bool = False
