"""The words of a text: names, numbers, signs; comments are left out.

%0 = add(%x, 1f);      GRAPH %0, SIGN =, WORD add, SIGN (, LOCAL %x, SIGN ",", NUMBER 1f, …
"""

from __future__ import annotations

import json
import re
from bisect import bisect
from functools import cached_property
from typing import Final, NamedTuple

from loopwright.relay.text.errors import BadText
from loopwright.runtime.errors import SourceLine


class Token(NamedTuple):
    """One word; `start` counts characters from the beginning of the text."""

    kind: str
    text: str
    start: int


_QUOTED: Final = r'"(?:[^"\\\n]|\\.)*"'
_KINDS: Final = [
    ("SKIP", r"\s+"),
    ("OPEN", r"/\*"),
    ("COMMENT", r"//[^\n]*"),
    ("METADATA", r"#\[metadata\]"),
    ("VERSION", r"#\[version\s*=\s*" + _QUOTED + r"\s*\]"),
    ("GRAPH", r"%\d+"),
    ("LOCAL", rf"%(?:[A-Za-z_]\w*|{_QUOTED})"),
    ("GLOBAL", rf"@(?:[A-Za-z_]\w*|{_QUOTED})"),
    ("NUMBER", r"(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|(?:inf|nan)(?=f|bf))(?:bf16|[iuf]\d+|f)?(?!\w)"),
    ("WORD", r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"),
    ("STRING", _QUOTED),
    ("SIGN", r"->|=>|<=|>=|==|!=|[-+*/%<>=(){}\[\],;:.?]"),
]
_TOKEN: Final = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS))
_MARK: Final = re.compile(r"/\*|\*/")


class Source:
    """A text, its words, and the metadata at its end."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.metadata: str | None = None
        self.metadata_at = 0
        self.tokens: list[Token] = []
        self._read()

    def _read(self) -> None:
        location, end = 0, len(self.text)
        brackets = 0  # inside of them `//` divides sizes; elsewhere it begins a comment
        match_at = _TOKEN.match
        while location < end:
            result = match_at(self.text, location)
            if result is None:
                raise BadText(f"{self.text[location]!r} has no place in a graph's text", self.at(location))
            kind = str(result.lastgroup)
            if kind == "OPEN":
                location = self._after_comment(location)
                continue
            if kind == "METADATA":
                self.metadata = self.text[result.end() :]
                self.metadata_at = location
                break
            if kind == "COMMENT" and brackets:
                self.tokens.append(Token("SIGN", "//", location))
                location += 2
                continue
            if kind not in ("SKIP", "COMMENT"):
                self.tokens.append(Token(kind, result.group(), location))
                brackets += {"[": 1, "]": -1}.get(result.group(), 0)
            location = result.end()
        self.tokens.append(Token("END", "", min(location, end)))

    def _after_comment(self, start: int) -> int:
        """Where the comment that begins at `start` ends; comments may hold comments."""
        depth = 0
        for mark in _MARK.finditer(self.text, start):
            depth += 1 if mark.group() == "/*" else -1
            if depth == 0:
                return mark.end()
        raise BadText("a comment that begins here does not end", self.at(start, 2))

    def at(self, index: int, length: int = 1) -> SourceLine:
        """The place in the text as errors show it."""
        number = bisect(self.line_starts, index)
        start = self.line_starts[number - 1]
        stop = self.text.find("\n", index)
        line = self.text[start : stop if stop >= 0 else len(self.text)]
        return SourceLine(self.name, number, index - start, index - start + length, line)

    @cached_property
    def line_starts(self) -> list[int]:
        return [0, *[mark.end() for mark in re.finditer("\n", self.text)]]

    def token_at(self, token: Token) -> SourceLine:
        return self.at(token.start, max(1, len(token.text)))


def unquoted(name: str) -> str:
    """The name after `%` or `@`, or a text in quotes, as it is meant."""
    return str(json.loads(name)) if name.startswith('"') else name
