"""Sums and products of thousands of terms, for Pythons whose parser refuses them (3.12 and later stop near 1,000).

    A[0] = a + b + c + d        →        _chain0 = a + b; _chain1 = _chain0 + c; A[0] = _chain1 + d

`a + b + c + d` means `((a + b) + c) + d`, so its beginning can be given a name without changing the tree. The parser
treats such names as the values they stand for. Line numbers stay; columns within a cut line do not.
"""

from __future__ import annotations

import io
import keyword
import tokenize
from typing import Final, NamedTuple

PREFIX: Final = "_loopwright_chain"
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_LEVELS: Final = {"+": 0, "-": 0, "*": 1, "/": 1, "//": 1, "%": 1}
_PART_OF_OPERAND: Final = frozenset({".", "~", "**"})


class _Cut(NamedTuple):
    start: int  # of the chain, in the line
    end: int  # of what gets a name


def cut_long_chains(text: str, longest: int = 200) -> str:
    """`text` with every chain of more than `longest` operators on one line cut into named parts."""
    lines = text.splitlines()
    names = 0
    for number, line in enumerate(lines):
        if sum(map(line.count, "+-*/%")) <= longest:
            continue
        indent = line[: len(line) - len(line.lstrip())]
        body, parts = line.lstrip(), []
        while (cut := _find_cut(body, longest)) is not None:
            name = f"{PREFIX}{names}"
            names += 1
            parts.append(f"{name} = {body[cut.start : cut.end].rstrip()}; ")
            body = f"{body[: cut.start]}{name} {body[cut.end :]}"
        lines[number] = indent + "".join(parts) + body
    return "\n".join(lines)


def _find_cut(line: str, longest: int) -> _Cut | None:
    """The first chain of the line that is too long, cut after `longest` operators."""
    # One entry a bracket level: where the chain of sums and that of products start, and their operators so far.
    depth: list[tuple[list[int], list[int]]] = [([0, 0], [0, 0])]
    after_operand = False
    try:
        for token in tokenize.generate_tokens(io.StringIO(line).readline):
            word, start, end = token.string, token.start[1], token.end[1]
            starts, counts = depth[-1]
            if word in _OPENING:
                depth.append(([end, end], [0, 0]))
                after_operand = False
            elif word in _CLOSING:
                depth.pop()
                after_operand = True
            elif word in _LEVELS and after_operand:
                level = _LEVELS[word]
                counts[level] += 1
                if counts[level] > longest:
                    return _Cut(starts[level], start)
                if level == 0:
                    starts[1], counts[1] = end, 0
                after_operand = False
            elif (token.type == tokenize.OP and word not in _PART_OF_OPERAND and word not in _LEVELS) or (
                keyword.iskeyword(word) and word not in ("True", "False", "None")
            ):
                starts[:], counts[:] = [end, end], [0, 0]
                after_operand = False
            else:
                after_operand = word not in _PART_OF_OPERAND and word not in _LEVELS
    except (tokenize.TokenError, IndexError):
        return None  # a line of a longer statement: left as it is
    return None
