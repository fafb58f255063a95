"""Colours for program text: escape codes for terminals, HTML for notebooks and pages.

HTML follows the theme of the page it stands in, light or dark, unless a style is asked for. It carries its own rules,
and needs nothing from elsewhere. Pygments reads the text; it is loaded when something is first coloured.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from loopwright.runtime.errors import LoopwrightError

# Our style names → Pygments' own. "ansi" keeps to the sixteen colours that every terminal has.
STYLES: Final = {"light": "default", "dark": "monokai", "ansi": "bw"}


class UnknownStyle(LoopwrightError, ValueError):
    """A style for `show()` that neither Loopwright nor Pygments knows.

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(n: T.int32):\\n    T.evaluate(n)").show("neon")
    """

    code = "LW0147"

    def __init__(self, style: str) -> None:
        super().__init__(
            f"show: unknown style {style!r}",
            hint=f"use one of {', '.join(STYLES)}, or the name of a Pygments style",
            fields={"style": style},
        )


def highlight(text: str, style: str = "ansi", html: bool = False, language: str = "python") -> str:
    """`text` with the escape codes (or the HTML, in one fixed style) that colour it."""
    import pygments  # type: ignore[import-untyped,unused-ignore]
    from pygments.formatters import HtmlFormatter, Terminal256Formatter, TerminalFormatter  # type: ignore[import-untyped,unused-ignore]

    formatter: Any
    if style == "ansi" and not html:
        formatter = TerminalFormatter()
    elif html:
        formatter = HtmlFormatter(style=_style(style), noclasses=True)
    else:
        formatter = Terminal256Formatter(style=_style(style))
    coloured: str = pygments.highlight(text, _lexer(language), formatter)
    return coloured


def html_lines(lines: Sequence[str]) -> list[str]:
    """Each line as HTML whose classes `style_rules` gives colours, so that a page can change them."""
    return [line_html(line, "python") for line in lines]


def line_html(text: str, language: str) -> str:
    """Text as HTML whose classes say what each word is."""
    import pygments
    from pygments.formatters import HtmlFormatter

    result: str = pygments.highlight(text, _lexer(language), HtmlFormatter(nowrap=True))
    return result.rstrip("\n")


def style_rules(style: str, inside: str) -> str:
    """The CSS rules for `html_lines` in elements that `inside` selects."""
    from pygments.formatters import HtmlFormatter

    rules: list[str] = HtmlFormatter(style=_style(style)).get_token_style_defs(inside)
    return "\n".join(rules)


def used_rules(markup: str, light: str, dark: str, inside: str) -> list[str]:
    """The CSS rules for the classes that `markup` has, each with a colour for light pages and one for dark ones."""
    from pygments.token import STANDARD_TYPES  # type: ignore[import-untyped,unused-ignore]

    known = {name: token for token, name in STANDARD_TYPES.items() if name}
    styles = _style(light), _style(dark)
    rules = []
    for name in sorted(set(re.findall(r'<span class="(\w+)">', markup)) & set(known)):
        looks = [style.style_for_token(known[name]) for style in styles]
        # "currentcolor" would be the colour around it, which a theme may have chosen for another background.
        colours = [look["color"] or _plain(style)[1:] for look, style in zip(looks, styles, strict=True)]
        rule = f"color:{either(f'#{colours[0]}', f'#{colours[1]}')}"
        rule += ";font-weight:bold" * bool(looks[0]["bold"]) + ";font-style:italic" * bool(looks[0]["italic"])
        rules.append(f"{inside} .{name}{{{rule}}}")
    return rules


def page_colours(style: str) -> tuple[str, str]:
    """The background of a style, and the colour of text that is nothing in particular."""
    chosen = _style(style)
    return str(chosen.background_color), _plain(chosen)


def is_dark(style: str) -> bool:
    """Whether a style has light letters on a dark background."""
    return _is_dark(_style(style))


def either(light: str, dark: str) -> str:
    """A CSS colour: the first one on light pages, the second one on dark ones."""
    return light if light == dark else f"light-dark({light},{dark})"


def painted(text: str, codes: str) -> str:
    """`text` under escape codes, such as "1;31"; as it is without codes."""
    return f"\x1b[{codes}m{text}\x1b[0m" if codes and text else text


def unpainted(text: str) -> str:
    """`text` without escape codes."""
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def joined(rules: Iterable[str]) -> str:
    """CSS rules as one element."""
    return f"<style>{''.join(rules)}</style>"


def _plain(style: Any) -> str:
    from pygments.token import Token

    colour = style.style_for_token(Token)["color"]
    if colour:
        return f"#{colour}"
    return "#f0f0f0" if _is_dark(style) else "#222222"


def _is_dark(style: Any) -> bool:
    digits = str(style.background_color).lstrip("#")
    red, green, blue = [int(2 * digit, 16) for digit in digits] if len(digits) == 3 else list(bytes.fromhex(digits[:6]))
    return red + green + blue < 384


@functools.cache
def _style(name: str) -> Any:
    from pygments.styles import get_style_by_name  # type: ignore[import-untyped,unused-ignore]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped,unused-ignore]

    try:
        return get_style_by_name(STYLES.get(name, name))
    except ClassNotFound:
        raise UnknownStyle(name) from None


@functools.cache
def _lexer(language: str) -> Any:
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped,unused-ignore]

    return get_lexer_by_name("python3" if language == "python" else language, stripnl=False)
