"""Diff: what changed between two versions of a program, line by line.

As text it is a unified diff, in which lines that only moved in or out are no change (as in `diff -ub`). On a screen
with colours, and at a prompt there, what is new is green and what is gone red.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Final, Literal

from loopwright.display.screen import has_colours
from loopwright.display.sheet import Lines, Sheet, Span, heading
from loopwright.schedule.page.versions import checked_number, version_lines, versions
from loopwright.schedule.trace.protocol import ScheduleProtocol

Mark = Literal[" ", "+", "-", ">"]

_CONTEXT: Final = 3  # lines around a change
_WORDS: Final = re.compile(r"\w+|\s+|.")
_TONES: Final = {"+": "good", "-": "bad", "@": "key"}


def line_changes(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[Mark, str]]:
    """All lines of both texts, in order: kept, new, gone, or the same further in or out (">").

    A loop around a nest moves all of it to the right: what matters is the loop.
    """
    bare = [[line.strip() for line in text] for text in (before, after)]
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, bare[0], bare[1], autojunk=False).get_opcodes():
        if tag == "equal":
            pairs = zip(before[i1:i2], after[j1:j2], strict=True)
            yield from [(" " if old == line else ">", line) for old, line in pairs]
        else:
            yield from [("-", line) for line in before[i1:i2]]
            yield from [("+", line) for line in after[j1:j2]]


@dataclass(frozen=True, repr=False)
class Diff:
    """Two versions side by side; `str` of it is a unified diff."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    title: str  # "step 3: parallel(i)"
    names: tuple[str, str]

    @staticmethod
    def of(sch: ScheduleProtocol, first: int, last: int | None) -> Diff:
        """What a step changed, or what all steps from version `first` to version `last` did."""
        states, steps = versions(sch), [inst for inst, _ in sch.changes()]
        if last is None:
            end = checked_number("diff", first, 1, len(steps))
            begin, title = end - 1, f"step {end}: {steps[end - 1]}"
        else:
            begin = checked_number("diff", first, 0, len(steps))
            end = checked_number("diff", last, 0, len(steps))
            title = f"{_version_name(begin)} → {_version_name(end)}"
        texts = [tuple(version_lines(states[number])) for number in (begin, end)]
        return Diff(texts[0], texts[1], title, (_version_name(begin), _version_name(end)))

    @property
    def is_empty(self) -> bool:
        """Whether both versions read the same."""
        return self.before == self.after

    def lines(self) -> list[str]:
        """The lines of the unified diff; none when nothing changed."""
        rows = list(line_changes(self.before, self.after))
        result: list[str] = []
        for low, high in _hunks(rows):
            begin = [1 + sum([mark != skipped for mark, _ in rows[:low]]) for skipped in "+-"]
            count = [sum([mark != skipped for mark, _ in rows[low:high]]) for skipped in "+-"]
            result.append(f"@@ -{begin[0]},{count[0]} +{begin[1]},{count[1]} @@")
            result += [f"{mark if mark in '+-' else ' '}{line}" for mark, line in rows[low:high]]
        return [f"--- {self.names[0]}", f"+++ {self.names[1]}", *result] if result else []

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def coloured(self) -> str:
        """The text with the escape codes that colour it in a terminal."""
        return Sheet(self._rows()).coloured()

    def __repr__(self) -> str:
        return f"{self.title}\n{self.coloured() if has_colours() else self}"

    def _rows(self) -> Lines:
        return Lines(tuple([(Span(line, _TONES.get(line[:1], "")),) for line in self.lines()]))

    def _sheet(self) -> Sheet:
        return Sheet(heading(self.title), self._rows())

    def _repr_html_(self) -> str:
        return self._sheet().html()

    def show(self, style: str | None = None) -> None:
        """Write it to the screen, in colours where there are some."""
        self._sheet().show(style)


def _hunks(rows: Sequence[tuple[Mark, str]]) -> Iterator[tuple[int, int]]:
    """The stretches of rows around changes, each with a few lines before and after."""
    low = high = -1
    for position, (mark, _) in enumerate(rows):
        if mark not in ("+", "-"):
            continue
        if low >= 0 and position - _CONTEXT > high:
            yield low, high
            low = -1
        low = max(position - _CONTEXT, 0) if low < 0 else low
        high = min(position + 1 + _CONTEXT, len(rows))
    if low >= 0:
        yield low, high


def _version_name(number: int) -> str:
    return f"after step {number}" if number else "at the start"


def changed_words(rows: Sequence[tuple[Mark, str]]) -> dict[int, list[list[int]]]:
    """Where lines took the place of others: the ranges of characters that changed, by the position of the row."""
    result: dict[int, list[list[int]]] = {}
    gone: list[int] = []
    new: list[int] = []
    for position, (mark, _) in enumerate([*rows, (" ", "")]):
        if mark == "-":
            gone.append(position)
        elif mark == "+":
            new.append(position)
        elif gone or new:
            for one, other in zip(gone, new, strict=False):
                pair = _pair(rows[one][1], rows[other][1])
                if pair is not None:
                    result[one], result[other] = pair
            gone, new = [], []
    return result


def _pair(before: str, after: str) -> tuple[list[list[int]], list[list[int]]] | None:
    """What changed in each of two lines; None when they have little in common."""
    words = [_WORDS.findall(line) for line in (before, after)]
    matcher = SequenceMatcher(None, words[0], words[1], autojunk=False)
    if matcher.ratio() < 0.4:
        return None
    starts = [list(accumulate([len(word) for word in line], initial=0)) for line in words]
    ranges: tuple[list[list[int]], list[list[int]]] = ([], [])
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            continue
        for side, (low, high) in enumerate([(i1, i2), (j1, j2)]):
            if low < high and not (low == 0 and words[side][0].isspace() and high == 1):  # how far in it stands
                ranges[side].append([starts[side][low], starts[side][high]])
    return ranges
