"""ScheduleProtocol: what refusals and pages need of a schedule. The engine imports both, so they cannot import it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from loopwright.ir import GlobalVar, IRModule
from loopwright.schedule.handles import BlockRV, LoopRV
from loopwright.schedule.trace.record import Refused
from loopwright.schedule.trace.trace import Instruction, StepRunner, Trace
from loopwright.schedule.view import View


class ScheduleProtocol(StepRunner, Protocol):
    """A program, the steps done to it, and those that may be tried on a copy."""

    _refused: tuple[Refused, ...]

    @property
    def mod(self) -> IRModule:
        """The program as it is now."""

    @property
    def trace(self) -> Trace:
        """The steps so far."""

    @property
    def func_working_on(self) -> GlobalVar | None:
        """The function that names are looked up in."""

    def view(self, func_name: str | None = None) -> View:
        """The current version of a function."""

    def views(self) -> Mapping[str, View]:
        """The current version of every function, by its name."""

    def changes(self) -> list[tuple[Instruction, Mapping[str, View]]]:
        """Each step that changed the program, with the functions as they were before it."""

    def _frozen(self, of: Mapping[str, View] | None = None) -> Callable[[], ScheduleProtocol]:
        """Makes schedules of the program as it is now (or was, `of` a version), with no steps yet."""

    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """The block called `name`."""

    def get_loops(self, block: BlockRV | str) -> list[LoopRV]:
        """The loops around a block, outermost first."""

    def split(self, loop: LoopRV, factors: Sequence[int | None]) -> list[LoopRV]:
        """One loop becomes a nest, outermost first."""

    def reorder(self, *ordered_loops: LoopRV) -> None:
        """The loops of a nest in another order."""

    def fission(self, loop: LoopRV, index: int = 1) -> list[LoopRV]:
        """A loop over several statements becomes two."""

    def vectorize(self, loop: LoopRV) -> None:
        """The iterations run as lanes in lockstep."""
