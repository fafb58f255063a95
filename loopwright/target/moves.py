"""Moves: the cycles that data takes to be moved by generated code, by the way it goes.

    machine.moves.transposed * elements        a tile transposed in registers, and stored

Ports and bandwidths do not tell these: a copy that begins anywhere in a cache line, or an interleave of four rows, is
loop overhead, shuffles and partial lines as well. So they are fitted through the kernels that we generate, on Emerald
Rapids; every rule that copies, packs or transposes prices it with them, and only their proportions matter. A
microarchitecture that was measured to differ has a `Moves` of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Moves:
    """Cycles of one core."""

    # For an element of four bytes.
    stored: float = 0.12  # from registers, in whole vectors
    copied_whole: float = 0.15  # in whole vectors
    copied: float = 0.4  # in runs that begin and end anywhere, with padding between them
    packed: float = 0.35  # into a panel, from L2
    packed_far: float = 0.8  # the same from beyond
    packed_across: float = 1.5  # more than either, where the panel lies the other way
    packed_turned: float = 0.3  # the same, where tiles of it are transposed in registers
    panel_share: float = 0.01  # of the time a panel takes from L2: not hidden behind the multiply-adds
    transposed: float = 0.6  # in registers, and stored
    transposed_copy: float = 0.5  # in registers, from a whole plane and into another
    transposed_short: float = 1.6  # where runs are too short for a tile of registers

    # For a byte of an operand of bytes or halves.
    byte_copied: float = 0.12
    byte_interleaved: float = 0.16  # groups of channels, in registers
    byte_packed: float = 0.25  # with the conversion or the interleave on the way
    byte_packed_across: float = 0.5  # in short runs of columns
    byte_from_l3: float = 0.04  # more than from L2, where it is read again and again
    byte_unfolded: float = 0.4  # into a matrix of windows (im2col), and read again by the packing
    unfolded_sum: float = 0.5  # an accumulator of that matrix, stored as far apart as those of the result

    # For a vector of accumulators that is stored, and loaded again by the epilogue.
    accumulator: float = 1.5
    tile_accumulator: float = 3.0  # of a matrix unit, from L1
    tile_accumulator_l2: float = 6.0
    tile_accumulator_far: float = 25.0

    # For a cache line that is not next to the one before, so that no prefetcher announces it.
    line_skipped: float = 1.0  # by a stride within a page
    line_of_panel: float = 1.0  # the same in one of more pages than the first table of addresses holds
    line_of_page: float = 2.0  # on another page, in L2
    line_of_page_far: float = 12.0  # on another page, beyond L2
    line_of_page_somewhere: float = 4.0  # on another page, where nobody knows how far
    vector_of_row: float = 0.3  # a vector of a row that is as far from the next as a few lines
    ways: int = 8  # of L1: lines whose addresses differ by whole ways share so many places


USUAL_MOVES: Final = Moves()
# Measured: vectors of four floats, an L1 of four ways, and 48 pages whose addresses are known at once.
NEOVERSE_N1_MOVES: Final = Moves(
    packed=0.5,
    packed_far=1.0,
    packed_across=0.9,
    packed_turned=0.2,
    panel_share=0.3,
    line_of_panel=6.0,
    line_of_page=12.0,
    line_of_page_far=40.0,
    line_of_page_somewhere=22.0,
    ways=4,
)
