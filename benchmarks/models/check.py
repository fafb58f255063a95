"""check: compiled models against float64: every launch by itself, and the outputs at the end.

    python -m benchmarks.models.check                     the light models, an encoder, a decoder
    python -m benchmarks.models.check resnet50 encoder    some of them
    python -m benchmarks.models.check squeezenet --unfused --each-pass      also unfused, and with each pass off

A launch is given what the model gave it, in float32, and its result is compared with the same operators in float64: so
an error is found where it is made, and no bound has to grow with the depth of the network. A sum of n products may be
off by (n + 8) rounding errors of the sum of their magnitudes; that sum is computed, in float64 too, from the magnitudes
of the inputs. Functions (exp, tanh, a softmax) may be off by a few units in the last place on top.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.models.light import NAMES, light_model
from benchmarks.models.transformers import decoder, encoder
from loopwright.ir.pass_context import PassContext
from loopwright.ir.types import TupleType
from loopwright.relay.expr import Call, Constant, Tuple, TupleGetItem
from loopwright.relay.op.registry import Operator
from loopwright.relay.transform.pipeline import build_passes
from loopwright.relay.visitor import post_order

EPS = 2.0**-24  # half a unit in the last place of a float32, relative


@dataclass
class Bounded:
    """A value in float64 and how far a float32 computation of it may be off."""

    value: Any
    off: Any


def as_bounded(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [as_bounded(one) for one in value]
    if isinstance(value, Bounded):
        return value
    array = np.asarray(value)
    exact = array.astype(np.float64) if array.dtype.kind == "f" else array
    return Bounded(exact, np.zeros(array.shape))


def run_bounded(attrs: Operator, inputs: Any) -> Any:
    """An operator in float64 with the error that it passes on and the one that it adds."""
    given = as_bounded(list(inputs))
    name = attrs.op_name
    values = _values(given)
    with np.errstate(all="ignore"):
        exact = attrs.reference(*values)
    if isinstance(exact, (list, tuple)):
        passed = attrs.reference(*_offs(given))
        return [Bounded(one, np.abs(off)) for one, off in zip(exact, passed, strict=True)]
    exact = np.asarray(exact)
    if exact.dtype.kind != "f":
        return Bounded(exact, np.zeros(exact.shape))
    return Bounded(exact, _off(name, attrs, given, values, exact))


def _values(given: Any) -> list[Any]:
    return [_values(one) if isinstance(one, list) else one.value for one in given]


def _offs(given: Any) -> list[Any]:
    return [
        _offs(one) if isinstance(one, list) else (one.off if np.asarray(one.value).dtype.kind == "f" else one.value)
        for one in given
    ]


_SUMS = "nn.conv2d nn.dense nn.matmul nn.batch_matmul sum mean nn.global_avg_pool2d nn.avg_pool2d".split()
_MOVES = (
    "reshape transpose squeeze expand_dims concatenate split strided_slice take gather broadcast_to nn.batch_flatten "
    "layout_transform nn.pad copy stack tile repeat nn.max_pool2d nn.global_max_pool2d max min nn.relu maximum minimum "
    "clip nn.leaky_relu"
).split()


def _off(name: str, attrs: Operator, given: Any, values: list[Any], exact: np.ndarray) -> np.ndarray:
    rounding = EPS * np.abs(exact)
    if name in _SUMS:
        sizes = [np.abs(value) for value in values]
        offs = _offs(given)
        terms = _terms(name, values, exact)
        total = np.abs(attrs.reference(*sizes))
        passed = np.zeros(exact.shape)
        for place in range(len(values)):
            if np.any(offs[place]):
                mixed = [offs[k] if k == place else sizes[k] + offs[k] for k in range(len(values))]
                passed = passed + np.abs(attrs.reference(*mixed))
        return passed + (terms + 8) * EPS * total
    if name == "nn.attention" and not any(np.any(off) for off in _offs(given)[:3]):
        return _attended(attrs, values)
    if name in _MOVES:
        return _moved(name, attrs, given, values, exact)
    if name in ("add", "subtract", "nn.bias_add"):
        one, other = _broadcast_offs(name, attrs, given, exact)
        return one + other + rounding
    if name in ("multiply", "divide"):
        relative = sum(_relative(one, exact) for one in given)
        return np.abs(exact) * relative + 2 * rounding
    # Functions: what the input is off by, through the slope between its two ends, and a few units of their own.
    low = attrs.reference(*[_shifted(one, -1) for one in given])
    high = attrs.reference(*[_shifted(one, 1) for one in given])
    spread = np.maximum(np.abs(np.asarray(low) - exact), np.abs(np.asarray(high) - exact))
    length = max((value.shape[-1] for value in values if np.ndim(value)), default=1)
    own = 64 if name in ("nn.softmax", "nn.layer_norm", "nn.log_softmax", "nn.lrn", "nn.batch_norm") else 8
    scale = np.abs(exact) if own == 8 else np.maximum(np.abs(exact), np.max(np.abs(exact), initial=0))
    return 2 * spread + (own + (length if own == 64 else 0)) * EPS * scale


def _attended(attrs: Operator, values: list[Any]) -> np.ndarray:
    """Weights that are off by twice what a score is off by, relatively, and sums of as many terms as there are keys."""
    query, key, value, *mask = values
    layouts = str(attrs["layouts"]).split()  # of query, key, value and result
    depth, keys = (key.shape[layouts[1].index(axis)] for axis in "DS")
    scale = abs(attrs["scale"] or depth**-0.5)
    longest = [np.sqrt((one**2).sum(axis=layout.index("D"))).max() for one, layout in zip((query, key), layouts)]
    score = scale * longest[0] * longest[1]  # at most, by Cauchy and Schwarz
    added = max((float(np.abs(one[one > -1e8]).max(initial=0)) for one in mask), default=0.0)
    score_off = EPS * ((depth + 8) * score + 4 * (score + added))
    return np.abs(attrs.reference(query, key, np.abs(value), *mask)) * (2 * score_off + (2 * keys + 64) * EPS)


def _terms(name: str, values: list[Any], exact: np.ndarray) -> int:
    if name in ("nn.conv2d", "nn.dense"):
        return int(np.prod(np.shape(values[1])[1:]))
    if name in ("nn.matmul", "nn.batch_matmul"):
        return max(np.shape(values[0])[-2:])
    return int(np.size(values[0]) / max(1, np.size(exact)))


def _moved(name: str, attrs: Operator, given: Any, values: list[Any], exact: np.ndarray) -> np.ndarray:
    offs = _offs(given)
    if not any(np.any(off) for one in offs for off in (one if isinstance(one, list) else [one])):
        return np.zeros(exact.shape)
    if name in ("nn.relu", "clip", "nn.leaky_relu"):
        return np.asarray(offs[0])
    if name in ("nn.max_pool2d", "nn.global_max_pool2d", "max", "min"):
        return np.full(exact.shape, np.max(offs[0], initial=0))
    if name in ("maximum", "minimum"):
        return np.broadcast_to(offs[0], exact.shape) + np.broadcast_to(offs[1], exact.shape)
    return np.abs(np.asarray(attrs.reference(*offs)))


def _broadcast_offs(name: str, attrs: Operator, given: Any, exact: np.ndarray) -> tuple[Any, Any]:
    if name == "nn.bias_add":
        zero = np.zeros_like(given[0].value)
        return given[0].off, np.abs(attrs.reference(zero, given[1].off))
    return np.broadcast_to(given[0].off, exact.shape), np.broadcast_to(given[1].off, exact.shape)


def _relative(one: Bounded, exact: np.ndarray) -> Any:
    size = np.abs(one.value)
    return np.broadcast_to(np.where(one.off == 0, 0, one.off / np.maximum(size, 1e-300)), exact.shape)


def _shifted(one: Any, way: int) -> Any:
    if isinstance(one, list):
        return [_shifted(each, way) for each in one]
    return one.value + way * one.off if np.asarray(one.value).dtype.kind == "f" else one.value


@dataclass
class Report:
    """How a model did."""

    name: str
    launches: int
    worst: float  # the largest error of an element, as a share of what it may be
    where: str
    seconds: float
    compile_seconds: float


def check_model(name: str, model: Any, inputs: dict[str, np.ndarray]) -> Report:
    """Compile a model, run it once, and hold every launch against float64."""
    import loopwright as lw

    start = perf_counter()
    compiled = lw.compile(model, winograd=False)  # whose bound is another: docs/winograd.md
    made = perf_counter() - start
    library = compiled.library
    arrays = [inputs[one] for one in library.input_names]
    profile = library.compiled.profile(*arrays)
    kept = {id(value): array for value, array in profile.by_value.items()}
    constants = {id(value): np.asarray(array) for value, array in library.program.constants.items()}
    given = {id(value): array for value, array in zip(library.program.inputs, arrays, strict=True)}
    found = {**constants, **given, **kept}
    worst, where = 0.0, ""
    begin = perf_counter()
    for launch in library.program.launches():
        function = library.program.attrs["functions"].get(launch)
        if function is None or not all(id(value) in found for value in launch.arguments):
            continue
        seen = [_seen(launch, place, found[id(value)]) for place, value in enumerate(launch.arguments)]
        expected = _flat(_bounded(function, seen[: len(launch.inputs)]))
        for array, wanted in zip(seen[len(launch.inputs) :], expected, strict=True):
            share = _share(array, wanted)
            if not share <= worst:
                worst, where = share, launch.name
    return Report(name, len(library.program.launches()), worst, where, perf_counter() - begin, made)


def _seen(launch: Any, place: int, array: np.ndarray) -> np.ndarray:
    """What a kernel sees of an argument: all of it, or a part."""
    part = launch.part(place)
    return array if part is None else part.of(array)


def _bounded(function: Any, inputs: list[np.ndarray]) -> Any:
    """What the operators of a kernel give in float64."""
    given = iter(inputs)
    known: dict[int, Any] = {id(param): as_bounded(_taken(param.checked_type, given)) for param in function.params}
    for each in post_order(function.body):
        if isinstance(each, Constant):
            known[id(each)] = as_bounded(each.data)
        elif isinstance(each, Tuple):
            known[id(each)] = [known[id(field)] for field in each.fields]
        elif isinstance(each, TupleGetItem):
            known[id(each)] = known[id(each.tuple_value)][each.index]
        elif isinstance(each, Call):
            known[id(each)] = run_bounded(each.attrs, [known[id(arg)] for arg in each.args])
    return known[id(function.body)]


def _taken(of: Any, inputs: Iterator[np.ndarray]) -> Any:
    """The value of a parameter: one of the inputs, or as many as its tuple has tensors."""
    return [_taken(field, inputs) for field in of.fields] if isinstance(of, TupleType) else next(inputs)


def _share(found: np.ndarray, wanted: Bounded) -> float:
    array = np.asarray(found)
    if array.dtype.kind != "f":
        return 0.0 if np.array_equal(array, wanted.value) else float("inf")
    granted = wanted.off + EPS * np.abs(wanted.value) + np.finfo(np.float32).tiny
    share = np.abs(array.astype(np.float64) - wanted.value) / granted
    return float(np.max(share, initial=0))


def _flat(value: Any) -> list[Any]:
    return [one for item in value for one in _flat(item)] if isinstance(value, (list, tuple)) else [value]


def _inputs(model: Any) -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    found = {}
    for value in model.graph.input:
        shape = [size.dim_value for size in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type == 7:
            found[value.name] = random.integers(0, 1000, shape)
        else:
            found[value.name] = random.standard_normal(shape).astype(np.float32)
    return found


MODELS: dict[str, Callable[[], Any]] = {
    **{name: (lambda name=name: light_model(name)) for name in NAMES},
    "encoder": encoder,
    "decoder": decoder,
}


def ways(unfused: bool, each_pass: bool) -> dict[str, dict[str, Any]]:
    """How models are compiled: what it is called, and the context it is done in."""
    found: dict[str, dict[str, Any]] = {"": {"opt_level": 3}}
    if unfused:
        found[" unfused"] = {"opt_level": 0}
    if each_pass:
        names = sorted({each.info.name for each in build_passes()} - {"InferType", "FuseOps"})
        found |= {f" without {name}": {"opt_level": 3, "disabled_pass": [name]} for name in names}
    return found


def main(arguments: list[str]) -> int:
    """Check the models of these names, or all."""
    parser = argparse.ArgumentParser(description="Compiled models against float64, launch by launch.")
    parser.add_argument("names", nargs="*", help=", ".join(MODELS))
    parser.add_argument("--unfused", action="store_true", help="also with every operator as a kernel of its own")
    parser.add_argument("--each-pass", action="store_true", help="also with each pass switched off")
    options = parser.parse_args(arguments)
    failed = 0
    contexts = ways(options.unfused, options.each_pass)
    for name, way in [(name, way) for name in options.names or MODELS for way in contexts]:
        model = MODELS[name]()
        with PassContext(**contexts[way]):
            report = check_model(name + way, model, _inputs(model))
        name = name + way
        verdict = "right" if report.worst <= 1 else "WRONG"
        failed += report.worst > 1
        print(
            f"{name:14} {verdict}: {report.launches} launches, the largest error is {report.worst:.2f} of its bound"
            f" ({report.where}); compiled in {report.compile_seconds:.1f} s, checked in {report.seconds:.1f} s",
            flush=True,
        )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
