"""Inlining: element-wise blocks go into the expressions that read them, where that takes no longer than a buffer.

    B[i] = A[i] * 2; C[i] = B[i] + 1        →        C[i] = A[i] * 2 + 1

What is read at several places is computed at each of them, and so has a price (`inline_cost.py`). What is costly (a
call such as exp) stays a block when it would be computed again; so does an operand of a product, which is read once for
each row or column of the other: it is computed where the operand is packed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from loopwright.arith.affine import Form
from loopwright.autosched.decision import Decision
from loopwright.autosched.facts import Access, BlockFacts, const
from loopwright.autosched.inline_cost import (
    MAX_TAPS,
    Read,
    is_cheaper_again,
    is_long,
    is_long_together,
    locates_several,
    places,
    times_computed,
    times_repeated,
)
from loopwright.autosched.machine import Machine
from loopwright.autosched.program import Entry, Program
from loopwright.ir import (
    BufferStore,
    CompareExpr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Node,
    Var,
    any_node,
)
from loopwright.schedule import Schedule, ScheduleError

_USES_OF_A_TABLE: Final = 4  # of each of its numbers, at least
MANY: Final = 2**31  # what a size that is known only when the program runs may be


class Prices(Protocol):
    """What a machine thinks of computing values where they are read."""

    def may_inline(self, entry: Entry, program: Program) -> bool:
        """Whether the block may go into its readers, and looks as if that paid."""

    def why_kept(self, entry: Entry, program: Program, readers: str) -> str | None:
        """Why it is better computed once, into a buffer; None where it is not."""


class CpuPrices:
    """A CPU's: what is computed again has a price in cycles of a core."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def may_inline(self, entry: Entry, program: Program) -> bool:
        return _is_free(entry, program)

    def why_kept(self, entry: Entry, program: Program, readers: str) -> str | None:
        return _reason_to_keep(entry, program, self.machine, readers)


def inline_cheap(sch: Schedule, func_name: str, prices: Prices, decisions: list[Decision]) -> Schedule:
    """The schedule with everything inlined that costs nothing to inline; a step that is refused is left out."""
    done: set[str] = set()
    while True:
        program = Program(sch, func_name)
        left = [entry for entry in program.entries if entry.name not in done]
        chosen = next((entry for entry in left if prices.may_inline(entry, program)), None)
        if chosen is None:
            return sch
        done.add(chosen.name)
        readers = ", ".join(reader.name for reader in program.readers(chosen.writes[0]))
        number = is_number(chosen)
        kept = None if number else prices.why_kept(chosen, program, readers)
        if kept is not None:
            decision = Decision((chosen.name,), "not inlined")
            decision.chose("kept in a buffer", kept)
            decisions.append(decision)
            continue
        times = 1 if number else times_computed(facts_in(chosen), places(reads_of(chosen, program)))
        trial = sch.copy()
        try:
            trial.compute_inline(trial.get_block(chosen.name, func_name))
        except ScheduleError:
            continue
        sch = trial
        decision = Decision((chosen.name,), "inlined")
        why = "nothing is recomputed, and no buffer is needed"
        decision.chose(f"into {readers}", why if times == 1 else f"computed {times} times: cheaper than a buffer")
        decisions.append(decision)


def _reason_to_keep(entry: Entry, program: Program, machine: Machine, readers: str) -> str | None:
    """Why a block that could be inlined is better computed once, into a buffer; None where it is not."""
    facts, read = facts_in(entry), places(reads_of(entry, program))
    if len(read) > MAX_TAPS and has_conditions(facts):
        return f"{readers} reads it at {len(read)} indices, and would evaluate its conditions at each"
    if len(read) > 1 and facts.reads and not is_cheaper_again(facts, read, machine):
        return f"{readers} would compute it {len(read)} times, which takes longer than to store and load it"
    if is_long(facts) and times_repeated(facts, read) > 1:
        times = times_computed(facts, read)
        return f"{readers} would compute its many instructions {times} times, which takes longer than to load it"
    if is_long_together(facts, [reader for reader, _ in read]):
        return f"{readers} takes it in so many places that its instructions would be too many"
    if is_long(facts) and any(locates_several(reader, facts.write.buffer) for reader, _ in read):
        return f"{readers} looks up several cells by it: an index in memory is nearer than one in a vector's lane"
    return None


def _is_free(entry: Entry, program: Program) -> bool:
    """Whether it may be inlined, and none of its dear functions is computed again."""
    if is_number(entry):
        return not program.is_output(entry.writes[0]) and bool(program.readers(entry.writes[0]))
    facts = entry.facts
    if facts is None or not facts.is_injective or len(facts.stores) != 1:
        return False
    buffer = facts.write.buffer
    readers = program.readers(buffer)
    if program.is_output(buffer) or not readers or len(program.writers(buffer)) != 1:
        return False
    if not writes_each_cell(facts) or not all(reader.facts is not None for reader in readers):
        return False
    reads = reads_of(entry, program)
    if not facts.reads:
        return facts.costly_calls == 0 and not _is_table(facts, readers)  # numbers that follow from the position
    if len(reads) == 1:
        reader, access = reads[0]
        if has_conditions(facts) and is_window(reader, access):
            return False  # padding: its conditions are better decided once for a tile of windows
        return reads_once(reader, access) or (facts.costly_calls == 0 and reader.is_injective)
    return facts.costly_calls == 0 and all(
        reader.is_injective or reads_once(reader, access) for reader, access in reads
    )


def _is_table(facts: BlockFacts, readers: Sequence[Entry]) -> bool:
    """Whether numbers take divisions to compute, and are used so often that they are better looked up."""
    size = facts.extent(facts.axes)
    uses = [reader.facts.extent(reader.facts.axes) for reader in readers if reader.facts is not None]
    is_used_again = size is not None and all(count is not None and count >= _USES_OF_A_TABLE * size for count in uses)

    def divides(node: Node) -> bool:
        by = const(node.b) if isinstance(node, (FloorDiv, FloorMod)) else None
        return by is not None and by & (by - 1) != 0

    return is_used_again and any_node(facts.store.value, divides)


def is_number(entry: Entry) -> bool:
    """Whether the block writes a number of the program into a buffer of its own, as a constant of a graph does."""
    body = entry.realize.block.body
    return isinstance(body, BufferStore) and not body.buffer.shape and isinstance(body.value, (FloatImm, IntImm))


def facts_in(entry: Entry) -> BlockFacts:
    assert entry.facts is not None
    return entry.facts


def reads_of(entry: Entry, program: Program) -> list[Read]:
    """Every read of what the block writes."""
    facts = facts_in(entry)
    readers = program.readers(facts.write.buffer)
    return [(facts_in(reader), access) for reader in readers for access in _accesses(reader, facts)]


def _accesses(reader: Entry, of: BlockFacts) -> list[Access]:
    return [access for access in (reader.facts.reads if reader.facts else ()) if access.buffer is of.write.buffer]


def writes_each_cell(facts: BlockFacts) -> bool:
    """Whether the block's axes are the indices of the buffer, one by one, so it can be written into its readers."""
    axes = [axis.var for axis in facts.axes]
    return len(axes) == len(facts.write.indices) and all(
        index is axis for index, axis in zip(facts.write.indices, axes, strict=True)
    )


def reads_once(reader: BlockFacts, access: Access) -> bool:
    """Whether no element is read by two iterations: every axis with more than one value moves the cell, on its own."""
    if not all(axis.extent == 1 or access.uses(axis.var) for axis in reader.axes):
        return False
    extents = {axis.var: axis.extent for axis in reader.axes}
    return not any(form is not None and _overlaps(form, extents) for form in access.forms)


def is_window(reader: BlockFacts, access: Access) -> bool:
    """Whether a window moves over the data: a result's axis and one of the reduction move the same index."""
    kinds = {axis.var: axis.is_reduce for axis in reader.axes}
    return any(form is not None and len({kinds.get(var) for var in form.variables()}) > 1 for form in access.forms)


def has_conditions(facts: BlockFacts) -> bool:
    """Whether the values depend on conditions."""
    return any_node(facts.store.value, lambda node: isinstance(node, CompareExpr))


def _overlaps(form: Form, extents: Mapping[Var, int | None]) -> bool:
    """Whether several axes move an index to the same cell, as the places and taps of a window do: `y + i`."""
    steps = []
    for term, step in form.terms.items():
        if not isinstance(term, Var):
            return False  # a quotient or remainder, as of a reshape
        extent = extents.get(term, 1)
        if extent != 1:
            steps.append((abs(step), extent or MANY))
    reach = 0
    for step, extent in sorted(steps):
        if step <= reach:
            return True
        reach += step * (extent - 1)
    return False
