"""`show()` and what notebooks show: the text form in colours."""

from __future__ import annotations

from loopwright.display.sheet import Code, Sheet
from loopwright.relay.expr import Expr
from loopwright.relay.text.printer import plain_text

_LANGUAGE = "rust"  # the highlighter's language whose words are nearest to the text form's


def show(root: Expr, style: str | None = None) -> None:
    """Write the text of an expression or a module to the screen."""
    Sheet(Code(plain_text(root), _LANGUAGE)).show(style)


def html(root: Expr) -> str:
    return Sheet(Code(plain_text(root), _LANGUAGE)).html()
