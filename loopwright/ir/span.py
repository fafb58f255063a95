"""Span: the place in the user's source that a node came from; errors and debug information show it."""

from __future__ import annotations

from loopwright.runtime.errors import SourceLine

Span = SourceLine
