"""Where the text of a script comes from, and how a place in it is shown.

A decorated function is found through its first line: the lines that follow with deeper indentation are its text.
That guess can only be too short (a bracket or a string that continues on a less indented line), and then it does not
parse and is extended. Reading only these lines is an order of magnitude faster than tokenizing the file.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Sequence
from types import FunctionType
from typing import Final

from loopwright.ir import deep
from loopwright.ir.deep import DEEP_LIMIT
from loopwright.runtime.errors import SourceLine
from loopwright.script.parser.errors import InvalidSyntax, NoSource
from loopwright.script.parser.long_chains import cut_long_chains

TEXT_FILE: Final = "<script>"  # the file name shown for text given to from_source
_LONG: Final = 50_000  # characters; in fewer, chains of operators do not exhaust the C stack


class Source:
    """The lines of one file or text, and places in them."""

    def __init__(self, file: str, lines: Sequence[str], offset: int = 0) -> None:
        self.file = file
        self.lines = lines
        self.offset = offset  # line n of the syntax tree is line n + offset of the file

    def place(self, node: ast.AST) -> SourceLine:
        """Where `node` stands; columns count characters."""
        line: int = node.lineno + self.offset  # type: ignore[attr-defined]
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        start: int = node.col_offset  # type: ignore[attr-defined]
        end: int | None = node.end_col_offset  # type: ignore[attr-defined]
        if node.end_lineno != node.lineno:  # type: ignore[attr-defined]
            end = None
        if not text.isascii():
            # The syntax tree counts bytes of UTF-8.
            encoded = text.encode()
            start = len(encoded[:start].decode(errors="ignore"))
            end = None if end is None else len(encoded[:end].decode(errors="ignore"))
        text = text.rstrip("\n")
        last: int | None = None
        if end is None and node.end_lineno is not None:  # type: ignore[attr-defined]
            last = node.end_lineno + self.offset  # type: ignore[attr-defined]
        return SourceLine(self.file, line, start, len(text) if end is None else end, text, last)


def function_source(function: FunctionType) -> tuple[Source, ast.FunctionDef]:
    """The source and syntax tree of a function defined in a file or notebook cell."""
    code = function.__code__
    source, tree = _block_at(code.co_filename, code.co_firstlineno, f"function {function.__name__!r}")
    if not isinstance(tree, ast.FunctionDef):
        raise NoSource(f"function {function.__name__!r}", code.co_filename)
    return source, tree


def class_source(cls: type, file: str, line: int) -> tuple[Source, ast.ClassDef]:
    """The source and syntax tree of a class that a decorator or the class statement in `line` defines."""
    what = f"class {cls.__name__!r}"
    lines = _lines(file, what)
    first = line
    while first > 1 and lines[first - 2].lstrip().startswith("@"):
        first -= 1
    source, tree = _block_at(file, first, what)
    if not isinstance(tree, ast.ClassDef) or tree.name != cls.__name__:
        raise NoSource(what, file)
    return source, tree


@deep
def text_source(text: str) -> tuple[Source, ast.Module]:
    """The source and syntax tree of a text."""
    lines = text.splitlines()
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return _parse(TEXT_FILE, lines, lines, 1, indented=indent > 0)


def _lines(file: str, what: str) -> list[str]:
    linecache.checkcache(file)
    lines = linecache.getlines(file)
    if not lines:
        raise NoSource(what, file)
    return lines


def _block_at(file: str, first: int, what: str) -> tuple[Source, ast.stmt]:
    lines = _lines(file, what)
    if first > len(lines):
        raise NoSource(what, file)
    indent = _indent(lines[first - 1])
    # Decorators stand at the indentation of the definition: the block starts after its `def` or `class` line.
    end = first
    while end <= len(lines) and not lines[end - 1].lstrip().startswith(("def ", "class ", "async ")):
        end += 1
    while True:
        end = _next_outer_line(lines, end, indent)
        try:
            source, module = _parse(file, lines, lines[first - 1 : end], first, indented=indent > 0)
        except InvalidSyntax:
            if end >= len(lines):
                raise
            end += 1  # a bracket or string goes on in this line
            continue
        return source, module.body[0]


def _next_outer_line(lines: Sequence[str], start: int, indent: int) -> int:
    """The number of lines before the first one after `start` that is not inside a block at `indent`."""
    for number in range(start, len(lines)):
        text = lines[number].lstrip()
        if text and not text.startswith("#") and _indent(lines[number]) <= indent:
            return number
    return len(lines)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _parse(
    file: str, lines: Sequence[str], chosen: Sequence[str], first: int, *, indented: bool
) -> tuple[Source, ast.Module]:
    """Parse the `chosen` lines, which start at line `first` of `lines`; columns stay those of the file."""
    separator = "" if chosen and chosen[0].endswith("\n") else "\n"
    text = separator.join(chosen)
    offset = first - 1
    if indented:
        text, offset = "if 1:\n" + text, offset - 1
    source = Source(file, lines, offset)
    try:
        try:
            # While a deep walk runs, here or in another thread, Python's parser recurses in C without a limit.
            endless = len(text) > _LONG and sys.getrecursionlimit() >= DEEP_LIMIT
            module = ast.parse(cut_long_chains(text) if endless else text)
        except RecursionError:
            module = ast.parse(cut_long_chains(text))
    except SyntaxError as error:
        line = min(max((error.lineno or 1) + offset, 1), max(len(lines), 1))
        shown = lines[line - 1].rstrip("\n") if lines else ""
        column = max((error.offset or 1) - 1, 0)
        end = (error.end_offset or 0) - 1 if error.end_lineno == error.lineno else None
        location = SourceLine(file, line, column, end if end is not None and end > column else column + 1, shown)
        raise InvalidSyntax(error.msg, location) from None
    except (RecursionError, MemoryError, ValueError) as error:
        location = SourceLine(file, first, 0, 1, chosen[0].rstrip("\n") if chosen else "")
        raise InvalidSyntax(f"Python's own parser gives up ({error or 'nested too deeply'})", location) from error
    if indented:
        outer = module.body[0]
        assert isinstance(outer, ast.If)
        module.body = outer.body
    return source, module
