"""`relay.build_config`: the older name of a `PassContext` for graphs."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.transform import PassContext

__all__ = ["build_config"]


def build_config(
    opt_level: int = 2,
    required_pass: Sequence[str] | None = None,
    disabled_pass: Sequence[str] | None = None,
    trace: object = None,
) -> PassContext:
    """Settings for the passes that run inside it; `trace` is an instrument's work now, and is not called."""
    return PassContext(opt_level, list(required_pass or ()), list(disabled_pass or ()))
