"""Marks on printed nodes: underlines, trailing comments, line numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from loopwright.ir import Node, Stmt
from loopwright.script.printer.options import Options
from loopwright.script.printer.scopes import ScopePrinter

# Control characters never reach the text otherwise: strings are written with escapes.
_BEGIN, _END, _COMMENT = "\x01", "\x02", "\x03"


# Of a printer, a node and how it stands: the level of an expression, whether a statement is the last of its body.
Method: TypeAlias = Callable[[Any, Any, Any], None]


class _MarkedTable(dict[type, Method]):
    """The printer's own methods, each putting marks around the nodes that ask for them."""

    def __init__(self, table: Mapping[type, Method], underlined: set[Node], comments: Mapping[Node, str]) -> None:
        super().__init__()
        self.table, self.underlined, self.comments = table, underlined, comments

    def __missing__(self, cls: type) -> Method:
        method = self.table[cls]
        wrap = self._statement if issubclass(cls, Stmt) else self._expression

        def marked(printer: ScopePrinter, node: Node, level: int = 0) -> None:
            wrap(method, printer, node, level)

        self[cls] = marked
        return marked

    def _expression(self, method: Method, printer: ScopePrinter, node: Node, level: int) -> None:
        underlined = node in self.underlined
        if underlined:
            printer.out.append(_BEGIN)
        method(printer, node, level)
        if underlined:
            printer.out.append(_END)
        if node in self.comments:
            printer.out.append(f"{_COMMENT}{self.comments[node]}{_COMMENT}")

    def _statement(self, method: Method, printer: ScopePrinter, node: Node, last: int) -> None:
        first = len(printer.lines)
        if node in self.underlined or node in self.comments:
            last = False  # a scope of its own, so that it is seen what belongs to the node
        method(printer, node, last)
        if node in self.underlined and len(printer.lines) > first:
            text = printer.lines[first]
            body = text.lstrip()
            printer.lines[first] = text[: len(text) - len(body)] + _BEGIN + body + _END
        if node in self.comments and len(printer.lines) > first:
            printer.lines[first] += f"{_COMMENT}{self.comments[node]}{_COMMENT}"


def add_marks(printer: Any, options: Options) -> None:
    """Have `printer` mark the nodes that the options name."""
    underlined = set(options.obj_to_underline)
    comments = options.obj_to_annotate or {}
    if underlined or comments:
        printer._table = _MarkedTable(type(printer)._table, underlined, comments)
        printer.marked = frozenset(underlined.union(comments))


def finish(lines: list[str], options: Options) -> str:
    """The text: marks become underlines and comments, lines get their numbers."""
    return excerpt([_resolve(line) for line in lines], options.print_line_numbers, options.num_context_lines)


def excerpt(lines: Sequence[tuple[str, str | None]], print_line_numbers: bool, num_context_lines: int) -> str:
    """Lines, each with what underlines it; of others than those around underlined ones only how many they are."""
    rows: list[tuple[str, bool]] = []  # (text, whether it is or has an underline)
    numbers: list[str] = []
    width = len(str(len(lines)))
    for number, (text, underline) in enumerate(lines, 1):
        rows.append((text, underline is not None))
        numbers.append(f"{number:>{width}} ")
        if underline is not None:
            rows.append((underline, True))
            numbers.append(" " * (width + 1))
    texts = [text for text, _ in rows]
    if print_line_numbers:
        texts = [number + text for number, text in zip(numbers, texts)]
    marked = [k for k, (_, mark) in enumerate(rows) if mark]
    if num_context_lines >= 0 and marked:
        shown: list[str] = []
        skipped = 0
        for k, text in enumerate(texts):
            is_near = min(abs(k - mark) for mark in marked) <= num_context_lines
            skipped += not is_near
            if skipped and (is_near or k == len(texts) - 1):
                shown.append(f"(... {skipped} line{'s' * (skipped != 1)} skipped ...)")
                skipped = 0
            if is_near:
                shown.append(text)
        texts = shown
    return "\n".join([text.rstrip() for text in texts])


def _resolve(line: str) -> tuple[str, str | None]:
    """The line without marks, and the underline below it."""
    if _BEGIN not in line and _COMMENT not in line:
        return line, None
    text: list[str] = []
    under: list[str] = []
    comments: list[str] = []
    depth = 0
    pieces = line.split(_COMMENT)
    for k, piece in enumerate(pieces):
        if k % 2:
            comments.append(piece)
            continue
        for char in piece:
            if char == _BEGIN:
                depth += 1
            elif char == _END:
                depth -= 1
            else:
                text.append(char)
                under.append("^" if depth else " ")
    tail = f"  # {', '.join(comments)}" if comments else ""
    underline = "".join(under).rstrip()
    return "".join(text) + tail, underline or None
