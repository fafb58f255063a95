"""Inlining for GPUs: a value that is computed again costs arithmetic, a buffer costs a kernel and two ways to memory.

A GPU does some ten operations in the time that a byte takes to come from memory. So element-wise work goes into all its
element-wise readers, also where calls such as exp are then computed a few times. Operands of products and paddings of
windows stay: rules put them into shared memory or inline them themselves.
"""

from __future__ import annotations

from typing import Final

from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.inline_cost import is_long_together, places, times_computed
from loopwright.autosched.inlining import (
    facts_in,
    has_conditions,
    is_number,
    is_window,
    reads_of,
    reads_once,
    writes_each_cell,
)
from loopwright.autosched.machine import bytes_of
from loopwright.autosched.nest_cost import instructions
from loopwright.autosched.program import Entry, Program

_CALL: Final = 24  # operations of exp, tanh and the like
_LOOKED_UP: Final = 4  # operations that take as long as a load from L1 and its address: tables of less are no help


class GpuPrices:
    """What a GPU thinks of computing values where they are read."""

    def __init__(self, machine: GpuMachine) -> None:
        self.machine = machine

    def may_inline(self, entry: Entry, program: Program) -> bool:
        """Whether the block is element-wise, no output, and no reduction would compute its values again."""
        if is_number(entry):
            return not program.is_output(entry.writes[0]) and bool(program.readers(entry.writes[0]))
        facts = entry.facts
        if facts is None or not facts.is_injective or len(facts.stores) != 1:
            return False
        buffer = facts.write.buffer
        readers = program.readers(buffer)
        if program.is_output(buffer) or not readers or len(program.writers(buffer)) != 1:
            return False
        if not writes_each_cell(facts) or any(reader.facts is None for reader in readers):
            return False
        for reader, access in reads_of(entry, program):
            if reader.is_injective:
                continue
            if facts.reads and (
                not reads_once(reader, access) or (has_conditions(facts) and is_window(reader, access))
            ):
                return False
            if facts.costly_calls and len(readers) > 1:
                return False  # exp(x - max), which a softmax sums up and divides: its rule decides
        return True

    def why_kept(self, entry: Entry, program: Program, readers: str) -> str | None:
        """Why it is better computed once, into a buffer; None where it is not."""
        facts, read = facts_in(entry), places(reads_of(entry, program))
        times = times_computed(facts, read)
        once = instructions(facts, with_conditions=False) + _CALL * facts.costly_calls
        again = (times - 1) * once
        traffic = bytes_of(facts.dtype) * (1 + len(read))
        if once > _LOOKED_UP and again / self.machine.flops > traffic / self.machine.bandwidth:
            return f"{readers} would compute it {times} times, which takes longer than to store and load it"
        if is_long_together(facts, [reader for reader, _ in read]):
            return f"{readers} takes it in so many places that its instructions would be too many"
        return None
