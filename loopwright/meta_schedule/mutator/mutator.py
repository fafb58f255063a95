"""Mutator: changes one decision of a trace."""

from __future__ import annotations

import copy
import random
from typing import Any, ClassVar

from loopwright.meta_schedule.derived import Part
from loopwright.meta_schedule.errors import MethodNotDefined, UnknownTargetRules
from loopwright.schedule import Instruction, Trace


class Mutator(Part):
    """Derive from `PyMutator` for one of yours."""

    MutatorType = object
    sets: ClassVar[dict[str, Any]] = {}
    _random: random.Random | None = None

    def apply(self, trace: Trace) -> Trace | None:
        """The trace with another decision; None where there is nothing to change."""
        raise MethodNotDefined(f"{type(self).__name__}'s apply is not defined")

    def clone(self) -> Any:
        result = copy.copy(self)
        result._context = result._random = None
        return result

    @property
    def random(self) -> random.Random:
        """Random numbers of its own, from the seed of the context."""
        if self._random is None:
            self._random = random.Random(0 if self._context is None else self._context.fork_seed())
        return self._random

    @staticmethod
    def create(kind: str) -> dict[Mutator, float]:
        """The mutators for a kind of target, with their probabilities."""
        if kind not in Mutator.sets:
            raise UnknownTargetRules(kind)
        return {make(): share for make, share in Mutator.sets[kind]}


create = Mutator.create


class PyMutator(Mutator):
    """What mutators of the user's derive from."""


def steps_of(trace: Trace, kind: str) -> list[Instruction]:
    """The steps of a kind."""
    return [inst for inst in trace.insts if str(inst.kind) == kind]


def annotated_samples(trace: Trace, *keys: str) -> list[Instruction]:
    """The samples whose result an annotation with one of the keys holds."""
    held = [inst.attrs["ann_val"] for inst in steps_of(trace, "Annotate") if inst.attrs["ann_key"] in keys]
    held += [inst.inputs.get("ann_val") for inst in steps_of(trace, "Annotate") if inst.attrs["ann_key"] in keys]
    samples = steps_of(trace, "SampleCategorical")
    return [one for one in samples if any(one.outputs[0] is value for value in held)]
