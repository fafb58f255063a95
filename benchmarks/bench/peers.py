"""Contenders: a peer's declaration becomes a call to time, or a line that says why it is not here."""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.bench.case import Array, CLoop, Numpy, Peer, Problem, Run, Torch, TorchCompile, aligned


class Missing(Exception):
    """A peer that cannot run here; the text says why."""


@dataclass(frozen=True)
class Contender:
    """A call to time, and the arrays it leaves its results in."""

    run: Run
    results: Callable[[], Sequence[Array]]


@dataclass
class Peers:
    """The peers that may take part in this process, which uses `threads` threads."""

    threads: int
    c_library: str | None = None  # the path of the loops' library
    c_missing: str = "no C compiler was found"
    use_torch: bool = True
    use_torch_compile: bool = True

    def contender(self, peer: Peer, problem: Problem) -> Contender:
        """The peer's call on the problem's inputs and outputs of its own; raises Missing."""
        outputs = [aligned(x.shape, str(x.dtype)) for x in problem.outputs]
        if isinstance(peer, Numpy):
            return self._numpy(peer, problem, outputs)
        if isinstance(peer, CLoop):
            return self._c(peer, problem, outputs)
        if isinstance(peer, TorchCompile):
            return self._torch_compile(peer, problem)
        return self._torch(peer, problem, outputs)

    def _numpy(self, peer: Numpy, problem: Problem, outputs: list[Array]) -> Contender:
        if importlib.util.find_spec(peer.needs) is None:
            raise Missing(f"{peer.needs} is not installed")
        return Contender(peer.make(problem.inputs, outputs), lambda: outputs)

    def _torch(self, peer: Torch, problem: Problem, outputs: list[Array]) -> Contender:
        torch = self._torch_module()
        inputs, views = _tensors(torch, problem.inputs), _tensors(torch, outputs)
        run = peer.make(torch, inputs, views)
        return Contender(run, lambda: outputs)

    def _torch_compile(self, peer: TorchCompile, problem: Problem) -> Contender:
        if not self.use_torch_compile:
            raise Missing("left out by --quick or --no-torch-compile")
        torch = self._torch_module()
        inputs = _tensors(torch, problem.inputs)
        compiled = torch.compile(peer.make(torch), dynamic=False)
        try:
            compiled(*inputs)
        except Exception as error:
            raise Missing(f"torch.compile failed: {type(error).__name__}: {_first_line(error)}") from error
        return Contender(lambda: compiled(*inputs), lambda: [compiled(*inputs).numpy()])

    def _c(self, peer: CLoop, problem: Problem, outputs: list[Array]) -> Contender:
        if self.c_library is None:
            raise Missing(self.c_missing)
        function = getattr(_load(self.c_library), peer.function)
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in [*problem.inputs, *outputs]]
        arguments = [*pointers, *[ctypes.c_long(size) for size in peer.sizes]]
        return Contender(lambda: function(*arguments), lambda: outputs)

    def _torch_module(self) -> Any:
        if not self.use_torch:
            raise Missing("left out by --no-torch")
        if importlib.util.find_spec("torch") is None:
            raise Missing("torch is not installed")
        return _load_torch(self.threads)


@functools.cache
def _load(path: str) -> ctypes.CDLL:
    return ctypes.CDLL(path)


@functools.cache
def _load_torch(threads: int) -> Any:
    try:
        torch = importlib.import_module("torch")
    except Exception as error:  # a broken installation must not cost us the other peers
        raise Missing(f"torch cannot be imported: {_first_line(error)}") from error
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    return torch


def _tensors(torch: Any, arrays: Sequence[Array]) -> list[Any]:
    return [torch.from_numpy(np.ascontiguousarray(x)) if x.size == 0 else torch.from_numpy(x) for x in arrays]


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0][:200]
