"""known_traces: the trace of a known schedule, replayed on a function.

A trace speaks of blocks and buffers by their names. Where an equal program has other names it does not fit; the rules
then schedule the function, and the plan says why.
"""

from __future__ import annotations

from typing import Any

from loopwright.autosched.decision import ChoiceKind, Decision
from loopwright.autosched.facts import innermost_blocks
from loopwright.autosched.known import Known
from loopwright.runtime.errors import LoopwrightError
from loopwright.schedule import Schedule, Trace


def replay_known(sch: Schedule, name: str, known: Known, decisions: list[Decision]) -> bool:
    """Do the steps of the trace on one function of a schedule; whether they fit, and were proved."""
    before, length = sch.view(name), len(sch.trace.insts)
    blocks = tuple([realize.block.name_hint for realize in innermost_blocks(before)])
    try:
        Trace.apply_json_to_schedule(in_function(known.trace, name), sch)
    except LoopwrightError as error:
        while sch.view(name) is not before:
            sch.undo()
        while len(sch.trace.insts) > length:
            sch.trace.pop()
        failed = Decision(blocks, "rules")
        failed.chose("a known schedule was refused", error.problem, ChoiceKind.REFUSED_RULE)
        decisions.append(failed)
        return False
    decision = Decision(blocks, "known schedule")
    decision.chose(known.why, "proved again here")
    decisions.append(decision)
    return True


def in_function(trace: Any, name: str) -> Any:
    """The trace with every block looked up in the function of that name; what is no trace stays for the replay."""
    if not (isinstance(trace, (list, tuple)) and trace and isinstance(trace[0], (list, tuple))):
        return trace
    return [[_step_in(step, name) for step in trace[0]], *trace[1:]]


def _step_in(step: Any, name: str) -> Any:
    if isinstance(step, (list, tuple)) and len(step) == 4 and step[0] == "GetBlock" and step[2]:
        kind, inputs, attrs, outputs = step
        return [kind, inputs, [attrs[0], name], outputs]
    return step
