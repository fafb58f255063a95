"""Whether imported models carry the names of the nodes that their calls come from."""

from __future__ import annotations

from loopwright.ir.pass_context import PassContext


def enable_span_filling() -> PassContext:
    """A context in which importers name calls after their nodes, as they do by themselves."""
    return PassContext(config={"relay.frontend.fill_span": True})


def disable_span_filling() -> PassContext:
    """A context in which importers leave the spans of calls empty."""
    return PassContext(config={"relay.frontend.fill_span": False})
