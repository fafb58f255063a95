"""Hooks of the graph compiler: what a kind of machine wants changed about an operator before it is computed.

    @topi.nn.conv2d_legalize.register("arm_cpu")
    def for_arm(attrs, inputs, types):
        return …                                    another expression, or None to leave the operator as it is

A hook is a generic function: the keys of the current target choose its body. By default all is left as it is.
`…_legalize` replaces an operator, `…_alter_layout` one whose data would better lie otherwise, and `…_infer_layout`
says which layouts a workload has: it has no default, since there is no answer without a body.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright.runtime.errors import LoopwrightError
from loopwright.target import generic_func
from loopwright.target.generic_functions import GenericFunc


class NoLayoutKnown(LoopwrightError, ValueError, RuntimeError):
    """A hook was asked for the layouts of a workload, and nothing is registered for the current target.

    For example:

        from loopwright import topi

        topi.nn.conv2d_infer_layout(("conv2d_nchw",), None)
    """

    code = "LW1141"

    def __init__(self, hook: str, workload: object) -> None:
        super().__init__(
            f"{hook}: nothing is registered for the current target, and workload {workload!r} is not known",
            hint=f"register a body: @topi.nn.{hook}.register(key of the target)",
            fields={"hook": hook},
        )


def _legalize(name: str, operator: str) -> GenericFunc:
    def leave(attrs: object, inputs: object, types: object) -> None:
        return None

    return _generic(leave, name, f"Another expression for {operator}, or None: what the target wants instead of it.")


def _alter_layout(name: str, operator: str) -> GenericFunc:
    def leave(attrs: object, inputs: object, tinfos: object, out_type: object) -> None:
        return None

    return _generic(leave, name, f"{operator} on data that lies as the target likes it, or None.")


def _infer_layout(name: str, operator: str) -> GenericFunc:
    def refuse(workload: object, cfg: object) -> None:
        raise NoLayoutKnown(name, workload)

    return _generic(refuse, name, f"The layouts of the inputs and outputs of a workload of {operator}.")


def _generic(body: Callable[..., object], name: str, doc: str) -> GenericFunc:
    body.__name__ = body.__qualname__ = name
    body.__doc__ = doc
    return generic_func(body)


conv2d_legalize: Final = _legalize("conv2d_legalize", "conv2d")
conv2d_transpose_legalize: Final = _legalize("conv2d_transpose_legalize", "conv2d_transpose")
dense_legalize: Final = _legalize("dense_legalize", "dense")
matmul_legalize: Final = _legalize("matmul_legalize", "matmul")
batch_matmul_legalize: Final = _legalize("batch_matmul_legalize", "batch_matmul")
bias_add_legalize: Final = _legalize("bias_add_legalize", "bias_add")
take_legalize: Final = _legalize("take_legalize", "take")
erf_legalize: Final = _legalize("erf_legalize", "erf")
conv2d_alter_layout: Final = _alter_layout("conv2d_alter_layout", "conv2d")
conv3d_alter_layout: Final = _alter_layout("conv3d_alter_layout", "conv3d")
dense_alter_layout: Final = _alter_layout("dense_alter_layout", "dense")
sparse_dense_alter_layout: Final = _alter_layout("sparse_dense_alter_layout", "sparse_dense")
add_alter_layout: Final = _alter_layout("add_alter_layout", "add")
qnn_conv2d_alter_layout: Final = _alter_layout("qnn_conv2d_alter_layout", "qnn.conv2d")
qnn_dense_alter_layout: Final = _alter_layout("qnn_dense_alter_layout", "qnn.dense")
qnn_add_alter_layout: Final = _alter_layout("qnn_add_alter_layout", "qnn.add")
qnn_requantize_alter_layout: Final = _alter_layout("qnn_requantize_alter_layout", "qnn.requantize")
conv2d_infer_layout: Final = _infer_layout("conv2d_infer_layout", "conv2d")
depthwise_conv2d_infer_layout: Final = _infer_layout("depthwise_conv2d_infer_layout", "depthwise_conv2d")
