"""SpaceGeneratorUnion: the design spaces of several generators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loopwright.ir import IRModule
from loopwright.meta_schedule.space_generator.space_generator import FROM_TARGET, SpaceGenerator
from loopwright.schedule import Schedule


class SpaceGeneratorUnion(SpaceGenerator):
    """All that any of them generates."""

    def __init__(
        self,
        space_generators: Sequence[Any],
        sch_rules: Any = FROM_TARGET,
        postprocs: Any = FROM_TARGET,
        mutator_probs: Any = FROM_TARGET,
    ) -> None:
        super().__init__(sch_rules, postprocs, mutator_probs)
        self.space_generators = [SpaceGenerator.create(one) for one in space_generators]

    def _initialize_with_tune_context(self, context: Any) -> None:
        super()._initialize_with_tune_context(context)
        for one in self.space_generators:
            one.initialize_with_tune_context(context)

    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        return [sch for one in self.space_generators for sch in one.generate_design_space(mod)]


SpaceGenerator.kinds["union"] = SpaceGeneratorUnion
