"""What an entry of the benchmark is made of: a Case names a shape, its Problem is everything about that shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray
Run = Callable[[], Any]


class Missing(Exception):
    """A peer that cannot run here; the text says why."""


class Bounded(NamedTuple):
    """The exact value of one output in float64 (or in integers), and how far a correct kernel may be from it."""

    exact: Array
    allowed: Array | float


@dataclass(frozen=True)
class Numpy:
    """A peer that works on arrays: `make(inputs, outputs)` gives the call to time, which fills the outputs."""

    make: Callable[[Sequence[Array], Sequence[Array]], Run]
    needs: str = "numpy"  # the module it imports besides


@dataclass(frozen=True)
class Torch:
    """A peer in torch, eager: `make(torch, inputs, outputs)` gives the call; tensors share the arrays' memory."""

    make: Callable[[Any, Sequence[Any], Sequence[Any]], Run]
    apart: bool = False  # in a process of its own and in inference mode, where other pools take part (`apart.py`)
    returns: bool = False  # whether the call returns its result, for want of `out=`


@dataclass(frozen=True)
class TorchCompile:
    """A peer through `torch.compile`: `make(torch)` gives a function of the inputs, which returns its output."""

    make: Callable[[Any], Callable[..., Any]]


@dataclass(frozen=True)
class CLoop:
    """A function of `loops.c`, called with the pointers of the inputs and outputs, then `sizes`."""

    function: str
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Onnx:
    """An ONNX model in ONNX Runtime or OpenVINO, always in a process of its own; `model()` gives its bytes or its path.

    Its inputs are called x0, x1 … and its outputs y0, y1 …, in the order of the problem's.
    """

    library: str  # onnxruntime or openvino
    model: Callable[[], bytes | str]


@dataclass(frozen=True)
class OursToo:
    """Another kernel of ours that does the same work, in float32 or by winograd, on inputs and outputs of its own."""

    program: Callable[[], Any]
    inputs: Sequence[Array]
    outputs: Sequence[Array]
    winograd: int = 0  # the largest tile that the rule may choose; a program that it leaves alone is missing
    reference: Callable[[], Sequence[Bounded]] | None = None  # where its results are compared, what they must be


Peer = Numpy | Torch | TorchCompile | CLoop | Onnx | OursToo


@dataclass(frozen=True)
class Problem:
    """One kernel at one shape. The program's parameters are the inputs, then the outputs."""

    program: Callable[[], Any]  # what lw.build takes
    inputs: Sequence[Array]
    outputs: Sequence[Array]
    reference: Callable[[], Sequence[Bounded]]
    peers: Mapping[str, Peer] = field(default_factory=dict)
    flops: int = 0  # 0: the kernel is about moving data
    read: int = -1  # bytes that must be moved at least; by default all inputs
    written: int = -1

    @property
    def bytes_read(self) -> int:
        """Bytes of input that any kernel has to read."""
        return self.read if self.read >= 0 else sum([x.nbytes for x in self.inputs])

    @property
    def bytes_written(self) -> int:
        """Bytes of output that any kernel has to write."""
        return self.written if self.written >= 0 else sum([x.nbytes for x in self.outputs])


@dataclass(frozen=True)
class Case:
    """A row of a table: `make(*shape)` gives its Problem, and those of the boundary shapes checked before timing."""

    name: str
    make: Callable[..., Problem]
    shape: tuple[Any, ...]
    boundary: Sequence[tuple[Any, ...]] = ()
    quick: bool = False  # whether `--quick` runs it
    tags: frozenset[str] = frozenset()  # what `bars.py` selects rows by
    count: int = 1  # how often a network has it
    group: str = ""  # rows of a family that are summed up together, "batch 4" for example


def aligned(shape: Sequence[int] | int, dtype: str = "float32") -> Array:
    """An empty array on a page boundary: where an allocator happens to put data is no property of a contender."""
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    size = int(np.prod(dims, dtype=np.int64)) * np.dtype(dtype).itemsize
    room = np.empty(size + 4096, "uint8")
    start = -room.ctypes.data % 4096
    return room[start : start + size].view(dtype).reshape(dims)


def uniform(
    shape: Sequence[int] | int, low: float = -1.0, high: float = 1.0, seed: int = 0, dtype: str = "float32"
) -> Array:
    """Random values in [low, high), the same in every process."""
    out = aligned(shape, dtype)
    np.random.default_rng(seed).random(out=out, dtype=dtype)  # type: ignore[call-overload]
    out *= out.dtype.type(high - low)
    out += out.dtype.type(low)
    return out
