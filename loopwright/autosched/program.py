"""Program: the blocks of a function in order, and who makes and who reads each buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from loopwright.autosched.facts import BlockFacts, facts_of, innermost_blocks
from loopwright.ir import BlockRealize, Buffer
from loopwright.schedule import Schedule
from loopwright.transform.parts.constant_prologue import constant_params
from loopwright.transform.parts.constant_work import look, top_of


@dataclass(frozen=True)
class Entry:
    """A block of the program; `facts` is None when it is not plain."""

    realize: BlockRealize
    facts: BlockFacts | None

    @property
    def name(self) -> str:
        return self.realize.block.name_hint

    @property
    def reads(self) -> Sequence[Buffer]:
        return [region.buffer for region in self.realize.block.reads]

    @property
    def writes(self) -> Sequence[Buffer]:
        return [region.buffer for region in self.realize.block.writes]


class Program:
    """A version of a function, as the rules see it."""

    def __init__(self, sch: Schedule, func_name: str, winograd: int = 0) -> None:
        self.winograd = winograd  # the largest tile of winograd that the caller allows; 0 for none
        self.func_name = func_name
        view = sch.view(func_name)
        self.function = view.function
        self.entries = [Entry(realize, facts_of(view, realize)) for realize in innermost_blocks(view)]
        self.parameters = set(view.function.buffer_map.values())
        top = top_of(view.function)
        # The memory of constants.
        self.constants = {*constant_params(view.function), *(top.constants() if top is not None else ())}

    def after(self, sch: Schedule) -> Program:
        """The same function as it is now, after steps that made new blocks."""
        return Program(sch, self.func_name, self.winograd)

    def is_output(self, buffer: Buffer) -> bool:
        """Whether the caller sees what is written there."""
        return buffer in self.parameters

    def writers(self, buffer: Buffer) -> Sequence[Entry]:
        return self._writers.get(buffer, ())

    def readers(self, buffer: Buffer) -> Sequence[Entry]:
        return self._readers.get(buffer, ())

    @cached_property
    def _writers(self) -> dict[Buffer, list[Entry]]:
        return _by_buffer([(entry, entry.writes) for entry in self.entries])

    @cached_property
    def _readers(self) -> dict[Buffer, list[Entry]]:
        return _by_buffer([(entry, entry.reads) for entry in self.entries])

    def is_read_by(self, buffer: Buffer, reader: Entry) -> bool:
        """Whether `reader` is the one block that reads the buffer."""
        return [entry.name for entry in self.readers(buffer)] == [reader.name]

    def entry(self, name: str) -> Entry:
        """The block of that name."""
        return next(entry for entry in self.entries if entry.name == name)

    def makers_of_constant(self, buffer: Buffer) -> list[Entry] | None:
        """The blocks that make a buffer from constants alone, none for a constant; None when more takes part in it."""
        makers: list[Entry] = []
        pending, seen = [buffer], {buffer}
        while pending:
            read = pending.pop()
            if read.data in self.constants:
                continue
            writers = self.writers(read)
            if not writers or read in self.parameters or any(len(maker.writes) != 1 for maker in writers):
                return None
            makers += writers
            new = [result for maker in writers for result in maker.reads if result not in seen]
            seen.update(new)
            pending += new
        return makers

    def is_made_early(self, buffer: Buffer, runs_here: bool) -> bool:
        """Whether the compiler itself will compute the buffer, so that calls find it ready."""
        makers = self.makers_of_constant(buffer)
        return makers is not None and all(_is_early(maker, runs_here) for maker in makers)


def _by_buffer(uses: Sequence[tuple[Entry, Sequence[Buffer]]]) -> dict[Buffer, list[Entry]]:
    """Who uses each buffer, each of them once."""
    result: dict[Buffer, list[Entry]] = {}
    for entry, buffers in uses:
        for buffer in dict.fromkeys(buffers):
            result.setdefault(buffer, []).append(entry)
    return result


def _is_early(entry: Entry, runs_here: bool) -> bool:
    if entry.facts is None:
        return False
    work = look(entry.facts.loops[0] if entry.facts.loops else entry.realize)
    return work.can_be_early and (runs_here or work.is_exact)
