"""run_model: a model, or what was compiled from one, run on arrays from a file or made up, timed and profiled.

    loopwright run model.tar --inputs in.npz --outputs out.npz --print-time
    loopwright run model.onnx --profile --print-top 5 batch=4

Inputs that no file gives are made up. Sizes that a call decides are 1, or what is said behind the name: `batch=4`.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final

import numpy as np

from loopwright.cli.compiled_model import CompiledModel, Options, compile_model
from loopwright.cli.interface import BadModelArrays, Interface, Port
from loopwright.cli.model_files import is_package, read_model
from loopwright.cli.package import load_package
from loopwright.cli.run import BadSize
from loopwright.display.quantities import time_text
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.json_text import JsonObject
from loopwright.runtime.timing import BenchmarkResult, time_evaluator
from loopwright.runtime.together import together

if TYPE_CHECKING:
    from loopwright.model.profile import Profile

FILL_MODES: Final = ("random", "zeros", "ones")
# What numpy raises for a file that is no array, cut off, compressed in an unknown way, encrypted, or too large.
_UNREADABLE: Final = (
    OSError, ValueError, EOFError, KeyError, RuntimeError, MemoryError, zlib.error, zipfile.BadZipFile,
)  # fmt: skip
_LARGEST: Final = 1 << 40  # bytes of an input that is made up


class BadInputsFile(LoopwrightError, ValueError):
    """The file of `--inputs` holds no arrays: it is not there, no .npz or .npy file, or not whole.

    For example:

        from loopwright.cli.run_model import read_arrays

        read_arrays("nowhere.npz", ["x"])
    """

    code = "LW0053"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"no arrays can be read from {path}: {why}",
            hint='numpy.savez("inputs.npz", name=array) writes such a file',
            fields={"path": path},
        )


class UnknownFillMode(LoopwrightError, ValueError):
    """`--fill-mode` says how inputs are made up that no file gives: `random`, `zeros` or `ones`.

    For example:

        import numpy as np
        from loopwright.cli.interface import Port
        from loopwright.cli.run_model import made_up

        made_up(Port("x", "float32", (2,)), (2,), "twos", np.random.default_rng(0))
    """

    code = "LW0054"

    def __init__(self, mode: str) -> None:
        super().__init__(
            f"there is no fill mode {mode!r}", hint=f"there are {', '.join(FILL_MODES)}", fields={"mode": mode}
        )


class NoProfile(LoopwrightError, ValueError):
    """Only a model is profiled, not what was compiled from it: there is no clock between the kernels of a package.

    For example:

        from loopwright.cli.run_model import require_profile

        require_profile("model.tar")
    """

    code = "LW0055"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} cannot be profiled: it holds no clock between its kernels",
            hint="profile the model it was compiled from: loopwright run MODEL --profile",
            fields={"path": path},
        )


@dataclass(frozen=True)
class Runnable:
    """A model that can be called, and how."""

    path: str
    interface: Interface
    native: Callable[..., object]  # the native function: inputs, then outputs
    seconds: Mapping[str, float]  # of compiling, or of loading
    profile: Callable[..., Profile] | None = None
    warnings: tuple[str, ...] = ()
    precision: str | None = None  # what it computes in; of a library without metadata, unknown


@dataclass(frozen=True)
class Request:
    """What a run is asked for."""

    inputs: str | None = None
    outputs: str | None = None
    fill_mode: str = "random"
    sizes: Mapping[str, int] = field(default_factory=dict)
    seed: int = 0
    print_time: bool = False
    repeat: int = 5
    number: int = 1
    end_to_end: bool = False
    profile: bool = False
    top: int | None = None


@dataclass(frozen=True)
class ModelRun:
    """What a run found out."""

    runnable: Runnable
    inputs: list[tuple[Port, tuple[int, ...], str]]  # with the shape it had, and where it came from
    outputs: list[tuple[Port, np.ndarray]]
    times: BenchmarkResult | None
    profile: Profile | None
    top: tuple[np.ndarray, np.ndarray] | None  # the places and the values of the largest elements
    wrote: str | None
    assumed: tuple[str, ...] = ()  # open sizes that are 1 because nobody said what they are


def require_profile(path: str) -> None:
    """Refuse to profile what is compiled already."""
    if is_package(path):
        raise NoProfile(path)


def prepare(
    path: str,
    options: Options,
    model_format: str | None = None,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
    inputs: str | None = None,
) -> Runnable:
    """The model of a package, or one compiled now. Values that the graph is made for are taken from `inputs`."""
    start = perf_counter()
    if is_package(path):
        package = load_package(path)
        said = package.metadata.get("precision")
        seconds = {"load": perf_counter() - start}
        return Runnable(path, package.interface, package, seconds, precision=said if isinstance(said, str) else None)
    from loopwright.frontends.errors import ValueNeeded

    given = read_arrays(inputs, None) if inputs is not None else {}
    values: dict[str, np.ndarray] = {}
    while True:
        try:
            model = read_model(path, model_format, shapes, values)
            break
        except ValueNeeded as error:
            more = {name: given[name] for name in error.sources if name in given and name not in values}
            if not more:
                raise
            values |= more
    result = compile_model(model, options, {"read": perf_counter() - start})
    native = result.built.compiled
    return Runnable(path, result.interface, native, result.seconds, native.profile, model.warnings, options.precision)


def profile_made(result: CompiledModel, repeat: int = 5) -> Profile | None:
    """The profile of a model that was compiled just now, on inputs that are made up; open sizes are 1."""
    native = result.built.compiled
    runnable = Runnable(result.model.path, result.interface, native, result.seconds, native.profile)
    return run_model(runnable, Request(profile=True, repeat=repeat)).profile


def run_model(runnable: Runnable, request: Request) -> ModelRun:
    """Run it as it was asked for."""
    interface = runnable.interface
    arrays, message, assumed = _inputs(interface, request)
    sizes = interface.check(arrays)
    given = [arrays[port.name] for port in interface.inputs]
    buffers = interface.buffers(sizes)
    runnable.native(*given, *buffers)
    results = interface.results(buffers, sizes)
    wrote = None
    if request.outputs is not None:
        write_arrays(request.outputs, results)
        wrote = request.outputs
    times = _timed(runnable, given, buffers, sizes, request) if request.print_time else None
    profile = None
    if request.profile:
        require_profile(runnable.path)
        assert runnable.profile is not None
        profile = runnable.profile(*given, repeat=request.repeat)
    top = top_results(results[0], request.top) if request.top is not None and results else None
    outputs = list(zip(interface.outputs, results, strict=True))
    return ModelRun(runnable, message, outputs, times, profile, top, wrote, assumed)


def _timed(
    runnable: Runnable,
    given: list[np.ndarray],
    buffers: list[np.ndarray],
    sizes: Mapping[str, int],
    request: Request,
) -> BenchmarkResult:
    """Seconds of a call; end to end also of what surrounds it: copies of the inputs, memory for the outputs."""
    if not request.end_to_end:
        timer = time_evaluator(runnable.native, number=request.number, repeat=request.repeat)
        return timer(*given, *buffers)

    def whole() -> None:
        fresh = runnable.interface.buffers(sizes)
        runnable.native(*[array.copy() for array in given], *fresh)
        runnable.interface.results(fresh, sizes)

    return time_evaluator(whole, number=request.number, repeat=request.repeat)()


# --- arrays -----------------------------------------------------------------------------------------------------------


def read_arrays(path: str, names: Sequence[str] | None) -> dict[str, np.ndarray]:
    """The arrays of a .npz file by name; a .npy file has the only one of `names`."""
    try:
        result = np.load(path, allow_pickle=False)
    except _UNREADABLE as error:
        raise BadInputsFile(path, str(error)) from None
    if isinstance(result, np.ndarray):
        if names is not None and len(names) != 1:
            raise BadInputsFile(path, f"it is one array, and the model has {len(names)} inputs: {', '.join(names)}")
        return {names[0] if names else "": result}
    try:
        with result:
            return {name: result[name] for name in result.files}
    except _UNREADABLE as error:
        raise BadInputsFile(path, str(error)) from None


def write_arrays(path: str, results: Sequence[np.ndarray]) -> None:
    """`output_0`, `output_1`, … in a .npz file. Types that such files do not know are written as float32."""
    arrays = {f"output_{index}": _for_file(array) for index, array in enumerate(results)}
    with together(path) as folder, (folder / Path(path).name).open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def _for_file(array: np.ndarray) -> np.ndarray:
    return array if array.dtype.kind in "biufc" else array.astype(np.float32)


def _inputs(
    interface: Interface, request: Request
) -> tuple[dict[str, np.ndarray], list[tuple[Port, tuple[int, ...], str]], tuple[str, ...]]:
    """Every input: from the file, or made up; and the sizes of those that nobody gave, which are 1."""
    names = [port.name for port in interface.inputs]
    given = read_arrays(request.inputs, names) if request.inputs is not None else {}
    unknown = [name for name in given if name not in names]
    if unknown:
        raise BadModelArrays(
            f"{request.inputs} has an array {unknown[0]!r}, and the model has no input of that name",
            f"its inputs are {', '.join(names) or 'none'}",
        )
    for name in request.sizes:
        if name not in interface.open_sizes:
            raise BadSize(f"{name}={request.sizes[name]}", interface.open_sizes)
        if request.sizes[name] < 0:
            raise BadSize(f"{name}={request.sizes[name]}", why="a dimension cannot be negative")
    # Arrays of the file decide sizes first; those that are made up follow.
    sizes = dict(request.sizes)
    for port in interface.inputs:
        for size, extent in zip(port.shape, given[port.name].shape if port.name in given else ()):
            if isinstance(size, str):
                if request.sizes.get(size, extent) != extent:
                    why = f"the array {port.name!r} of {request.inputs} has {size} = {extent}"
                    raise BadSize(f"{size}={request.sizes[size]}", why=why)
                sizes[size] = extent
    said = set(sizes)
    random = np.random.default_rng(request.seed)
    arrays, message = {}, []
    for port in interface.inputs:
        if port.name in given:
            array, source = _as_wanted(given[port.name], port), str(request.inputs)
        else:
            shape = tuple(size if isinstance(size, int) else sizes.setdefault(size, 1) for size in port.shape)
            array, source = made_up(port, shape, request.fill_mode, random), request.fill_mode
        arrays[port.name] = array
        message.append((port, array.shape, source))
    return arrays, message, tuple([name for name in sizes if name not in said])


def _as_wanted(array: np.ndarray, port: Port) -> np.ndarray:
    """An array of a file as the native function takes it; other types are refused later, by name."""
    wanted = port.numpy()
    if wanted.kind not in "biufc":  # npz files do not know the type: its bytes, or numbers to be rounded
        if array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize:
            array = array.view(wanted)
        elif array.dtype.kind == "f":
            array = array.astype(wanted)
    return np.ascontiguousarray(array).reshape(array.shape)


def made_up(port: Port, shape: tuple[int, ...], mode: str, random: np.random.Generator) -> np.ndarray:
    """An array for an input that nobody gave. Random numbers are between -1 and 1, so wider integers are 0."""
    if mode not in FILL_MODES:
        raise UnknownFillMode(mode)
    dtype = port.numpy()
    if math.prod(shape) * dtype.itemsize > _LARGEST:
        raise BadModelArrays(f"the input {port.name!r} of shape {shape} would be larger than any memory")
    if mode != "random":
        return np.full(shape, 0 if mode == "zeros" else 1).astype(dtype)
    if dtype == np.bool_:
        return random.integers(0, 2, shape).astype(bool)
    if dtype in (np.dtype("int8"), np.dtype("uint8")):
        return random.integers(0, 128, shape).astype(dtype)
    return random.uniform(-1, 1, shape).astype(dtype)


def top_results(array: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The places and the values of the largest elements of an output, the largest first."""
    flat = array.reshape(-1)
    order = np.argsort(-flat.astype(np.float64), kind="stable")[:count]
    return order, flat[order]


# --- what is said about it --------------------------------------------------------------------------------------------


def _summary(array: np.ndarray) -> tuple[float, str]:
    with np.errstate(all="ignore"):
        total = float(np.sum(array.astype(np.float64)))
    return total, f"{zlib.crc32(np.ascontiguousarray(array).tobytes()):08x}"


def as_text(run: ModelRun) -> str:
    """The result for the terminal."""
    lines = [run.runnable.path]
    for port, shape, source in run.inputs:
        lines.append(f"  input {port.name}: {port.dtype}{list(shape)}, {source}")
    for name in run.assumed:
        lines.append(f"  {name} = 1 by default: set it by {name}=24 after the model, or by an array in --inputs")
    for port, array in run.outputs:
        total, checksum = _summary(array)
        lines.append(f"  output {port.name}: {port.dtype}{list(array.shape)}, sum {total:.9g}, crc32 {checksum}")
    if run.runnable.precision not in (None, "float32"):
        lines.append(f"  computes in {run.runnable.precision}")
    spent = sum(run.runnable.seconds.values())
    lines.append(f"  {'loaded' if 'load' in run.runnable.seconds else 'compiled'} in {time_text(spent)}")
    lines += [f"  warning: {text}" for text in run.runnable.warnings]
    if run.wrote is not None:
        lines.append(f"  wrote {run.wrote}")
    if run.top is not None:
        lines += ["", f"Largest of {run.outputs[0][0].name}:"]
        lines += [f"  {location:6}  {value}" for location, value in zip(*run.top, strict=True)]
    if run.times is not None:
        lines += ["", str(run.times)]
    if run.profile is not None:
        lines += ["", str(run.profile)]
    return "\n".join(lines)


def as_data(run: ModelRun) -> JsonObject:
    """The result for programs."""

    def output(port: Port, array: np.ndarray) -> JsonObject:
        total, checksum = _summary(array)
        finite = total if math.isfinite(total) else None
        return {
            "name": port.name,
            "dtype": port.dtype,
            "shape": list(array.shape),
            "sum": finite,
            "crc32": checksum,
        }

    return {
        "model": run.runnable.path,
        "assumed_sizes": dict.fromkeys(run.assumed, 1),
        "precision": run.runnable.precision,
        "inputs": [
            {"name": port.name, "dtype": port.dtype, "shape": list(shape), "source": source}
            for port, shape, source in run.inputs
        ],
        "outputs": [output(port, array) for port, array in run.outputs],
        "seconds": dict(run.runnable.seconds),
        "wrote": run.wrote,
        "top": None
        if run.top is None
        else {"places": [int(location) for location in run.top[0]], "values": [_number(value) for value in run.top[1]]},
        "times": None
        if run.times is None
        else {
            **{name: getattr(run.times, name) for name in ("mean", "median", "max", "min", "std")},
            "results": list(run.times.results),
        },
        "profile": None if run.profile is None else run.profile.as_data(),
        "roofline": None if run.profile is None else run.profile.limits.as_data(),
    }


def _number(value: np.generic) -> float | int | None:
    if value.dtype.kind in "iub":
        return int(value)
    number = float(value)
    return number if math.isfinite(number) else None
