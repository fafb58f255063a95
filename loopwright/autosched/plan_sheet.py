"""What a plan shows of itself: what was decided for which blocks and why, and the loops that came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopwright.display.sheet import Code, Part, Sheet, Table, heading
from loopwright.schedule.page.loop_tree import loop_tree, tree_text

if TYPE_CHECKING:
    from loopwright.autosched.decision import Decision
    from loopwright.autosched.schedule_program import Plan


def plan_sheet(plan: Plan) -> Sheet:
    """The plan at a glance."""
    views = plan.schedule.views()
    count = f"{len(plan.decisions)} decision{'s' * (len(plan.decisions) != 1)}"
    parts: list[Part] = [heading(f"Plan for {', '.join(views)}", count), _decisions(plan.decisions)]
    for name, view in views.items():
        parts += [heading(f"Loops of {name}"), Code(tree_text(loop_tree(view)), "text")]
    return Sheet(*parts)


def _decisions(decisions: tuple[Decision, ...]) -> Table:
    rows: list[tuple[str, ...]] = []
    for decision in decisions:
        message = [(choice.what, choice.why) for choice in decision.choices]
        if decision.roofline is not None:
            share = f"about {decision.roofline.share:.0%} of the roofline is expected"
            message.append((f"limit: {decision.roofline.bound}", share))
        first = (", ".join(decision.blocks), decision.rule)
        for number, (what, why) in enumerate(message or [("", "")]):
            rows.append((*(first if number == 0 else ("", "")), what, why))
    return Table(("blocks", "rule", "choice", "why"), tuple(rows))
