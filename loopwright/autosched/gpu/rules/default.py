"""default: a nest that no other rule knows gets blocks of 256 threads over its outer loops, or runs in one thread.

for i, j in T.grid(100, 70):         →    for b in T.thread_binding(28, thread="blockIdx.x"):
    with T.block("B"):                        for t in T.thread_binding(256, thread="threadIdx.x"):
        …                                         with T.block("B"): …   # where b * 256 + t < 7000
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loopwright.analysis.thread_axes import has_threads
from loopwright.autosched.decision import ChoiceKind, Decision, RuleKind
from loopwright.autosched.gpu.machine import USUAL_THREADS, GpuMachine
from loopwright.autosched.gpu.nests import independent_loops, length_of_nest, nest_of
from loopwright.autosched.gpu.roofline import note_roofline
from loopwright.autosched.gpu.rule import GpuRule
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.plain import RUNS_ONCE
from loopwright.autosched.small_steps import fused
from loopwright.ir import BlockRealize, collect_statements
from loopwright.schedule import BlockRV, LoopRV, Schedule


class AsBound:
    """Takes a nest with threads, and changes nothing."""

    name = "threads as written"
    kind = RuleKind.AS_WRITTEN

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        nest = nest_of(program.function, pending[0])
        return length_of_nest(nest, pending) if nest is not None and has_threads(nest) else 0

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: GpuMachine, decision: Decision
    ) -> None:
        decision.chose("no steps", "its loops are bound to threads already", ChoiceKind.NO_STEPS)


class DefaultBinding:
    """Takes a nest whose outer loops do no reduction, and spreads them over blocks of threads.

    All but `left_out` of them: where the engine refuses to bind all loops, those outside may still be independent.
    """

    name = "default binding"

    def __init__(self, left_out: int = 0) -> None:
        self.left_out = left_out

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        nest = nest_of(program.function, pending[0])
        if nest is None or len(independent_loops(nest)) <= self.left_out:
            return 0
        return length_of_nest(nest, pending)

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: GpuMachine, decision: Decision
    ) -> None:
        nest = nest_of(program.function, entries[0])
        assert nest is not None
        loops = _loops(sch, entries[0], program)
        count = len(independent_loops(nest)) - self.left_out
        names = ", ".join([loop.name for loop in loops[:count]])
        threads = machine.threads(USUAL_THREADS)
        outer, inner = sch.split(fused(sch, loops[:count]), [None, threads])
        sch.bind(outer, "blockIdx.x")
        sch.bind(inner, "threadIdx.x")
        decision.chose(f"{names} over blocks of {threads} threads", "no other rule knows what it computes")
        facts = [entry.facts for entry in entries if entry.facts is not None]
        if len(facts) == len(entries):
            note_roofline(decision, facts, machine, share=0.3)


class OneThread:
    """Takes every nest, and runs it in one thread."""

    name = "one thread"

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        nest = nest_of(program.function, pending[0])
        return length_of_nest(nest, pending) if nest is not None else 1

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: GpuMachine, decision: Decision
    ) -> None:
        if nest_of(program.function, entries[0]) is None:
            decision.chose("no steps", "the function is no root block: it runs in one thread", ChoiceKind.NO_STEPS)
            return
        loops = _loops(sch, entries[0], program)
        sch.bind(sch.add_unit_loop(loops[0] if loops else _outermost(sch, entries[0], program)), "threadIdx.x")
        why = "no loop is proved to be independent" if loops else RUNS_ONCE
        decision.chose("one thread", why, ChoiceKind.ONE_THREAD)


class Unbound:
    """Takes a nest that even one thread may not run, and changes nothing: it reads memory that ends with a kernel.

    Lowering says so, in terms of kernels and scopes.
    """

    name = "as written"
    kind = RuleKind.AS_WRITTEN

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        nest = nest_of(program.function, pending[0])
        return length_of_nest(nest, pending) if nest is not None else 1

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: GpuMachine, decision: Decision
    ) -> None:
        decision.chose("no steps", "one thread would compute something else", ChoiceKind.NO_STEPS)


def _loops(sch: Schedule, entry: Entry, program: Program) -> list[LoopRV]:
    return list(sch.get_loops(_outermost(sch, entry, program)))


def _outermost(sch: Schedule, entry: Entry, program: Program) -> BlockRV:
    """The first block of the nest right below the root."""
    nest = nest_of(program.function, entry)
    assert nest is not None
    return sch.get_block(collect_statements(nest, BlockRealize)[0].block.name_hint)


DEFAULT_RULES: Final[list[GpuRule]] = [
    AsBound(),  # first: what somebody bound stays as it is
    DefaultBinding(),
    DefaultBinding(left_out=1),
    DefaultBinding(left_out=2),
    DefaultBinding(left_out=3),
    OneThread(),
    Unbound(),  # last: it takes whatever is left
]
