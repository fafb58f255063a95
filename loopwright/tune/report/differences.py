"""differences: what the best schedule does differently from the rule's, in words, choice by choice.

    4 × 48 tiles, because 24 of 32 registers are accumulators        of the rule
    6 × 32 tiles, because …                                          of the best

Both are explained by the rules that made them. A decision that no explanation mentions (a prefetch distance, say) is
given by the names of its fields.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from loopwright.autosched import Decision, Plan
from loopwright.schedule import ScheduleError
from loopwright.tune.candidate import Candidate
from loopwright.tune.search import TaskSearch
from loopwright.tune.space import RuleSpace


class Difference(NamedTuple):
    """One thing that was chosen otherwise; "" where one of them has nothing in its place."""

    blocks: str
    rule: str
    best: str


def differences(search: TaskSearch) -> list[Difference]:
    """What the incumbent of a search does otherwise than the rule; none where it is the rule's own schedule."""
    incumbent, space = search.incumbent, search.spaces[0]
    if incumbent is None or incumbent.built is search.rule or not isinstance(space, RuleSpace):
        return []
    candidate = incumbent.candidate
    if candidate.space != space.name:
        return [Difference("", "the rules' schedule", f"a schedule of the space {candidate.space!r}")]
    result = _fields_that_differ(space, candidate)
    try:
        plan = space.plan_of(candidate)
    except ScheduleError:  # it was proved when it was measured: the rules have changed since
        return result
    return plans_that_differ(space.plan, plan) + result


def plans_that_differ(rule: Plan, best: Plan) -> list[Difference]:
    """The choices in which two plans of one program differ."""
    result = []
    theirs = {decision.blocks: decision for decision in best.decisions}
    for decision in rule.decisions:
        other = theirs.pop(decision.blocks, None)
        result += _choices_that_differ(decision, other) if other is not None else [_only(decision, "rule")]
    return result + [_only(decision, "best") for decision in theirs.values()]


def _choices_that_differ(rule: Decision, best: Decision) -> list[Difference]:
    blocks = ", ".join(rule.blocks)
    result = [] if rule.rule == best.rule else [Difference(blocks, rule.rule, best.rule)]
    before, after = _said(rule), _said(best)
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            count = max(j - i, m - k)
            olds, news = _filled(before[i:j], count), _filled(after[k:m], count)
            result += [Difference(blocks, old, new) for old, new in zip(olds, news, strict=True)]
    return result


def _said(decision: Decision) -> list[str]:
    return [f"{choice.what}: {choice.why}" if choice.why else choice.what for choice in decision.choices]


def _filled(lines: Sequence[str], count: int) -> list[str]:
    return [*lines, *[""] * (count - len(lines))]


def _only(decision: Decision, side: str) -> Difference:
    blocks = ", ".join(decision.blocks)
    return Difference(blocks, decision.rule, "") if side == "rule" else Difference(blocks, "", decision.rule)


def _fields_that_differ(space: RuleSpace, candidate: Candidate) -> list[Difference]:
    """The decisions themselves: the fields at each point in which the candidate is not what is usual."""
    result = []
    decisions = candidate.decisions
    for point in [*space.forks, *space.points]:
        usual, picked = point.candidates[point.usual], decisions.get(point.key)
        if picked is None:
            continue
        names = [name for name in dict.fromkeys([*usual, *picked]) if usual.get(name) != picked.get(name)]
        if names:
            label = point.key.split(".", 1)[1].replace("_", " ")
            result.append(Difference(label, _named(usual, names), _named(picked, names)))
    return result


def _named(fields: dict[str, Any], names: Sequence[str]) -> str:
    """`mr 6, vectors 4`; a point with one field says its value alone."""
    if names == ["value"]:
        return _word(fields.get("value"))
    return ", ".join([f"{name.replace('_', ' ')} {_word(fields.get(name))}" for name in names])


def _word(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, list):
        return " × ".join([_word(one) for one in value])
    return value if isinstance(value, str) else json.dumps(value)
