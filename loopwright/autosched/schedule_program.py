"""apply: schedule every block of a program by rule, with no measurement.

plan = autosched.apply(mod, "llvm")
plan.mod            the scheduled module
plan.schedule       the Schedule: its trace can be printed, edited and replayed
plan.explain()      in words, why each size was chosen and how near the limit it should run
plan.show()         the same as a table, and the loops that came of it
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loopwright.autosched.choices import Choices, current_choices
from loopwright.autosched.decision import Decision
from loopwright.autosched.gpu import GpuMachine
from loopwright.autosched.gpu.idiom_kernels import with_idiom_kernels
from loopwright.autosched.gpu.inlining import GpuPrices
from loopwright.autosched.gpu.rules import GPU_RULES
from loopwright.autosched.inlining import CpuPrices, inline_cheap
from loopwright.autosched.known import Known, known_schedules
from loopwright.autosched.known_traces import replay_known
from loopwright.autosched.machine import Machine
from loopwright.autosched.plain_form import plain_form
from loopwright.autosched.program import Program
from loopwright.autosched.rule import schedule_all
from loopwright.autosched.rules import RULES
from loopwright.autosched.rules.winograd.allowed import largest_tile
from loopwright.autosched.wrapped_indices import wrapped_as_choices
from loopwright.ir import IRModule, PrimFunc, Var, deep
from loopwright.ir.rare_collections import rare_collections
from loopwright.runtime.shown import view
from loopwright.schedule import Schedule, Trace
from loopwright.target import Target
from loopwright.te import Tensor, create_prim_func

if TYPE_CHECKING:
    from loopwright.display.sheet import Sheet


@dataclass(frozen=True)
class Plan:
    """A scheduled program, and the reasons."""

    schedule: Schedule
    machine: Machine | GpuMachine
    decisions: tuple[Decision, ...]
    start: IRModule | PrimFunc  # what was scheduled: a trace is replayed on Schedule(plan.start)

    @property
    def mod(self) -> IRModule:
        result = self.schedule.mod
        return with_idiom_kernels(result, self.machine) if isinstance(self.machine, GpuMachine) else result

    @property
    def trace(self) -> Trace:
        return self.schedule.trace

    def explain(self) -> str:
        """Why everything is as it is, in words."""
        return "\n".join(line for decision in self.decisions for line in decision.lines())

    def show(self, style: str | None = None) -> None:
        """Show the decisions and the loops that came of them."""
        self._sheet().show(style)

    def _repr_html_(self) -> str:
        return self._sheet().html()

    def _sheet(self) -> Sheet:
        sheet: Sheet = view("plan", self)
        return sheet


@rare_collections
@deep
def apply(
    mod: IRModule | PrimFunc | Tensor | Sequence[Tensor | Var],
    target: Target | str | None = None,
    *,
    winograd: bool | int = False,
) -> Plan:
    """The program with every block scheduled for `target`; each step is proved, as if you had written it.

    A list of tensors of te is the function whose parameters they are, as it is for `loopwright.build`. Reductions are
    brought into a plain form first: axes count from 0, and `where=` chooses between a value and what changes nothing.
    `winograd=True` allows convolutions to be computed from tiles of up to 4 × 4 results where that pays: equal over the
    real numbers, with other rounding (see "Winograd" in the documentation). A number says the largest tile: 2, 4
    or 6.
    """
    chosen = Target(target) if target is not None else Target.current(allow_none=True) or Target("llvm")
    machine = GpuMachine.of(chosen) if chosen.kind == "cuda" else Machine.of(chosen)
    largest = largest_tile(winograd)
    program = _program(mod)
    start = wrapped_as_choices(plain_form(program))
    sch = Schedule(start)
    decisions: list[Decision] = []
    for name in list(sch.views()):
        sch.work_on(name)
        known = _known(program, name, chosen, largest)
        if known is not None and known.trace is not None and replay_known(sch, name, known, decisions):
            continue
        with Choices(known.decisions) if known is not None and known.decisions is not None else nullcontext():
            if isinstance(machine, GpuMachine):
                sch = inline_cheap(sch, name, GpuPrices(machine), decisions)
                schedule_all(GPU_RULES, sch, Program(sch, name), machine, decisions)
            else:
                sch = inline_cheap(sch, name, CpuPrices(machine), decisions)
                schedule_all(RULES, sch, Program(sch, name, largest), machine, decisions)
    return Plan(sch, machine, tuple(decisions), start)


def _known(program: IRModule | PrimFunc, name: str, target: Target, winograd: int) -> Known | None:
    """What a source knows of one function; nothing while a search decides."""
    source = known_schedules()
    if source is None or current_choices() is not None:
        return None
    function = program if isinstance(program, PrimFunc) else program[name]
    return source.find(function, target, winograd) if isinstance(function, PrimFunc) else None


def _program(given: IRModule | PrimFunc | Tensor | Sequence[Tensor | Var]) -> IRModule | PrimFunc:
    """The program that is meant; what is none is left for Schedule to refuse."""
    if isinstance(given, Tensor):
        return create_prim_func([given])
    if isinstance(given, (list, tuple)) and given and all(isinstance(item, (Tensor, Var)) for item in given):
        return create_prim_func(given)
    return given  # type: ignore[return-value]
