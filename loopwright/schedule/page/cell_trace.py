"""cell_trace: run a version on small random numbers, and tell for every cell which iterations write and read it.

The evaluator runs the program and tells of each element it touches (`evaluator/recording.py`). Larger programs are not
run: a page with a million events helps nobody. Every version gets the same numbers, so their traces can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final, TypeAlias
from zlib import crc32

import numpy as np

from loopwright.arith import Analyzer
from loopwright.evaluator.recording import Piece, Recording, record
from loopwright.ir import Buffer, Expr, For, IntImm, IRModule, PrimFunc, Stmt, Var, deep, substitute, variables_in
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.json_text import JsonObject

MOST_EVENTS: Final = 6_000  # of one version: about 100 kB of the page
MOST_CELLS: Final = 4_096  # of one buffer
Number: TypeAlias = bool | int | float | str  # as JSON has it: infinities by name

MOST_ITERATIONS: Final = 20_000  # of the innermost loops, before anything is run
USUAL_SIZE: Final = 5  # of a symbolic size: no tile divides it

_ADVICE: Final = "use smaller sizes to see what happens to cells"


@dataclass(frozen=True)
class CellTrace:
    """What a run did, as plain data for the page."""

    buffers: list[JsonObject]  # name, shape, scope, whether it is an argument
    sites: list[list[object]]  # [is a write, block, [names of the iteration variables]]
    events: list[list[Number]]  # [site, buffer, cell, value, *iteration], in the order in which they happened
    start: dict[str, list[Number]]  # what the arguments held at first, by the number of the buffer
    sizes: dict[str, int]  # what symbolic sizes were

    def data(self) -> JsonObject:
        return {
            "buffers": self.buffers,
            "sites": self.sites,
            "events": self.events,
            "start": self.start,
            "sizes": self.sizes,
        }


class NotTraced(Exception):
    """The program was not run, for this reason. The page shows it."""


@deep
def cell_trace(module: IRModule, name: str, sizes: Mapping[str, int], seed: int) -> CellTrace:
    """The trace of one version; raises NotTraced when it is too large, or cannot be run on random numbers."""
    function = module[name]
    values = _sizes(function, sizes)
    if _iterations(function.body, values) > MOST_ITERATIONS:
        raise NotTraced(f"it has more than {MOST_ITERATIONS:,} iterations; {_ADVICE}")
    arguments = _arguments(function, values, seed)
    start = [argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments]
    try:
        seen = record(module, *arguments, function=name, most=MOST_EVENTS)
    except LoopwrightError as error:
        raise NotTraced(f"it cannot be run on random numbers: {error.problem}") from None
    if not seen.is_complete:
        raise NotTraced(f"it touches memory more than {MOST_EVENTS:,} times; {_ADVICE}")
    named = {var.name: value for var, value in values.items()}
    return _told(seen, function, start, named)


# --- inputs -------------------------------------------------------------------------------------------------------


def _sizes(function: PrimFunc, given: Mapping[str, int]) -> dict[Var, int]:
    """A number for each variable that the shapes of the arguments use, and for each integer parameter."""
    result: dict[Var, int] = {}
    for param in function.params:
        buffer = function.buffer_map.get(param)
        for expr in [param] if buffer is None else [*buffer.shape, *buffer.strides, buffer.elem_offset]:
            for var in variables_in(expr):
                if var.dtype.is_int:
                    result.setdefault(var, given.get(var.name, USUAL_SIZE))
    return result


def _number(expr: Expr, values: Mapping[Var, int]) -> int | None:
    simplified = expr if isinstance(expr, IntImm) else Analyzer().simplify(substitute(expr, _constants(values)))
    return simplified.value if isinstance(simplified, IntImm) else None


def _constants(values: Mapping[Var, int]) -> dict[Var, Expr]:
    return {var: IntImm(var.dtype, value) for var, value in values.items()}


def _iterations(statement: Stmt, values: Mapping[Var, int]) -> int:
    """How often the innermost statements run; loops whose bounds depend on others count as one iteration."""
    inside = sum([_iterations(child, values) for child in statement.children() if isinstance(child, Stmt)])
    if isinstance(statement, For):
        return max(_number(statement.extent, values) or 0, 0) * max(inside, 1)
    return max(inside, 1)


def _arguments(function: PrimFunc, values: Mapping[Var, int], seed: int) -> list[np.ndarray | float]:
    """Numbers that are short to read: quarters, and integers that are valid subscripts."""
    arguments: list[np.ndarray | float] = []
    shapes = {param: _shape(buffer, values) for param, buffer in function.buffer_map.items()}
    least = min([size for shape in shapes.values() for size in shape if size > 0], default=1)
    for param in function.params:
        if param in shapes:
            buffer = function.buffer_map[param]
            arguments.append(_random_array(buffer, shapes[param], least, seed))
        elif param.dtype.is_int:
            arguments.append(values[param])
        elif param.dtype.is_float:
            arguments.append(0.5)
        else:
            raise NotTraced(f"it takes a pointer, {param.name}")
    return arguments


def _shape(buffer: Buffer, values: Mapping[Var, int]) -> tuple[int, ...]:
    result = [_number(size, values) for size in buffer.shape]
    if None in result or buffer.dtype.lanes > 1 or buffer.strides:
        raise NotTraced(f"the layout of its argument {buffer.name} is not plain")
    shape = tuple([size for size in result if size is not None])
    if prod(shape) > MOST_CELLS:
        raise NotTraced(f"its argument {buffer.name} has {prod(shape):,} cells, more than {MOST_CELLS:,}; {_ADVICE}")
    return shape


def _random_array(buffer: Buffer, shape: tuple[int, ...], least: int, seed: int) -> np.ndarray:
    # By its name: a version with another layout of one argument leaves the numbers of the others as they are.
    random = np.random.default_rng([seed, crc32(buffer.name.encode())])
    dtype = buffer.dtype.numpy()
    if buffer.dtype.is_float:
        return (random.integers(-8, 9, shape) / 4).astype(dtype)
    if buffer.dtype.is_bool:
        return random.integers(0, 2, shape).astype(dtype)
    return random.integers(0, min(least, 10), shape).astype(dtype)


# --- data ---------------------------------------------------------------------------------------------------------


def _told(seen: Recording, function: PrimFunc, start: list[np.ndarray | float], sizes: dict[str, int]) -> CellTrace:
    numbers: dict[Buffer, int] = {}  # pieces of one buffer (allocated again and again) are one on the page
    buffers: list[JsonObject] = []
    of_piece: list[int] = []
    for piece in seen.pieces:
        if piece.buffer not in numbers:
            numbers[piece.buffer] = len(buffers)
            buffers.append(_buffer(piece))
        of_piece.append(numbers[piece.buffer])
    used = {event.piece for event in seen.events}
    events = []
    for event in seen.events:
        piece = seen.pieces[event.piece]
        cell = 0
        for index, size in zip(piece.indices(event.offset), piece.shape, strict=True):
            cell = cell * size + index
        events.append([event.site, of_piece[event.piece], cell, plain(event.value), *event.iteration])
    held = {}
    for param, argument in zip(function.params, start, strict=True):
        buffer = function.buffer_map.get(param)
        if buffer is not None and isinstance(argument, np.ndarray):
            held[str(numbers[buffer])] = [plain(value) for value in argument.reshape(-1).tolist()]
    for number, piece in enumerate(seen.pieces):
        if not piece.is_argument and number in used and prod(piece.shape) > MOST_CELLS:
            raise NotTraced(f"its buffer {piece.buffer.name} has more than {MOST_CELLS:,} cells")
    sites = [[site.writes, site.block, list(site.names)] for site in seen.sites]
    return CellTrace(buffers, sites, events, held, sizes)


def _buffer(piece: Piece) -> JsonObject:
    return {
        "name": piece.buffer.name,
        "shape": list(piece.shape),
        "scope": piece.buffer.scope(),
        "dtype": str(piece.buffer.dtype),
        "argument": piece.is_argument,
    }


def plain(value: Any) -> Number:
    """A number as JSON has it: six digits, and infinities by name."""
    if isinstance(value, bool) or not isinstance(value, float):
        return value if isinstance(value, (bool, int)) else float(f"{float(value):.6g}")
    return float(f"{value:.6g}") if math.isfinite(value) else str(value)
