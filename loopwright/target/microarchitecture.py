"""Microarchitecture: what a core does in a cycle, which no instruction set tells.

    microarchitecture_of("x86_64", "znver4").fma_per_cycle(512) == 1      two 256-bit ports make one 512-bit FMA

Cost models ask for ratios, so everything is counted in cycles of one core. Bandwidths are what a loop of vector loads
sustains, not what a port could do at best. `microarchitectures.py` lists those of known chips, and where each number
comes from; for a chip that is not listed, `loopwright doctor --measure` measures this machine and stores the result.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from loopwright.runtime.cache_folder import cache_directory, why_untrusted
from loopwright.target.moves import USUAL_MOVES, Moves

STORED: Final = "machine.json"  # in the cache folder
NONE_AHEAD: Final = -1  # a `lookahead`: hardware has not even the loads and stores of a copy under way in time


class Caches(NamedTuple):
    """Data cache sizes and the line size in bytes; 0 where there is no such level."""

    l1d: int
    l2: int
    l3: int
    line: int


@dataclass(frozen=True)
class Microarchitecture:
    """The numbers of a core, in cycles and bytes."""

    name: str
    fma_ports: int = 2
    fma_bits: int = 512  # of each port
    fma_latency: int = 4
    load_ports: int = 2
    load_bits: int = 512
    store_ports: int = 1
    l2_bytes_per_cycle: float = 22.0  # sustained by one core, as are the two below
    l3_bytes_per_cycle: float = 10.0
    memory_bytes_per_cycle: float = 5.0
    memory_cores: int = 6  # so many cores use up the bandwidth of memory
    gather_cycles: float = 0.5  # for a lane, where there is an instruction for it
    gather_bytes: int = 4  # of a lane that such an instruction is for, at least
    insert_cycles: float = 1.0  # for a lane that is loaded by itself
    shuffle_cycles: float = 1.0
    fork_cycles: int = 12_000  # to wake the threads of a parallel loop and to wait for the last one
    # What generated code sustains of other instructions. Chips with more ports are listed with these, too, until a
    # measurement shows that choices should be others there.
    vector_per_cycle: int = 2  # vector instructions other than loads and stores
    scalar_per_cycle: int = 4  # instructions of one element, stores aside
    element_cycles: float = 2.0  # at least, for an element that is loaded and stored by itself
    # How far ahead data comes by itself, and how far ahead it must be asked for.
    streams: int = 32  # rows that can be read side by side: of more, lines are gone before they are used up
    # Rows of a matrix, each along memory, whose products accumulators add up before they are stored. Of more rows, the
    # first lines come late, which costs less than stores and loads of accumulators only where that was measured.
    slab_rows: int = 8
    page: int = 4096  # bytes: hardware prefetchers follow a stream to the end of one
    latency_bytes: int = 1024  # of a stream, under way while one load waits for memory
    lookahead: int = 3  # instructions for each vector up to which the loads of the next page are under way in time
    lookahead_sums: int = 1  # the same where nothing is stored: a sum waits for its own load
    # A matrix unit (AMX), nominally; a kernel adds what it cannot hide.
    tile_cycles: int = 16  # for a product of two tiles
    tile_load_cycles: int = 8
    tile_setup_cycles: int = 500  # configure the tiles, and release them
    moves: Moves = USUAL_MOVES
    caches: Caches | None = None  # of one core; L3 as far as one process may count on it
    source: str = ""

    def fma_per_cycle(self, vector_bits: int) -> int:
        """Vector multiply-adds of that width that a core starts in a cycle."""
        return max(1, min(self.fma_ports, self.fma_ports * self.fma_bits // vector_bits))

    def loads_per_cycle(self, vector_bits: int) -> int:
        """Vector loads of that width that a core starts in a cycle."""
        return max(1, min(self.load_ports, self.load_ports * self.load_bits // vector_bits))

    @property
    def has_slow_gather(self) -> bool:
        """Whether a gather takes longer than its lanes do one by one: each an index, a load and an insertion."""
        return self.gather_cycles > 2 * self.insert_cycles

    def l1_bytes_per_cycle(self, vector_bits: int) -> float:
        """What vector loads of that width bring from L1."""
        return self.loads_per_cycle(vector_bits) * vector_bits / 8

    def to_json(self) -> str:
        """The description as text, for `stored`."""
        return json.dumps(asdict(self), indent=1)


def from_data(data: object) -> Microarchitecture | None:
    """The description that was stored; None where the data is none (another version's, or damaged)."""
    names = {field.name for field in fields(Microarchitecture)}
    if not isinstance(data, dict) or set(data) != names:
        return None
    moves = data["moves"]
    if not isinstance(moves, dict) or set(moves) != {field.name for field in fields(Moves)}:
        return None
    numbers = [value for name, value in data.items() if name not in ("name", "source", "moves", "caches", "lookahead")]
    lookahead = data["lookahead"]
    if not isinstance(lookahead, int) or isinstance(lookahead, bool) or lookahead < NONE_AHEAD:
        return None
    if not all(_is_positive(value) for value in (*numbers, *moves.values())):
        return None
    sizes = data["caches"]
    if sizes is not None and not (isinstance(sizes, list) and [type(size) for size in sizes] == [int] * 4):
        return None
    if not isinstance(data["name"], str) or not isinstance(data["source"], str):
        return None
    caches = None if sizes is None else Caches(*sizes)
    return Microarchitecture(**{**data, "moves": Moves(**moves), "caches": caches})


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


@cache
def stored(cpu: str) -> Microarchitecture | None:
    """What `loopwright doctor --measure` has stored about a CPU of that name on this machine; None if nothing."""
    file = stored_file()
    if file is None:
        return None
    try:
        if why_untrusted(file.stat()) is not None:
            return None
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    result = from_data(data)
    return result if result is not None and result.name == cpu else None


def store(measured: Microarchitecture) -> Path | None:
    """Keep a measured description for the compilations to come; None where there is no folder for it."""
    file = stored_file()
    if file is None:
        return None
    file.write_text(measured.to_json() + "\n", encoding="utf-8")
    stored.cache_clear()
    return file


def stored_file() -> Path | None:
    """Where the description of this machine is kept."""
    folder = cache_directory()
    return None if folder is None else folder / STORED
