"""MeasureCallback: what is done with each round of measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from loopwright.meta_schedule.builder import BuilderResult
from loopwright.meta_schedule.derived import Part
from loopwright.meta_schedule.errors import MethodNotDefined, UnknownKind
from loopwright.meta_schedule.runner import RunnerResult


class MeasureCallback(Part):
    """Derive from `PyMeasureCallback` for one of yours."""

    CallbackListType = object
    kinds: ClassVar[dict[str, Callable[..., Any]]] = {}  # by name; each kind enters itself

    def apply(
        self,
        task_scheduler: Any,
        task_id: int,
        measure_candidates: Sequence[Any],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """A round of one task has been measured."""
        raise MethodNotDefined(f"{type(self).__name__}'s apply is not defined")

    @staticmethod
    def create(kind: Any) -> list[MeasureCallback]:
        """Callbacks of a kind: "default", "none", or a list of them, which stays."""
        if isinstance(kind, MeasureCallback):
            return [kind]
        if isinstance(kind, (list, tuple)):
            return [one for part in kind for one in MeasureCallback.create(part)]
        if kind == "default":
            return [make() for make in MeasureCallback.kinds.values()]
        if kind == "none":
            return []
        if kind not in MeasureCallback.kinds:
            raise UnknownKind("measure callback", kind, ["default", *MeasureCallback.kinds, "none"])
        return [MeasureCallback.kinds[kind]()]


create = MeasureCallback.create


class PyMeasureCallback(MeasureCallback):
    """What callbacks of the user's derive from."""
