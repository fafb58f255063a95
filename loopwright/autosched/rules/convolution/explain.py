"""What was chosen for a convolution and why, in words."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from loopwright.autosched.decision import ChoiceKind, Decision, Roofline
from loopwright.autosched.machine import Machine, bytes_of, tile_utilisation
from loopwright.autosched.prefetch import explain_weights
from loopwright.autosched.rules.convolution.tiles import Tiles
from loopwright.autosched.rules.convolution.window import Window, extent
from loopwright.ir import IntImm


def explain(window: Window, tiles: Tiles, machine: Machine, decision: Decision, pads: bool, prepacks: bool) -> None:
    """Say how a convolution is tiled, copied and shared out, and how near the limit that should be."""
    used = tiles.mr * tiles.vectors
    line = extent(window.row)
    decision.chose(
        f"tiles of {tiles.mr} pixels × {tiles.nr} channels",
        f"{used} of {machine.registers} registers are accumulators; a step loads {tiles.mr + tiles.vectors} times for "
        f"{used} multiply-adds, and {line} pixels of a line are {-(-line // tiles.mr)} tiles",
        ChoiceKind.TILES,
    )
    decision.tile_use = tile_utilisation(line, tiles.mr) * tile_utilisation(window.channels, tiles.nr)
    weights = window.k * tiles.nr * bytes_of(window.facts.dtype)
    how = "prepacked" if prepacks else "packed"
    why = "they are constant: packed at compile time" if prepacks else "each is reused for many pixels"
    decision.chose(
        f"weights {how} in panels of {tiles.nr} channels",
        f"{why}; {weights >> 10} KiB of them are in use at a time",
        ChoiceKind.OTHER if prepacks else ChoiceKind.PACKED,
        "weights",
    )
    explain_weights(weights * -(-window.channels // tiles.nr), window.places, machine, decision)
    if pads:
        decision.chose(f"padding done for {tiles.band} lines at a time", "the padded image stays in cache")
    elif tiles.copies_image:
        decision.chose(
            f"{tiles.band} lines of the image copied at a time", "so that loads of the reduction are contiguous"
        )
    blocks = window.channel_block(tiles.lanes)
    if (pads or tiles.copies_image) and blocks > 1:
        decision.chose(
            f"lines of blocks of {blocks} channels", "channels are contiguous in the image: plain vector copies"
        )
    if not window.writes_channels_last:
        why = "pixels, not channels, are contiguous in the result"
        decision.chose("accumulators transposed in registers", why, ChoiceKind.STRIDED)
    pixels = window.places
    tasks = window.batch * pixels // (line * tiles.band) * -(-window.channels // tiles.nr) // tiles.panels
    if tiles.threads > 1:
        decision.chose(
            f"{tasks} tasks of {tiles.band} lines × {tiles.panels * tiles.nr} channels",
            f"parallelised over {tiles.threads} threads",
        )
    elif machine.cores > 1:
        decision.chose("one thread", "the work costs less than waking other threads", ChoiceKind.ONE_THREAD)
    arithmetic = float(window.batch * pixels * window.channels * window.k)
    arithmetic /= machine.fma_per_cycle * tiles.lanes * tiles.threads
    moved = sum(
        _bytes(access.buffer.shape, str(access.buffer.dtype)) for access in (*window.facts.reads, window.facts.write)
    )
    memory = moved / machine.bytes_per_cycle(moved) / min(tiles.threads, machine.memory_cores)
    decision.roofline = Roofline(arithmetic, memory, tiles.cycles)


def _bytes(shape: Sequence[object], dtype: str) -> int:
    return prod(int(size.value) for size in shape if isinstance(size, IntImm)) * bytes_of(dtype)
