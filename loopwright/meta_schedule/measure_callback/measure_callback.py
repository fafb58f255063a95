"""MeasureCallback: what is done with each round of measurements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loopwright.meta_schedule.builder import BuilderResult
from loopwright.meta_schedule.derived import Part
from loopwright.meta_schedule.errors import MethodNotDefined, UnknownKind
from loopwright.meta_schedule.runner import RunnerResult


class MeasureCallback(Part):
    """Derive from `PyMeasureCallback` for one of yours."""

    CallbackListType = object

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
        from loopwright.meta_schedule.measure_callback import usual  # callbacks, which derive from this class

        if isinstance(kind, MeasureCallback):
            return [kind]
        if isinstance(kind, (list, tuple)):
            return [one for part in kind for one in MeasureCallback.create(part)]
        if kind == "default":
            return [usual.AddToDatabase(), usual.RemoveBuildArtifact(), usual.UpdateCostModel()]
        single = {
            "add_to_database": usual.AddToDatabase,
            "remove_build_artifact": usual.RemoveBuildArtifact,
            "update_cost_model": usual.UpdateCostModel,
        }
        if kind in single:
            return [single[kind]()]
        if kind == "none":
            return []
        raise UnknownKind("measure callback", kind, ["default", *single, "none"])


create = MeasureCallback.create


class PyMeasureCallback(MeasureCallback):
    """What callbacks of the user's derive from."""
