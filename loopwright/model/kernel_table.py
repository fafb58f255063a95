"""kernel_table: what is known about each kernel of a model without running it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loopwright.analysis.costs import CostUnknown, estimate_tir_flops
from loopwright.model.kernel import Kernel
from loopwright.model.program import Launch


@dataclass(frozen=True)
class KernelRow:
    """One kernel. `flops` and `bytes_moved` are those of one call; None where a size is not known yet.

    `flops` alone is None where loops depend on data: such kernels are not counted.
    """

    name: str
    symbol: str
    calls: int  # how often it stands in the program
    flops: float | None
    bytes_moved: int | None  # every argument once
    code_bytes: int
    text: str  # the program, as scheduled
    launch: Launch
    kernel: Kernel


def kernel_rows(launches: Mapping[Launch, Kernel]) -> list[KernelRow]:
    """A row for each distinct kernel, in order of first use."""
    users: dict[str, list[Launch]] = {}
    for launch, kernel in launches.items():
        users.setdefault(kernel.symbol, []).append(launch)
    return [_row(own, launches[own[0]]) for own in users.values()]


def _row(own: list[Launch], kernel: Kernel) -> KernelRow:
    first = own[0]
    names = dict.fromkeys(launch.name or launch.func.name for launch in own)
    return KernelRow(
        next(iter(names)),
        kernel.symbol,
        len(own),
        flops_of(first),
        bytes_of(first),
        len(kernel.object_bytes),
        kernel.text,
        first,
        kernel,
    )


def flops_of(launch: Launch) -> float | None:
    """The arithmetic of one call, as the program states it before it is scheduled."""
    try:
        return estimate_tir_flops(launch.func)
    except CostUnknown:
        return None


def bytes_of(launch: Launch) -> int | None:
    """The bytes of all arguments, each once."""
    sizes = [value.nbytes for value in dict.fromkeys(launch.arguments)]
    return sum(size for size in sizes if isinstance(size, int)) if all(isinstance(s, int) for s in sizes) else None
