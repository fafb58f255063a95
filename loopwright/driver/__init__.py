"""`driver`: from a program to what runs, under the paths users know; `build` and `lower` are those of `build.py`."""

from __future__ import annotations

from typing import Any

from loopwright.driver import build_module

__all__ = ["build", "build_module", "lower"]


def __getattr__(name: str) -> Any:
    if name in ("build", "lower"):
        return getattr(build_module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
