"""Sheet: what `show()` shows, said once, for the terminal, for a notebook and for a file.

    sheet = Sheet(heading("Module for llvm"), Table(("function", "arguments"), (("main", "A, B"),)), Code(text))
    sheet.show()           colours and the width of the screen in a terminal, HTML in a notebook, else plain text
    sheet.html()           what `_repr_html_` gives: one element that stands alone, on light pages and on dark ones

Plain text has lines as long as they are: it is for programs and files. LOOPWRIGHT_STYLE chooses the style of code for
both: light, dark, ansi or the name of a Pygments style.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable
from html import escape
from typing import Final, NamedTuple

from loopwright.display import colours, screen

# What a word or a row is → escape codes in a terminal, and colours on light and dark pages.
_CODES: Final = {"title": "1", "bad": "31", "good": "32", "warn": "33", "key": "36", "faint": "2"}
_COLOURS: Final = {
    "bad": ("#cf222e", "#ff7b72"),
    "good": ("#1a7f37", "#56d364"),
    "warn": ("#9a6700", "#e3b341"),
    "key": ("#0969da", "#79c0ff"),
    "faint": ("#656d76", "#9198a1"),
}
_MARK_CODES: Final = {"+": "30;42", "-": "30;41"}
_MARK_CLASSES: Final = {"+": "added", "-": "removed"}


class Span(NamedTuple):
    """Some words of a line, and what they are: title, bad, good, warn, key, faint, or nothing in particular."""

    text: str
    tone: str = ""


class Lines(NamedTuple):
    """Lines of words; spaces at their beginning count. A heading stands apart from what is above it."""

    lines: tuple[tuple[Span, ...], ...]
    is_heading: bool = False


class Table(NamedTuple):
    """Rows of texts under the names of their columns; `tones` has one for each row that is not as the others."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    tones: tuple[str, ...] = ()

    def tone(self, row: int) -> str:
        """What a row is."""
        return self.tones[row] if row < len(self.tones) else ""


class Code(NamedTuple):
    """Program text. `marks`, one a line, stand before the lines: "+" in green, "-" in red."""

    text: str
    language: str = "python"
    marks: tuple[str, ...] = ()


class Markup(NamedTuple):
    """A drawing in HTML, with the CSS rules it needs; it shows in notebooks alone."""

    html: str
    rules: tuple[str, ...] = ()


Part = Lines | Table | Code | Markup


def heading(text: str, note: str = "") -> Lines:
    """A line that says what follows."""
    return Lines(((Span(text, "title"), *([Span(f"  {note}", "faint")] if note else [])),), True)


def words(*lines: str, tone: str = "") -> Lines:
    """Lines that are all of one kind."""
    return Lines(tuple([(Span(line, tone),) for line in lines]))


class Sheet:
    """Parts, one below the other."""

    def __init__(self, *parts: Part) -> None:
        self.parts = parts

    def show(self, style: str | None = None) -> None:
        """Write it to the screen, as the screen can show it; a style asks for colours wherever it goes."""
        display = screen.notebook_display()
        if display is not None:
            display(self.html(style), self.text())
        else:
            sys.stdout.write(self.for_screen(style) + "\n")

    def for_screen(self, style: str | None = None) -> str:
        """The text for the standard output, whatever that is."""
        if style is not None or screen.has_colours():
            return self.coloured(style, screen.width() if screen.is_terminal() else None)
        return self.text(screen.width() if screen.is_terminal() else None)

    def text(self, width: int | None = None) -> str:
        """Plain text; tables keep to `width` characters, if it is given."""
        return self._joined(None, width)

    def coloured(self, style: str | None = None, width: int | None = None) -> str:
        """The text with escape codes; tables keep to `width` characters, if it is given."""
        chosen = style or os.environ.get("LOOPWRIGHT_STYLE") or "ansi"
        return self._joined(chosen, width)

    def html(self, style: str | None = None) -> str:
        """One element with all it needs; without a style, it follows the page's theme."""
        chosen = style or os.environ.get("LOOPWRIGHT_STYLE") or ""
        name = f"style-{chosen}" if chosen else "auto"
        body = "".join([_part_html(part) for part in self.parts])
        rules = _rules(f".loopwright.{name}", chosen or "light", chosen or "dark", body)
        rules += [rule for part in self.parts if isinstance(part, Markup) for rule in part.rules]
        return f'<div class="loopwright {name}">{colours.joined(rules)}{body}</div>'

    def _joined(self, style: str | None, width: int | None) -> str:
        texts: list[str] = []
        for part in self.parts:
            text = _part_text(part, style, width)
            if text:
                texts.append(f"\n{text}" if texts and isinstance(part, Lines) and part.is_heading else text)
        return "\n".join(texts)


# --- terminals and files ----------------------------------------------------------------------------------------------


def _part_text(part: Part, style: str | None, width: int | None) -> str:
    if isinstance(part, Lines):
        return "\n".join([line_text(line, style is not None) for line in part.lines])
    if isinstance(part, Table):
        return _plain_table(part, style) if width is None else _fitting_table(part, style, width)
    if isinstance(part, Code):
        return _code_text(part, style)
    return ""


def line_text(line: Iterable[Span], coloured: bool) -> str:
    """A line of words, with escape codes if they are wanted."""
    return "".join([colours.painted(span.text, _CODES.get(span.tone, "") if coloured else "") for span in line])


def _code_text(part: Code, style: str | None) -> str:
    text = part.text.rstrip("\n")
    if style is not None and part.language != "text":
        text = colours.highlight(text, style, language=part.language).rstrip("\n")
    if not part.marks:
        return text
    lines = []
    for mark, line in zip(part.marks, text.split("\n"), strict=True):
        shown = mark if style is None else colours.painted(mark, _MARK_CODES.get(mark, ""))
        lines.append(f"{shown} {line}".rstrip())
    return "\n".join(lines)


def _plain_table(table: Table, style: str | None) -> str:
    """Columns as wide as they need to be."""
    rows = [table.columns, *table.rows]
    widths = [max([len(row[column]) for row in rows]) for column in range(len(table.columns))]
    lines = ["  ".join([text.ljust(wide) for text, wide in zip(row, widths, strict=True)]).rstrip() for row in rows]
    if style is None:
        return "\n".join(lines)
    codes = [_CODES["title"], *[_CODES.get(table.tone(row), "") for row in range(len(table.rows))]]
    return "\n".join([colours.painted(line, code) for line, code in zip(lines, codes, strict=True)])


def _fitting_table(table: Table, style: str | None, width: int) -> str:
    """Columns that share the width of the screen; long texts go on below."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    looks = {"title": "bold", "bad": "red", "good": "green", "warn": "yellow", "key": "cyan", "faint": "dim"}
    result = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in table.columns:
        result.add_column(name, overflow="fold")
    for number, row in enumerate(table.rows):
        result.add_row(*[Text(text, style=looks.get(table.tone(number), "")) for text in row])
    out = io.StringIO()
    coloured = style is not None
    console = Console(
        file=out, width=width, force_terminal=coloured, color_system="standard" if coloured else None, highlight=False
    )
    console.print(result)
    return "\n".join([line.rstrip() for line in out.getvalue().rstrip("\n").split("\n")])


# --- HTML -------------------------------------------------------------------------------------------------------------

_MONO: Final = "ui-monospace,SFMono-Regular,Menlo,Consolas,monospace"
# How pages say which theme they have; where they say nothing, the reader's system does.
_THEMES: Final = {
    "light": ('[data-jp-theme-light="true"]', ".vscode-light", 'html[theme="light"]', "[data-md-color-scheme=default]"),
    "dark": ('[data-jp-theme-light="false"]', ".vscode-dark", 'html[theme="dark"]', "[data-md-color-scheme=slate]"),
}


def _rules(inside: str, light: str, dark: str, body: str) -> list[str]:
    """The CSS of a sheet: what its classes look like on light and on dark pages."""
    (light_back, light_text), (dark_back, dark_text) = colours.page_colours(light), colours.page_colours(dark)
    text, back = colours.either(light_text, dark_text), colours.either(light_back, dark_back)
    is_fixed = light == dark
    rules = [f"{inside}{{color:{text};background:{back};padding:8px 12px;font:13px/1.45 {_MONO};overflow-x:auto}}"]
    if not is_fixed:
        rules.append(f"{inside}{{color-scheme:light dark}}")
        for theme, selectors in _THEMES.items():
            rules.append(",".join([f"{selector} {inside}" for selector in selectors]) + f"{{color-scheme:{theme}}}")
    rules.append(f"{inside} pre{{margin:0;padding:0;background:none;color:inherit;font:inherit;white-space:pre}}")
    rules.append(f"{inside} pre.words{{white-space:pre-wrap}}")  # sentences may be broken, code may not
    rules.append(f"{inside} table{{border-collapse:collapse;margin:6px 0;font:inherit;color:inherit}}")
    cell = "padding:2px 14px 2px 0;text-align:left;vertical-align:top;background:none;border:0;white-space:pre-wrap"
    rules.append(f"{inside} th,{inside} td{{{cell}}}")
    rules.append(f"{inside} th{{border-bottom:1px solid}}")
    is_dark = colours.is_dark(dark)
    for tone, (on_light, on_dark) in _COLOURS.items():
        if f'class="{tone}"' in body:
            shown = (on_dark if is_dark else on_light) if is_fixed else colours.either(on_light, on_dark)
            rules.append(f"{inside} .{tone}{{color:{shown}}}")
    rules.append(f"{inside} .title{{font-weight:bold}}")
    rules.append(f"{inside} .added{{background:rgba(46,160,67,.22)}}")
    rules.append(f"{inside} .removed{{background:rgba(248,81,73,.22)}}")
    return [*rules, *colours.used_rules(body, light, dark, inside)]


def _part_html(part: Part) -> str:
    if isinstance(part, Lines):
        message = "\n".join(["".join([_span_html(span) for span in line]) for line in part.lines])
        return f'<pre class="words">{message}\n</pre>'
    if isinstance(part, Table):
        return _table_html(part)
    if isinstance(part, Code):
        return _code_html(part)
    return part.html


def _span_html(span: Span) -> str:
    return f'<span class="{span.tone}">{escape(span.text)}</span>' if span.tone else escape(span.text)


def _table_html(table: Table) -> str:
    head = "".join([f"<th>{escape(name)}</th>" for name in table.columns])
    rows = []
    for number, row in enumerate(table.rows):
        tone = f' class="{table.tone(number)}"' if table.tone(number) else ""
        rows.append(f"<tr{tone}>{''.join([f'<td>{escape(text)}</td>' for text in row])}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _code_html(part: Code) -> str:
    text = part.text.rstrip("\n")
    shown = escape(text) if part.language == "text" else colours.line_html(text, part.language)
    if part.marks:
        lines = []
        for mark, line in zip(part.marks, shown.split("\n"), strict=True):
            kind = _MARK_CLASSES.get(mark)
            message = f"{escape(mark)} {line}"
            lines.append(f'<span class="{kind}">{message}</span>' if kind else message)
        shown = "\n".join(lines)
    return f"<pre>{shown}\n</pre>"
