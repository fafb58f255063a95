"""Layer: a convolution of two dimensions as the cost model of winograd sees it; what is taken together with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from loopwright.autosched.facts import const
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.around import epilogue_length, is_made_for
from loopwright.ir import IterVar
from loopwright.schedule.winograd.convolution import Convolution, NotWinograd, load_of, parts_of


@dataclass(frozen=True)
class Layer:
    """`images` × `inputs` channels in, `outputs` channels out, a window of `taps`, `places` results each way."""

    conv: Convolution
    dtype: str
    images: int
    inputs: int
    outputs: int
    places: tuple[int, int]
    taps: tuple[int, int]
    is_constant: bool  # the weights are: the compiler transforms them, and calls do not

    @property
    def products(self) -> int:
        """Multiply-adds of the direct form."""
        return self.images * self.inputs * self.outputs * prod(self.places) * prod(self.taps)


@dataclass(frozen=True)
class MatchedBlocks:
    """Blocks that are scheduled together."""

    before: Entry | None  # makes the data: padding, as a rule
    layer: Layer
    block: Entry
    after: tuple[Entry, ...]

    @property
    def count(self) -> int:
        return int(self.before is not None) + 1 + len(self.after)


def match_with_fused(pending: Sequence[Entry], program: Program, runs_here: bool = True) -> MatchedBlocks | None:
    """The convolution that the first pending block is, or makes the data of, with the element-wise work after it."""
    layer = _layer(pending[0], program, runs_here)
    if layer is not None:
        return MatchedBlocks(None, layer, pending[0], _epilogue(pending, program))
    result = pending[0].facts
    if len(pending) < 2 or result is None or not is_made_for(pending[0], pending[1], program):
        return None
    if not result.writes_in_order or result.costly_calls:
        return None  # it is computed again where tiles overlap
    layer = _layer(pending[1], program, runs_here)
    if layer is None or load_of(layer.conv.data).buffer is not result.write.buffer:
        return None
    return MatchedBlocks(pending[0], layer, pending[1], _epilogue(pending[1:], program))


def _epilogue(pending: Sequence[Entry], program: Program) -> tuple[Entry, ...]:
    """The blocks after the first that go into the last copy: up to the first whose result the caller sees."""
    result: list[Entry] = []
    for entry in pending[: epilogue_length(pending, program)]:
        if program.is_output(entry.writes[0]):
            break
        result.append(pending[len(result) + 1])
    return tuple(result)


def _layer(entry: Entry, program: Program, runs_here: bool) -> Layer | None:
    facts = entry.facts
    if facts is None or not facts.is_reduction:
        return None
    try:
        conv = parts_of(entry.realize)
    except NotWinograd:
        return None
    sizes = [_size(axes) for axes in (conv.batch, conv.inputs, conv.outputs)]
    if len(conv.windows) != 2 or conv.groups or not facts.writes_in_order or any(size is None for size in sizes):
        return None
    several = [[axis for axis in axes if _size([axis]) != 1] for axes in (conv.inputs, conv.outputs)]
    if any(len(axes) != 1 for axes in several) or len(conv.inputs) != 1 or len(conv.outputs) != 1:
        return None
    images, inputs, outputs = (size or 0 for size in sizes)
    high, wide = conv.windows
    weight = load_of(conv.weight).buffer
    return Layer(
        conv,
        facts.dtype,
        images,
        inputs,
        outputs,
        (high.places, wide.places),
        (high.taps, wide.taps),
        program.is_made_early(weight, runs_here),
    )


def _size(axes: Sequence[IterVar]) -> int | None:
    """How many values some axes have together; None when that is known only when the program runs."""
    sizes = [const(axis.dom.extent) if axis.dom is not None else None for axis in axes]
    return None if None in sizes else prod(size or 0 for size in sizes)
