"""Changes of a graph before it is compiled: the layouts of convolutions, mixed precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from loopwright import relay, transform
from loopwright.cli.compiled_model import BadOption, read_layouts
from loopwright.compat.tvmc.model import TVMCException
from loopwright.ir.pass_context import PassContext
from loopwright.relay.transform.precision.to_mixed_precision import CONVERSIONS, Precision

MIXED_OPERATORS: Final = ("nn.conv2d", "nn.dense")


def apply_graph_transforms(mod: Any, args: Mapping[str, Any], params: object = None) -> Any:
    """The graph with all changes that `args` asks for."""
    if args.get("mixed_precision"):
        types = args.get("mixed_precision_calculation_type"), args.get("mixed_precision_acc_type")
        mod = convert_precision(mod, args.get("mixed_precision_ops"), *[one or "float16" for one in types])
    return convert_layouts(mod, args.get("desired_layout"), args.get("desired_layout_ops"))


def convert_layouts(mod: Any, layouts: str | Sequence[str] | None, operators: Sequence[str] | None = None) -> Any:
    """The graph with these layouts, `NHWC` or `NHWC:HWIO`, one for all the operators or one for each."""
    if not layouts:
        return mod
    try:
        wanted = read_layouts([layouts] if isinstance(layouts, str) else list(layouts), list(operators or ()))
    except BadOption as error:
        raise TVMCException(str(error)) from None
    passes = transform.Sequential([relay.transform.ConvertLayout(wanted), relay.transform.FoldConstant()])
    with PassContext(opt_level=3, instruments=list(PassContext.current().instruments)):
        return passes(mod)


def convert_precision(mod: Any, operators: Sequence[str] | None, calculation: str, accumulation: str) -> Any:
    """The graph with convolutions and matmuls in another type, or those operators that are named."""
    saved = dict(CONVERSIONS)
    for name in operators or MIXED_OPERATORS:
        CONVERSIONS[name] = lambda call, narrow: [Precision.ALWAYS, accumulation, calculation]
    passes = transform.Sequential(
        [relay.transform.InferType(), relay.transform.ToMixedPrecision(calculation, 2), relay.transform.InferType()]
    )
    try:
        with PassContext(opt_level=3):
            return passes(mod)
    finally:
        CONVERSIONS.clear()
        CONVERSIONS.update(saved)
