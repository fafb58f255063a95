"""Contenders: a peer's declaration becomes a call to time, or a line that says why it is not here."""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks.bench import onnx_peers
from benchmarks.bench.apart import Helper
from benchmarks.bench.case import (
    Array,
    Case,
    CLoop,
    Missing,
    Numpy,
    Onnx,
    OursToo,
    Peer,
    Problem,
    Run,
    Torch,
    TorchCompile,
    aligned,
)

__all__ = ["Contender", "Missing", "Peers", "load_torch"]


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
    without: frozenset[str] = frozenset()  # libraries that are left out
    helpers: dict[str, Helper] = field(default_factory=dict)

    def apart(self, name: str, peer: Onnx | Torch, case: Case) -> Contender:
        """The case's peer in a process of its own, which is started for the first row; raises Missing."""
        self._require(peer)  # before a process is started for it
        if name not in self.helpers:
            self.helpers[name] = Helper(name, self)
        helper = self.helpers[name]
        helper.make(case)
        return Contender(helper, helper.results)

    def forget(self, name: str) -> None:
        """Have the next row start a helper of this name anew: this one is gone."""
        self.helpers.pop(name).close()

    def alone(self) -> Peers:
        """What a helper is told of this."""
        return replace(self, helpers={})

    def contender(self, peer: Peer, problem: Problem) -> Contender:
        """The peer's call in this process, on the problem's inputs and outputs of its own; raises Missing."""
        outputs = [aligned(x.shape, str(x.dtype)) for x in problem.outputs]
        if isinstance(peer, Numpy):
            return self._numpy(peer, problem, outputs)
        if isinstance(peer, CLoop):
            return self._c(peer, problem, outputs)
        if isinstance(peer, TorchCompile):
            return self._torch_compile(peer, problem)
        if isinstance(peer, OursToo):
            return self._ours_too(peer)
        if isinstance(peer, Onnx):
            self._require(peer)
            return Contender(onnx_peers.call(peer, problem.inputs, outputs, self.threads), lambda: outputs)
        return self._torch(peer, problem, outputs)

    def _numpy(self, peer: Numpy, problem: Problem, outputs: list[Array]) -> Contender:
        if importlib.util.find_spec(peer.needs) is None:
            raise Missing(f"{peer.needs} is not installed")
        return Contender(peer.make(problem.inputs, outputs), lambda: outputs)

    def _torch(self, peer: Torch, problem: Problem, outputs: list[Array]) -> Contender:
        self._require(peer)
        torch = load_torch(self.threads)
        if peer.apart:
            torch.inference_mode().__enter__()  # for good: this process does nothing else
        inputs, views = _tensors(torch, problem.inputs), _tensors(torch, outputs)
        run = peer.make(torch, inputs, views)
        if peer.returns:
            return Contender(run, lambda: [run().numpy()])
        return Contender(run, lambda: outputs)

    def _torch_compile(self, peer: TorchCompile, problem: Problem) -> Contender:
        if not self.use_torch_compile:
            raise Missing("left out by --quick or --no-torch-compile")
        self._require(peer)
        torch = load_torch(self.threads)
        inputs = _tensors(torch, problem.inputs)
        compiled = torch.compile(peer.make(torch), dynamic=False)
        try:
            compiled(*inputs)
        except Exception as error:
            raise Missing(f"torch.compile failed: {type(error).__name__}: {_first_line(error)}") from error
        return Contender(lambda: compiled(*inputs), lambda: [compiled(*inputs).numpy()])

    def _ours_too(self, peer: OursToo) -> Contender:
        from benchmarks.bench import ours  # it builds on this file

        module = ours.build_winograd(peer.program(), peer.winograd) if peer.winograd else ours.build(peer.program())
        if module is None:
            raise Missing("winograd is not taken there")
        return Contender(ours.call(module, [*peer.inputs, *peer.outputs]), lambda: peer.outputs)

    def _c(self, peer: CLoop, problem: Problem, outputs: list[Array]) -> Contender:
        if self.c_library is None:
            raise Missing(self.c_missing)
        function = getattr(_load(self.c_library), peer.function)
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in [*problem.inputs, *outputs]]
        arguments = [*pointers, *[ctypes.c_long(size) for size in peer.sizes]]
        return Contender(lambda: function(*arguments), lambda: outputs)

    def _require(self, peer: Onnx | Torch | TorchCompile) -> None:
        """Raise Missing, unless the peer's library is installed and wanted."""
        library = peer.library if isinstance(peer, Onnx) else "torch"
        if library in self.without or (library == "torch" and not self.use_torch):
            raise Missing(f"left out by --no-{library}")
        for name in (library, "onnx") if isinstance(peer, Onnx) else (library,):
            if importlib.util.find_spec(name) is None:
                raise Missing(f"{name} is not installed")


@functools.cache
def _load(path: str) -> ctypes.CDLL:
    return ctypes.CDLL(path)


@functools.cache
def load_torch(threads: int) -> Any:
    """torch with that many threads and without gradients; raises Missing where it is broken."""
    try:
        torch = importlib.import_module("torch")
    except Exception as error:  # a broken installation must not cost us the other peers
        raise Missing(f"torch cannot be imported: {_first_line(error)}") from error
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    return torch


def _tensors(torch: Any, arrays: Sequence[Array]) -> list[Any]:
    return [_tensor(torch, np.ascontiguousarray(x) if x.size == 0 else x) for x in arrays]


def _tensor(torch: Any, x: Array) -> Any:
    """The array's memory; a type that numpy does not know goes by its bits."""
    if x.dtype.name == "bfloat16":
        return torch.from_numpy(x.view("int16")).view(torch.bfloat16)
    return torch.from_numpy(x)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0][:200]
