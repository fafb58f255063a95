"""SpaceGenerator: the design spaces of a program: schedules with samples whose decisions a search draws anew."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from loopwright.ir import IRModule
from loopwright.meta_schedule.derived import Part
from loopwright.meta_schedule.errors import MethodNotDefined, UnknownKind
from loopwright.meta_schedule.mutator import Mutator
from loopwright.meta_schedule.postproc import Postproc
from loopwright.meta_schedule.rule_sets import kind_of_target
from loopwright.meta_schedule.schedule_rule import ScheduleRule
from loopwright.schedule import Schedule

FROM_TARGET = "from-target"


class SpaceGenerator(Part):
    """Derive from `PySpaceGenerator` for one of yours.

    `sch_rules`, `postprocs` and `mutator_probs` are lists, the name of a set of them ("llvm", "cuda"), "from-target",
    or None for none.
    """

    SpaceGeneratorType = object
    kinds: ClassVar[dict[str, Callable[..., Any]]] = {}  # by name; each kind enters itself
    sch_rules: list[ScheduleRule] | None = None
    postprocs: list[Postproc] | None = None
    mutator_probs: dict[Mutator, float] | None = None
    _given: tuple[Any, Any, Any] = (None, None, None)

    def __init__(self, sch_rules: Any = None, postprocs: Any = None, mutator_probs: Any = None) -> None:
        self._given = (sch_rules, postprocs, mutator_probs)
        self.sch_rules = _listed(sch_rules, ScheduleRule)
        self.postprocs = _listed(postprocs, Postproc)
        self.mutator_probs = _shares(mutator_probs)

    def _initialize_with_tune_context(self, context: Any) -> None:
        self._context = context
        rules, postprocs, mutators = self._given
        if FROM_TARGET in (_name(rules), _name(postprocs), _name(mutators)) and context.target is not None:
            kind = kind_of_target(context.target)
            if _name(rules) == FROM_TARGET:
                self.sch_rules = ScheduleRule.create(kind)
            if _name(postprocs) == FROM_TARGET:
                self.postprocs = Postproc.create(kind)
            if _name(mutators) == FROM_TARGET:
                self.mutator_probs = Mutator.create(kind)
        for part in [*(self.sch_rules or ()), *(self.postprocs or ()), *(self.mutator_probs or ())]:
            part.initialize_with_tune_context(context)

    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        """The design spaces of a program."""
        raise MethodNotDefined(f"{type(self).__name__}'s GenerateDesignSpace method not implemented!")

    def clone(self) -> Any:
        """The same settings, with parts of its own."""
        result = copy.copy(self)
        result._context = None
        result.sch_rules = None if self.sch_rules is None else [one.clone() for one in self.sch_rules]
        result.postprocs = None if self.postprocs is None else [one.clone() for one in self.postprocs]
        mutators = self.mutator_probs
        result.mutator_probs = None if mutators is None else {one.clone(): share for one, share in mutators.items()}
        return result

    @staticmethod
    def create(kind: Any = "post-order-apply", *args: Any, **kwargs: Any) -> SpaceGenerator:
        """A generator of a kind: "post-order-apply", "union", the name of a set of rules, or a function."""
        if isinstance(kind, SpaceGenerator):
            return kind
        if callable(kind):
            given = {"sch_rules": None, "postprocs": None, "mutator_probs": None, **kwargs}
            made: SpaceGenerator = SpaceGenerator.kinds["schedule_fn"](kind, *args, **given)
        elif kind in SpaceGenerator.kinds:
            made = SpaceGenerator.kinds[kind](*args, **kwargs)
        elif kind in ScheduleRule.sets:
            made = SpaceGenerator.kinds["post-order-apply"](sch_rules=kind, postprocs=kind, mutator_probs=kind)
        else:
            raise UnknownKind("space generator", kind, [*SpaceGenerator.kinds, *ScheduleRule.sets])
        return made


create = SpaceGenerator.create


class PySpaceGenerator(SpaceGenerator):
    """What generators of the user's derive from."""

    def _initialize_with_tune_context(self, context: Any) -> None:
        raise MethodNotDefined("PySpaceGenerator's InitializeWithTuneContext method not implemented!")


def _name(given: Any) -> str:
    return given if isinstance(given, str) else ""


def _listed(given: Any, part: Any) -> Any:
    """The parts that are meant, as far as that can be said without a target."""
    if isinstance(given, str):
        return None if given == FROM_TARGET else part.create(given)
    return None if given is None else list(given)


def _shares(given: Any) -> dict[Mutator, float] | None:
    if isinstance(given, Mapping):
        return {one: float(share) for one, share in given.items()}
    return _listed(given, Mutator) if isinstance(given, str) else None
