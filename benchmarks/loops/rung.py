"""What a rung is made of: a scheduled program, arrays to run it on, and what the results must be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.bench.case import Array, Bounded
from loopwright.ir import IRModule, PrimFunc
from loopwright.schedule import Schedule

Steps = Callable[[Schedule], None]


@dataclass(frozen=True)
class Loops:
    """A scheduled program of one function; its parameters are the inputs, then the outputs."""

    function: PrimFunc
    inputs: Sequence[Array]
    outputs: Sequence[Array]
    reference: Callable[[], Sequence[Bounded]]
    flops: int = 0  # 0: the loops are about moving data


@dataclass(frozen=True)
class Rung:
    """A row of the table: `make(*shape)` gives its loops, at the shape that is timed or at the `small` one of tests."""

    name: str
    make: Callable[..., Loops]
    shape: tuple[Any, ...]
    small: tuple[Any, ...]


def scheduled(function: PrimFunc, steps: Steps) -> PrimFunc:
    """The function after the steps, each of them proved."""
    sch = Schedule(function)
    steps(sch)
    assert sch.is_proved, f"{steps.__name__} is not proved"
    return only_function(sch.mod)


def only_function(module: IRModule) -> PrimFunc:
    """The one function of a module."""
    (function,) = [f for _, f in module.functions_items() if isinstance(f, PrimFunc)]
    return function


def as_written(sch: Schedule) -> None:
    """No step at all."""
