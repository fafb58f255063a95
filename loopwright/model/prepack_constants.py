"""prepare: what kernels compute from constants alone is computed, once, when the model is compiled.

    launch matmul(x, w, y)      its kernel, as scheduled, reads w in panels of 16 columns
    prepared: w in panels       a constant in place of w, which nobody reads any more

A kernel says what it wants (`Kernel.early`); here its early function runs on the weights of each launch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from loopwright.codegen.llvm.load_object import load_objects
from loopwright.model.kernel import Early, Kernel
from loopwright.model.program import Bind, Branch, Copy, Launch, Program, Repeat, Require, Value, View, walk
from loopwright.runtime import ffi, thread_pool
from loopwright.runtime.errors import InternalError

Array = np.ndarray


@dataclass(eq=False)
class Prepared:
    """The constants that the compiled code reads: those of the program that are left, and those made from others."""

    constants: dict[Value, Array] = field(default_factory=dict)
    made: dict[Launch, tuple[Value, ...]] = field(default_factory=dict)  # what a launch passes besides what it keeps

    def array(self, value: Value) -> Array:
        """The content of a constant, row-major."""
        return np.asarray(self.constants[value], dtype=value.dtype.numpy(), order="C")


def as_they_are(program: Program) -> Prepared:
    """The constants of a program whose kernels prepare nothing."""
    return Prepared(dict(program.constants))


def prepare(program: Program, kernels: Mapping[Launch, Kernel]) -> Prepared:
    """Run the early functions of the kernels on the constants of their launches."""
    wanted = [(launch, kernels[launch]) for launch in program.launches()]
    early = {kernel.early.symbol: kernel.early for _, kernel in wanted if kernel.early is not None}
    if not early:
        return as_they_are(program)
    loaded = load_objects([one.object_bytes for one in early.values()], {**ffi.symbols(), **thread_pool.symbols()})
    result = Prepared()
    known: dict[tuple[str, tuple[Value, ...]], tuple[Value, ...]] = {}
    for launch, kernel in wanted:
        if kernel.early is None:
            continue
        sources = weights_of(launch, kernel.early)
        key = (kernel.early.symbol, sources)
        if key not in known:
            arrays = _run(kernel.early, loaded.address(kernel.early.symbol), [program.array(one) for one in sources])
            name = sources[0].name if sources else launch.name
            known[key] = tuple(Value(f"{name}_prepared", array.shape, str(dtype)) for array, dtype in arrays)
            result.constants.update(zip(known[key], [array for array, _ in arrays], strict=True))
        result.made[launch] = known[key]
    read = _values_read(program, kernels)
    result.constants.update({value: array for value, array in program.constants.items() if value in read})
    return result


def weights_of(launch: Launch, early: Early) -> tuple[Value, ...]:
    """The constants that the early function takes at this launch."""
    given = dict(zip(launch.places, launch.arguments, strict=True))
    return tuple(given[position] for position in early.reads)


def _run(early: Early, address: int, given: list[Array]) -> list[tuple[Array, str]]:
    results = [(np.zeros(shape, dtype=Value("", shape, dtype).dtype.numpy()), dtype) for shape, dtype in early.results]
    arrays = [*given, *[array for array, _ in results]]
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * (len(arrays) + 1))(address)
    status = function(*[array.ctypes.data for array in arrays], None)
    if status:
        raise InternalError(f"preparing constants by {early.symbol} ended with {status}")
    return results


def _values_read(program: Program, kernels: Mapping[Launch, Kernel]) -> set[Value]:
    """Every value that some step reads, or the caller gets."""
    found = set(program.outputs)
    for step in walk(program.body):
        match step:
            case Launch():
                found.update(kept_arguments(step, kernels[step]))
            case View() | Copy():
                found.add(step.of)
            case Bind():
                found.add(step.value)
            case Require():
                found.update(value for _, value, _ in step.reads)
            case Branch():
                found.add(step.condition)
                found.update(step.then.results, step.otherwise.results)
            case Repeat():
                found.update(one for one in (step.count, step.condition, step.next_condition) if isinstance(one, Value))
                found.update(step.body.results)
                found.update(one for carried in step.carried for one in (carried.initial, carried.next))
                found.update(one.whole for one in step.scanned)
                found.update(one.part for one in step.collected)
    return found


def kept_arguments(launch: Launch, kernel: Kernel) -> list[Value]:
    """The arguments of a launch that its kernel takes as they are."""
    if kernel.keeps is None:
        return list(launch.arguments)
    kept = set(kernel.keeps)
    return [value for location, value in zip(launch.places, launch.arguments, strict=True) if location in kept]
