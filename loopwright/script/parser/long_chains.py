"""Sums and products of thousands of terms, for Pythons whose parser refuses them (3.12 and later stop near 1,000).

    A[0] = a + b + c + d        →        _chain0 = a + b; _chain1 = _chain0 + c; A[0] = _chain1 + d

`a + b + c + d` means `((a + b) + c) + d`, so its beginning can be given a name without changing the tree. The parser
treats such names as the values they stand for. Line numbers stay; columns within a cut line do not.
"""

from __future__ import annotations

import io
import itertools
import keyword
import tokenize
from collections.abc import Iterator
from typing import Final

PREFIX: Final = "_loopwright_chain"
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_LEVELS: Final = {"+": 0, "-": 0, "*": 1, "/": 1, "//": 1, "%": 1}
_PART_OF_OPERAND: Final = frozenset({".", "~", "**"})
_VALUES: Final = frozenset({"True", "False", "None"})


def cut_long_chains(text: str, longest: int = 200) -> str:
    """`text` with every chain of more than `longest` operators on one line cut into named parts."""
    names = itertools.count()
    lines = [
        _cut_line(line, longest, names) if sum(map(line.count, "+-*/%")) > longest else line
        for line in text.splitlines()
    ]
    return "\n".join(lines)


class _Chains:
    """The sum (0) and the product (1) that are being read at one bracket level."""

    def __init__(self, start: int) -> None:
        self.starts = [start, start]  # where in the output they begin
        self.counts = [0, 0]  # operators so far


def _cut_line(line: str, longest: int, names: Iterator[int]) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    named: list[str] = []
    out: list[str] = []
    depth = [_Chains(0)]
    column, after_operand = 0, False
    try:
        for token in tokenize.generate_tokens(io.StringIO(line.lstrip()).readline):
            word, chains = token.string, depth[-1]
            between = line[len(indent) + column : len(indent) + token.start[1]]
            column = token.end[1]
            if word in _LEVELS and after_operand:
                level = _LEVELS[word]
                chains.counts[level] += 1
                if chains.counts[level] > longest:
                    name = f"{PREFIX}{next(names)}"
                    start = chains.starts[level]
                    named.append(f"{name} = {''.join(out[start:]).strip()}; ")
                    out[start:] = [f" {name}"]
                    chains.counts[level] = 1
                if level == 0:
                    chains.starts[1], chains.counts[1] = len(out) + 1, 0
            out.append(between + word)
            if word in _OPENING:
                depth.append(_Chains(len(out)))
            elif word in _CLOSING:
                depth.pop()
            elif _ends_chains(token):
                depth[-1] = _Chains(len(out))
            after_operand = word in _CLOSING or _is_operand(token)
    except (tokenize.TokenError, IndexError):
        return line  # part of a longer statement: left as it is
    return indent + "".join(named) + "".join(out)


def _is_operand(token: tokenize.TokenInfo) -> bool:
    return token.type in (tokenize.NUMBER, tokenize.STRING) or (
        token.type == tokenize.NAME and not (keyword.iskeyword(token.string) and token.string not in _VALUES)
    )


def _ends_chains(token: tokenize.TokenInfo) -> bool:
    """Whether the token binds less than a sum does: a comma, a comparison, an assignment, a keyword."""
    if token.type == tokenize.OP:
        return token.string not in _LEVELS and token.string not in _PART_OF_OPERAND
    return token.type == tokenize.NAME and not _is_operand(token)
