"""Design spaces of programs, and whether they are those that are expected.

    sketches = generate_design_space("llvm", mod, target, types=ms.ScheduleRule)
    check_sketches(mod, sketches, expected_mods, expected_decisions)

A sketch is the expected one if it gives the expected program when its samples take the expected decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loopwright.ir import IRModule, PrimFunc, structural_equal
from loopwright.meta_schedule.schedule_rule import ScheduleRule
from loopwright.meta_schedule.space_generator import PostOrderApply
from loopwright.meta_schedule.tune_context import TuneContext
from loopwright.schedule import Schedule, ScheduleError, Trace
from loopwright.target import Target

Decisions = Sequence[tuple[str, Any]]


def get_rules(kind: str, types: type | tuple[type, ...]) -> list[ScheduleRule]:
    """The rules of a set that are of these types."""
    return [one for one in ScheduleRule.create(kind) if isinstance(one, types)]


def generate_design_space(
    kind: str,
    mod: IRModule | PrimFunc,
    target: Target,
    types: type | tuple[type, ...] | None,
    sch_rules: Sequence[ScheduleRule] | None = None,
) -> list[Schedule]:
    """The design spaces that some rules make: those of a set that are of these types, or those given."""
    rules = list(sch_rules) if sch_rules is not None else get_rules(kind, types or ScheduleRule)
    space = PostOrderApply(sch_rules=rules, postprocs=[], mutator_probs={})
    return TuneContext(mod, target=target, space_generator=space, task_name="test").generate_design_space()


def check_sketches(
    mod: IRModule | PrimFunc,
    sketches: Sequence[Schedule],
    expected_mods: Sequence[IRModule | PrimFunc],
    expected_decisions: Sequence[Decisions],
    *,
    debug_mask: str | int = "none",
) -> None:
    """AssertionError where there are others than the expected ones, or not as many."""
    assert len(expected_mods) == len(expected_decisions)
    assert len(sketches) == len(expected_mods), f"{len(sketches)} sketches, expected {len(expected_mods)}"
    left = list(sketches)
    for number, (expected, decisions) in enumerate(zip(expected_mods, expected_decisions, strict=True)):
        for sketch in left:
            made = _replayed(mod, sketch, decisions)
            if made is not None and structural_equal(_main(made), _main(expected)):
                left.remove(sketch)
                break
        else:
            raise AssertionError(f"no sketch is the expected one, number {number}")


def print_sketches(sketches: Sequence[Schedule]) -> None:
    """The program and the samples of each."""
    for number, sketch in enumerate(sketches):
        print(f"#{number}")
        sketch.show()
        for position, decision in sorted(sketch.trace.decisions.items()):
            print(sketch.trace.insts[position].kind.name, decision)


def _replayed(mod: IRModule | PrimFunc, sketch: Schedule, decisions: Decisions) -> IRModule | None:
    trace = Trace(sketch.trace.insts, {})
    samples = [number for number, one in enumerate(trace.insts) if str(one.kind).startswith("Sample")]
    if [trace.insts[number].kind.name for number in samples] != [kind for kind, _ in decisions]:
        return None
    for number, (_, decision) in zip(samples, decisions, strict=True):
        trace.decisions[number] = decision
    sch = Schedule(mod, enable_check=False, error_render_level="none")
    try:
        trace.apply_to_schedule(sch)
    except ScheduleError:
        return None
    return sch.mod


def _main(mod: IRModule | PrimFunc) -> PrimFunc:
    """The function without what is no part of the program: its name, and that proofs were left out."""
    function = mod if isinstance(mod, PrimFunc) else dict(mod.functions_items())["main"]
    for key in ("global_symbol", "tir.noalias", "loopwright.unproved"):
        function = function.without_attr(key)
    return function
