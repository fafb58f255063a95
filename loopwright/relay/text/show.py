"""`show()` and what notebooks show: the text form in colours."""

from __future__ import annotations

from typing import Any

from loopwright.display.sheet import Code, Sheet
from loopwright.relay.text.printer import plain_text

_LANGUAGE = "rust"  # the highlighter's language whose words are nearest to the text form's


def show(root: Any, style: str | None = None) -> None:
    """Write the text of an expression or a module to the screen."""
    Sheet(Code(plain_text(root), _LANGUAGE)).show(style)


def html(root: Any) -> str:
    return Sheet(Code(plain_text(root), _LANGUAGE)).html()
