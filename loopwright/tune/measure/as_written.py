"""as_written: how long a program takes at least where nobody has scheduled it.

    for i, j, k in T.grid(m, n, 2048):              4 cycles an iteration, at least
        C[i, j] = C[i, j] + A[i, k] * B[k, j]

Floats are added in the order of the program, so each iteration of such a loop waits for the addition before it. A
program that would run for longer than anybody waits for it need not be started.
"""

from __future__ import annotations

from math import prod
from typing import Final

from loopwright.autosched.machine import Machine
from loopwright.ir import (
    BlockRealize,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    IterType,
    PrimFunc,
    Visitor,
    While,
    uses_var,
)

_FASTEST_CLOCK: Final = 6e9  # cycles a second that no CPU exceeds
_LONG_SUM: Final = 128  # iterations: of shorter sums, a CPU computes several at a time


def least_seconds(function: PrimFunc, machine: Machine) -> float:
    """What one call takes at least; 0 where nothing is known."""
    sums = _Sums()
    sums.visit(function.body)
    return sums.iterations * machine.fma_latency / _FASTEST_CLOCK


class _Sums(Visitor):
    """Counts the iterations that wait for the one before them."""

    def __init__(self) -> None:
        self.iterations = 0.0
        self.loops: list[For] = []

    def visit_For(self, loop: For) -> None:
        self.loops.append(loop)
        self.visit(loop.body)
        self.loops.pop()

    def visit_IfThenElse(self, node: IfThenElse) -> None:
        """Whether it is run is not known."""

    def visit_While(self, node: While) -> None:
        """Nor how often this is."""

    def visit_BlockRealize(self, realize: BlockRealize) -> None:
        if not isinstance(realize.predicate, IntImm) or not realize.predicate.value:
            return
        if not isinstance(realize.block.body, BufferStore):
            self.visit(realize.block.body)
        elif self._waits(realize, realize.block.body):
            extents = [loop.extent.value for loop in self.loops if isinstance(loop.extent, IntImm)]
            self.iterations += prod(extents)

    def _waits(self, realize: BlockRealize, store: BufferStore) -> bool:
        """Whether each iteration of the innermost loop needs what the one before it has stored."""
        if realize.block.init is None or not store.buffer.dtype.is_float or not self.loops:
            return False
        last = self.loops[-1]
        kinds = [
            axis.iter_type
            for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
            if uses_var(value, {last.loop_var}.__contains__)
        ]
        is_long = isinstance(last.extent, IntImm) and last.extent.value >= _LONG_SUM
        return is_long and last.kind == ForKind.SERIAL and kinds == [IterType.CommReduce]
