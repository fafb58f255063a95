"""What runs a module: the arrays of the parameters of `main` in, the tensors it returns out, tuples taken apart."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from loopwright.frontends.errors import BadModelName
from loopwright.ir import IRModule
from loopwright.relay import interpreter
from loopwright.relay.errors import CannotCompile
from loopwright.relay.graph_functions import graph_function
from loopwright.runtime.c_header import identifier

if TYPE_CHECKING:
    from loopwright.relay.build_module import Targets
    from loopwright.relay.built import BuiltModule
    from loopwright.relay.quantize.calibrate import Sample

Runner = Callable[[Sequence[np.ndarray]], list[np.ndarray]]


def interpreted(mod: IRModule) -> Runner:
    """Run by the reference interpreter."""
    return lambda arrays: flat(interpreter.evaluate(graph_function(mod), list(arrays), mod))


class Native:
    """A runner of native code; `library` is what relay.build made."""

    def __init__(self, library: BuiltModule) -> None:
        self.library = library

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        return self.library.run(list(arrays))


class CallByCall:
    """A runner that compiles for the shapes of each call; `why_not` says what keeps the graph from being a library."""

    def __init__(self, mod: IRModule, target: Any, why_not: CannotCompile) -> None:
        from loopwright.relay.executors import create_executor

        self.why_not = why_not
        self._call = create_executor("vm", mod, target=target or "llvm").evaluate()

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        return flat(self._call(*arrays))


def native(
    mod: IRModule,
    target: Targets = None,
    winograd: bool | int = False,
    precision: str = "float32",
    calibrate: Iterable[Sample] | None = None,
    name: str = "model",
    output_names: Sequence[str] = (),
) -> Runner:
    """Compiled to native code; a graph that cannot be is compiled for the shapes of each call, as far as it can be."""
    from loopwright.relay.build_module import build

    if precision != "float32":
        from loopwright.relay.quantize import in_precision

        mod = in_precision(mod, precision, dataset=calibrate)
    try:
        return Native(build(mod, target, mod_name=name, winograd=winograd, output_names=output_names))
    except CannotCompile as why_not:
        return CallByCall(mod, target, why_not)


def name_of(model: object, name: str | None = None) -> str:
    """What the native function of a model is called: the name given, or the stem of its file, as C has names."""
    if name is None:
        name = Path(model).stem if isinstance(model, (str, os.PathLike)) else "model"
    if not isinstance(name, str) or not name:
        raise BadModelName(name)
    return identifier(name)


def flat(value: Any) -> list[np.ndarray]:
    """The tensors of a value, in order."""
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in flat(item)]
    return [np.asarray(value.numpy() if hasattr(value, "numpy") else value)]
