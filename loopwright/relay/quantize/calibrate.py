"""calibrate: a graph is run on samples, and the numbers of some of its tensors are counted.

The graph with those tensors as its results is compiled like any other; one that cannot be is interpreted. Without
samples, random ones are drawn from a seed: good enough to try things out, not to ship a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.model.given_arrays import TensorLike
from loopwright.relay.analysis.macs import get_total_mac_number
from loopwright.relay.build_module import build
from loopwright.relay.errors import CannotCompile
from loopwright.relay.expr import Expr, Function, Tuple, Var
from loopwright.relay.graph_functions import graph_function
from loopwright.relay.interpreter import RunValue, evaluate
from loopwright.relay.quantize.ranges import Seen
from loopwright.relay.transform.types.infer_type import InferType
from loopwright.relay.types import TensorType
from loopwright.relay.visitor import post_order
from loopwright.runtime.errors import LoopwrightError

RANDOM_SAMPLES: Final = 4
_INTERPRETED: Final = 10_000_000  # multiply-adds in all, below which numpy is done before a compiler is


class BadSamples(LoopwrightError, ValueError):
    """The samples that a model is calibrated with are not what it takes: one input by name in each, for every input.

    For example:

        from loopwright import relay

        x = relay.var("x", shape=(1, 4))
        mod = relay.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
        with relay.quantize.qconfig(calibrate_mode="min_max"):
            relay.quantize.quantize(mod, dataset=[{"y": 1.0}])
    """

    code = "LW1225"

    def __init__(self, problem: str, hint: str | None = None) -> None:
        hint = hint or 'give dataset=[{"name": array}, …], an array for each input of the model'
        super().__init__(f"samples to calibrate with: {problem}", hint=hint)


# Samples: the inputs of a model by name, in order, or the only one; or a function that gives them.
Sample: TypeAlias = Mapping[str, TensorLike] | Sequence[TensorLike] | TensorLike
Dataset: TypeAlias = Iterable[Sample] | Callable[[], Iterable[Sample]]


def samples_of(params: Sequence[Var], dataset: Dataset | None) -> list[list[np.ndarray]]:
    """The arrays of each sample, in the order of the parameters; random ones where there is no dataset."""
    names = [param.name_hint for param in params]
    if dataset is None:
        random = np.random.default_rng(0)
        return [[_drawn(param, random) for param in params] for _ in range(RANDOM_SAMPLES)]
    result = []
    for sample in dataset() if callable(dataset) else dataset:
        if not isinstance(sample, Mapping):
            given: Sequence[object] = sample if isinstance(sample, (list, tuple)) else [sample]
            if len(given) != len(names):
                raise BadSamples(f"one has {len(given)} arrays, and the model {len(names)} inputs: {', '.join(names)}")
            arrays: Mapping[str, object] = dict(zip(names, given, strict=True))
        else:
            arrays = sample
        for name in names:
            if name not in arrays:
                raise BadSamples(f"one has no {name!r}, but {', '.join(map(repr, arrays)) or 'nothing'}")
        result.append([_as_taken(param, arrays[param.name_hint]) for param in params])
    if not result:
        raise BadSamples("there are none")
    return result


def _as_taken(param: Var, value: object) -> np.ndarray:
    of = param.type_annotation
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if not isinstance(of, TensorType):
        return array
    fits = array.ndim == len(of.shape) and all(
        not isinstance(size, int) or size == given for size, given in zip(of.shape, array.shape, strict=True)
    )
    if not fits:
        raise BadSamples(f"{param.name_hint!r} has the shape {array.shape}, expected {of}")
    return np.ascontiguousarray(array.astype(of.dtype.numpy(), copy=False)).reshape(array.shape)


def _drawn(param: Var, random: np.random.Generator) -> np.ndarray:
    of = param.type_annotation
    if not isinstance(of, TensorType):
        raise BadSamples(f"{param.name_hint!r} is no tensor, and random ones cannot be drawn for it")
    shape = [size if isinstance(size, int) else 1 for size in of.shape]
    if of.dtype.is_float:
        return random.standard_normal(shape).astype(of.dtype.numpy())
    return random.integers(0, 2, shape).astype(of.dtype.numpy())


def _runner(mod: IRModule, runs: int) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """What runs `main`: compiled, or interpreted, where it cannot be or compiling it would take longer."""

    def interpreted(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        return _flat(evaluate(graph_function(mod), list(arrays), mod))

    if _is_small(graph_function(mod), runs):
        return interpreted
    try:
        built = build(mod)
    except CannotCompile:
        return interpreted
    return lambda arrays: [np.asarray(one) for one in built.run(list(arrays))]


def _is_small(main: Function, runs: int) -> bool:
    types = [getattr(each, "checked_type_", None) for each in post_order(main.body)]
    sizes = [size for of in types if isinstance(of, TensorType) for size in of.shape]
    return all(isinstance(size, int) for size in sizes) and get_total_mac_number(main) * runs <= _INTERPRETED


def _flat(value: RunValue) -> list[np.ndarray]:
    if isinstance(value, (list, tuple)):
        return [one for item in value for one in _flat(item)]
    return [np.asarray(value)]


def count_numbers(mod: IRModule, wanted: Sequence[Expr], samples: Sequence[Sequence[np.ndarray]]) -> list[Seen]:
    """What numbers the `wanted` expressions of `main` have on the samples."""
    result = [Seen() for _ in wanted]
    if not wanted:
        return result
    main = graph_function(mod)
    tapped = mod.copy()
    tapped["main"] = Function(main.params, Tuple(list(wanted)), None, main.type_params, main.attrs)  # type: ignore[assignment]
    run = _runner(InferType()(tapped), len(samples))
    for sample in samples:
        for seen, values in zip(result, run(sample), strict=True):
            seen.add(values)
    return result
