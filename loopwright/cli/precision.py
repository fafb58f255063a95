"""precision: samples for a model in a smaller type, and what that type costs and gains.

    loopwright compile model.onnx --precision int8 --calibrate samples.npz

A file of samples has an array for each input: that input once, several of them along its first axis, or along one axis
more. The model is compiled in float32 too, and both are run on the samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

import numpy as np

from loopwright.cli.compiled_model import CompiledModel, Options, compile_model
from loopwright.cli.model_files import ReadModel
from loopwright.cli.run_model import read_arrays
from loopwright.display.quantities import time_text
from loopwright.relay.quantize.accuracy import Accuracy, compare
from loopwright.relay.quantize.calibrate import BadSamples, samples_of
from loopwright.relay.types import TensorType
from loopwright.runtime.json_text import JsonObject

Sample = Mapping[str, np.ndarray]
_TIMED: Final = 5  # runs of each model, of which the median counts


@dataclass(frozen=True)
class Measured:
    """A model in a smaller type beside itself in float32."""

    accuracy: Accuracy
    seconds: float  # of a run
    float32_seconds: float
    source: str  # of the samples

    def to_json(self) -> JsonObject:
        """For programs."""
        return {
            **self.accuracy.to_json(),
            "source": self.source,
            "run_seconds": self.seconds,
            "float32_run_seconds": self.float32_seconds,
        }

    def __str__(self) -> str:
        gain = self.float32_seconds / max(self.seconds, 1e-9)
        return (
            f"{time_text(self.seconds)} a run, float32 {time_text(self.float32_seconds)}: {gain:.2f} times as fast\n"
            f"  against float32, {self.source}: {self.accuracy}"
        )


def samples_for(model: ReadModel, path: str | None) -> list[Sample]:
    """The samples of a file, or seeded random ones."""
    main = model.mod["main"]
    inputs = {one.name_hint: one.type_annotation for one in main.params if one.name_hint not in model.params}
    if path is None:
        drawn = samples_of([one for one in main.params if one.name_hint in inputs], None)
        return [dict(zip(inputs, arrays, strict=True)) for arrays in drawn]
    given = read_arrays(path, list(inputs))
    for name in given:
        if name not in inputs:
            hint = f"its inputs are {', '.join(inputs) or 'none'}"
            raise BadSamples(f"{path} has an array {name!r}, and the model has no input of that name", hint)
    rows = {}
    for name, of in inputs.items():
        if name not in given:
            raise BadSamples(f"{path} has no {name!r}")
        rows[name] = _parted(path, name, given[name], of)
    count = max((len(parts) for parts in rows.values()), default=1)
    for name, parts in rows.items():
        if len(parts) not in (1, count):
            raise BadSamples(f"{path} has {len(parts)} samples of {name!r}, and {count} of another input")
    if any(not parts for parts in rows.values()):
        raise BadSamples(f"{path} has none")
    return [{name: parts[k % len(parts)] for name, parts in rows.items()} for k in range(count)]


def _parted(path: str, name: str, array: np.ndarray, of: object) -> list[np.ndarray]:
    """The samples of one input."""
    if not isinstance(of, TensorType):
        return [array]
    rank = len(of.shape)
    first = of.shape[0] if rank else None
    if array.ndim == rank + 1:
        return list(array)
    if array.ndim != rank:
        raise BadSamples(f"{path}: {name!r} has shape {array.shape}, expected {of}, or several of them")
    if not isinstance(first, int) or first == 0 or array.shape[0] % first:
        return [array]
    return [array[at : at + first] for at in range(0, array.shape[0], first)]


def measure(result: CompiledModel, samples: Sequence[Sample], source: str | None) -> Measured | None:
    """How the model does beside itself in float32; None where its code does not run on this machine."""
    from loopwright.codegen.llvm.load_object import is_runnable

    if not is_runnable(result.built.compiled.cpu):
        return None
    plain: Options = replace(result.options, precision="float32", samples=None)
    models = [result.built, compile_model(result.model, plain).built]
    arrays = [_ordered(result, sample) for sample in samples]
    answer = [[[np.asarray(one) for one in model.run(each)] for each in arrays] for model in models]
    times: list[list[float]] = [[], []]
    for _ in range(_TIMED):  # in turns: what else the machine does meets both
        for model, spent in zip(models, times, strict=True):
            start = perf_counter()
            model.run(arrays[0])
            spent.append(perf_counter() - start)
    where = "random samples" if source is None else Path(source).name
    accuracy = compare(answer[1], answer[0], _rows(result, samples[0]))
    return Measured(accuracy, median(times[0]), median(times[1]), where)


def _rows(result: CompiledModel, sample: Sample) -> int | None:
    """How many rows a sample has, where the model leaves that open."""
    for port in result.interface.inputs:
        if port.shape and not isinstance(port.shape[0], int):
            return int(sample[port.name].shape[0])
    return None


def _ordered(result: CompiledModel, sample: Sample) -> list[np.ndarray]:
    """The arrays of a sample in the order and the types of the inputs."""
    ports = result.interface.inputs
    return [np.ascontiguousarray(sample[port.name].astype(port.numpy(), copy=False)) for port in ports]
