"""What runs a module: the arrays of the parameters of `main` in, the tensors it returns out, tuples taken apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from loopwright.ir import IRModule
from loopwright.relay import interpreter
from loopwright.relay.errors import CannotCompile

Runner = Callable[[Sequence[np.ndarray]], list[np.ndarray]]


def interpreted(mod: IRModule) -> Runner:
    """Run by the reference interpreter."""
    return lambda arrays: flat(interpreter.evaluate(mod["main"], list(arrays), mod))


class Native:
    """A runner of native code; `library` is what relay.build made."""

    def __init__(self, library: Any) -> None:
        self.library = library

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        return self.library.run(list(arrays))


def native(mod: IRModule, target: Any = None, winograd: bool | int = False) -> Runner:
    """Compiled to native code; a graph that cannot be is compiled for the shapes of each call, as far as it can be."""
    from loopwright.relay.build_module import build
    from loopwright.relay.executors import create_executor

    try:
        return Native(build(mod, target, winograd=winograd))
    except CannotCompile:
        call = create_executor("vm", mod, target=target or "llvm").evaluate()
        return lambda arrays: flat(call(*arrays))


def flat(value: Any) -> list[np.ndarray]:
    """The tensors of a value, in order."""
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in flat(item)]
    return [np.asarray(value.numpy() if hasattr(value, "numpy") else value)]
