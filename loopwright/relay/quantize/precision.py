"""precision: a float32 model in a smaller type, as `--precision` and `lw.compile(precision=…)` make it.

    small = in_precision(mod, "bfloat16")
    small = in_precision(mod, "int8", dataset=samples)

Inputs and results keep their types: what is narrow is inside.
"""

from __future__ import annotations

from typing import Final

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext
from loopwright.relay.built import Params
from loopwright.relay.quantize.calibrate import Dataset
from loopwright.relay.quantize.config import qconfig
from loopwright.relay.quantize.quantize import prerequisite_optimize, quantize
from loopwright.relay.transform.precision.to_mixed_precision import ToMixedPrecision
from loopwright.runtime.errors import LoopwrightError

PRECISIONS: Final = ("float32", "float16", "bfloat16", "int8")
# What sums of products have: bfloat16 has 8 bits, too few to add many, and its instructions add in float32.
_ACCUMULATES: Final = {"float16": "float16", "bfloat16": "float32"}


class UnknownPrecision(LoopwrightError, ValueError):
    """A model is compiled in float32, float16, bfloat16 or int8, and something else was asked for.

    For example:

        from loopwright import relay

        x = relay.var("x", shape=(1, 4))
        relay.quantize.in_precision(relay.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))), "int3")
    """

    code = "LW1226"

    def __init__(self, given: object) -> None:
        super().__init__(
            f"unknown precision {given!r}", hint=f"there are {', '.join(PRECISIONS)}", fields={"given": str(given)}
        )


def require_precision(precision: object) -> None:
    """Refuse what is no precision."""
    if precision not in PRECISIONS:
        raise UnknownPrecision(precision)


def in_precision(
    mod: IRModule,
    precision: str,
    params: Params | None = None,
    dataset: Dataset | None = None,
    calibrate_mode: str = "min_max",
) -> IRModule:
    """The module in a precision. int8 is calibrated with the samples of `dataset`, or with seeded random ones.

    All convolutions and dense layers are quantized, weights with a scale for each channel; for other settings there is
    `relay.quantize.quantize`.
    """
    require_precision(precision)
    if precision == "float32":
        return mod
    if precision == "int8":
        settings = qconfig(
            calibrate_mode=calibrate_mode, weight_scale="channel", skip_conv_layers=[], skip_dense_layer=False
        )
        with settings:
            return quantize(mod, params, dataset)
    # Factors are folded into weights while these are float32.
    ready = prerequisite_optimize(mod, params)
    with PassContext(opt_level=3, config={"relay.ToMixedPrecision.keep_orig_output_dtype": True}):
        return ToMixedPrecision(precision, missing_op_mode=2, accumulates=_ACCUMULATES[precision])(ready)
