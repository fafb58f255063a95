"""quantize: after training, from samples: which layers, how far their numbers reach, and the graph of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext
from loopwright.ir.passes import Sequential
from loopwright.relay.build_module import bind_params_by_name, require_graph
from loopwright.relay.built import Params
from loopwright.relay.expr import Expr
from loopwright.relay.graph_functions import graph_function
from loopwright.relay.quantize.calibrate import Dataset, count_numbers, samples_of
from loopwright.relay.quantize.config import QConfig, current_qconfig
from loopwright.relay.quantize.insert import Layer, insert, is_never_negative, layers_of
from loopwright.relay.transform.precision.integer_products import IntegerProducts
from loopwright.relay.transform.simplify.canonicalize_ops import CanonicalizeOps
from loopwright.relay.transform.simplify.fold_constant import FoldConstant
from loopwright.relay.transform.simplify.fold_explicit_padding import FoldExplicitPadding
from loopwright.relay.transform.simplify.fold_scale_axis import FoldScaleAxis
from loopwright.relay.transform.simplify.simplify_inference import SimplifyInference
from loopwright.relay.transform.types.dynamic_to_static import DynamicToStatic
from loopwright.relay.transform.types.infer_type import InferType


def quantize(
    mod: IRModule,
    params: Params | None = None,
    dataset: Dataset | None = None,
) -> IRModule:
    """The module with its convolutions and dense layers on bytes, as `qconfig` says.

    `dataset` are samples (a dict of arrays by the names of inputs, or the arrays in order), or a function that gives
    them; where the settings ask for samples and there are none, seeded random ones are drawn. `params` become
    constants. What comes back is a graph of real numbers with quantize and dequantize in it, of which `relay.build`
    makes integer kernels; with `do_simulation` products stay products of real numbers, rounded to those of bytes.
    """
    config = current_qconfig()
    ready = prerequisite_optimize(mod, params)
    main = graph_function(ready)
    layers = layers_of(main, config)
    samples = samples_of(main.params, dataset) if config.is_calibrated else []
    scales = _scales(ready, layers, samples, config)
    result = insert(ready, layers, scales, config)
    if config.do_simulation:
        return result
    # Written down here already: no other pass may part a product from its dequantizes.
    return InferType()(IntegerProducts()(result))


def prerequisite_optimize(mod: IRModule, params: Params | None = None) -> IRModule:
    """The module with parameters bound, and with all that is folded into weights before these are rounded."""
    require_graph(mod)
    bound = mod.copy()
    bound["main"] = bind_params_by_name(graph_function(bound), params or {})  # type: ignore[assignment]
    passes = Sequential(
        [
            DynamicToStatic(),
            SimplifyInference(),
            FoldExplicitPadding(),
            FoldConstant(),
            FoldScaleAxis(),
            CanonicalizeOps(),
            FoldConstant(),
        ],
        name="relay.quantize",
    )
    with PassContext(opt_level=3):
        return passes(InferType()(bound))


def _scales(
    mod: IRModule, layers: list[Layer], samples: Sequence[Sequence[np.ndarray]], config: QConfig
) -> dict[Expr, tuple[float, str]]:
    """The step and the type of each tensor that the layers read."""
    wanted = list(dict.fromkeys(layer.data for layer in layers))
    types = ["uint8" if is_never_negative(data) else "int8" for data in wanted]
    tops = [2 ** (config.nbit_input - (dtype == "int8")) - 1 for dtype in types]
    if config.is_calibrated:
        found = count_numbers(mod, wanted, samples)
        reaches = [
            seen.reach(config.calibrate_mode, config.percentile, top + 1) for seen, top in zip(found, tops, strict=True)
        ]
    else:
        reaches = [config.global_scale] * len(wanted)
    rows = zip(wanted, types, tops, reaches, strict=True)
    return {data: (max(reach / top, 1e-30), dtype) for data, dtype, top, reach in rows}
