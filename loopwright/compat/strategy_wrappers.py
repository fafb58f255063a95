"""relay.op.strategy: functions of topi as implementations of operators, as strategies of scripts offer them.

    strategy.add_implementation(
        wrap_compute_conv2d(topi.nn.conv2d_nchw), wrap_topi_schedule(topi.generic.schedule_conv2d_nchw), "conv2d", 10)

`relay/op/strategies.py` is what chooses among them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Compute = Callable[..., Any]


def wrap_topi_schedule(topi_schedule: Callable[..., Any]) -> Callable[..., Any]:
    """A schedule of tensors, as one of attributes, tensors and a target."""

    def schedule(attrs: Any, outs: Sequence[Any], target: Any) -> Any:
        with target:
            return topi_schedule(outs)

    # Those of topi apply our rules, which is what happens anyway.
    schedule.by_rule = getattr(topi_schedule, "__module__", "").startswith("loopwright.topi")  # type: ignore[attr-defined]
    return schedule


def naive_schedule(attrs: Any, outs: Sequence[Any], target: Any) -> Any:
    """Stages one after another, in plain loops."""
    from loopwright import te

    return te.create_schedule([out.op for out in outs])


naive_schedule.by_rule = True  # type: ignore[attr-defined]


def wrap_compute_conv2d(
    topi_compute: Compute,
    *,
    need_data_layout: bool = False,
    need_kernel_layout: bool = False,
    need_out_layout: bool = False,
    has_groups: bool = False,
    **ignored: object,
) -> Compute:
    """A convolution of data, weight, strides, padding, dilation (, groups) (, layouts) and the type of the result."""

    def compute(attrs: Any, inputs: Sequence[Any], out_type: Any) -> list[Any]:
        arguments = [*inputs[:2], attrs.strides, attrs.padding, attrs.dilation]
        arguments += [attrs.groups] if has_groups else []
        arguments += [attrs.data_layout] if need_data_layout else []
        arguments += [attrs.kernel_layout] if need_kernel_layout else []
        arguments += [attrs.out_layout] if need_out_layout else []
        return [topi_compute(*arguments, attrs.out_dtype or str(inputs[0].dtype))]

    return compute


def wrap_compute_dense(topi_compute: Compute, **ignored: object) -> Compute:
    """A dense layer of data, weight, no bias, and the type of the result."""

    def compute(attrs: Any, inputs: Sequence[Any], out_type: Any) -> list[Any]:
        return [topi_compute(*inputs[:2], None, attrs.out_dtype or str(inputs[0].dtype))]

    return compute


def wrap_compute_batch_matmul(topi_compute: Compute, *, need_out_dtype: bool = False, **ignored: object) -> Compute:
    """A batch of matrix products: of both inputs, the shape of the result (, its type), and what is transposed."""

    def compute(attrs: Any, inputs: Sequence[Any], out_type: Any) -> list[Any]:
        arguments: list[Any] = [*inputs[:2], out_type.shape]
        if need_out_dtype:
            arguments += [attrs.out_dtype or str(inputs[0].dtype), attrs.transpose_a, attrs.transpose_b]
        return [topi_compute(*arguments)]

    return compute


def wrap_compute_softmax(topi_compute: Compute) -> Compute:
    """A function of data and axis."""

    def compute(attrs: Any, inputs: Sequence[Any], out_type: Any) -> list[Any]:
        return [topi_compute(inputs[0], attrs.axis)]

    return compute
