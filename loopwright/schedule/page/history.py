"""History: the steps of a schedule, one a line, with the last refusals where they happened.

1  split(i, [None, 8])                    0.9 ms  order kept               example.py:12
2  reorder(i_0, j_0, k, i_1, j_1)         4.1 ms  values proved            example.py:14
✗  parallel(k)                            1.2 ms  refused: WouldRace [LW0207]
3  parallel(i_0)                          2.0 ms  order kept, no races     example.py:15
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, overload

from loopwright.display.sheet import Sheet, Table, heading
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.page.versions import same_version, versions
from loopwright.schedule.trace.protocol import ScheduleProtocol
from loopwright.schedule.trace.record import Refused

_WIDEST: Final = 60  # of the column of calls; longer ones push the rest of their line to the right


@dataclass(frozen=True)
class Entry:
    """A step, or a refused one, which has no number."""

    number: int | None
    call: str  # as the user writes it: split(i, [None, 4])
    seconds: float  # of the thread's own time, proof included
    proof: str  # "order kept", "values proved", "lemma", "given", …; of a refused step which error it was
    where: str  # the user's file and line
    refused: Refused | None = None


class History(Sequence[Entry]):
    """What was done and what was refused, in order. Its text has a line for each."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = tuple(entries)

    @staticmethod
    def of(sch: ScheduleProtocol) -> History:
        """The history of a schedule. Refusals of versions that were taken back are left out."""
        states = versions(sch)
        result: list[Entry] = []
        steps = [inst for inst, _ in sch.changes()]
        for number, state in enumerate(states):
            if number:
                inst = steps[number - 1]
                result.append(Entry(number, str(inst), inst.seconds, inst.proof, inst.where))
            for refused in sch._refused:
                if refused.after == number and same_version(refused.views, state):
                    result.append(_refused_entry(refused))
        return History(result)

    @overload
    def __getitem__(self, index: int) -> Entry: ...

    @overload
    def __getitem__(self, index: slice) -> History: ...

    def __getitem__(self, index: int | slice) -> Entry | History:
        return History(self.entries[index]) if isinstance(index, slice) else self.entries[index]

    def __len__(self) -> int:
        return len(self.entries)

    def __str__(self) -> str:
        if not self.entries:
            return "no steps yet"
        wide = max([len(entry.call) for entry in self.entries if len(entry.call) <= _WIDEST] or [_WIDEST])
        proofs = max([len(entry.proof) for entry in self.entries])
        digits = max(2, len(str(len(self.entries))))
        lines = []
        for entry in self.entries:
            number = "✗" if entry.number is None else str(entry.number)
            head = f"{number:>{digits}}  {entry.call:{wide}} {1e3 * entry.seconds:7.1f} ms"
            lines.append(f"{head}  {entry.proof:{proofs}}  {entry.where}".rstrip())
        return "\n".join(lines)

    __repr__ = __str__

    def sheet(self) -> Sheet:
        """The steps as a table, under a line that counts them."""
        done = [entry for entry in self.entries if entry.number is not None]
        unproved = len([entry for entry in done if "unproved" in entry.proof])
        count = f"{len(done)} step{'s' * (len(done) != 1)}" if done else "no steps yet"
        message = [f"{unproved} unproved" if unproved else "each proved"] if done else []
        if len(done) < len(self.entries):
            message.append(f"{len(self.entries) - len(done)} refused")
        top = heading(count, ", ".join(message))
        if not self.entries:
            return Sheet(top)
        rows = [
            (str(one.number or "✗"), one.call, f"{1e3 * one.seconds:.1f} ms", one.proof, one.where)
            for one in self.entries
        ]
        tones = ["bad" if one.number is None else "warn" if "unproved" in one.proof else "" for one in self.entries]
        return Sheet(top, Table(("", "step", "time", "proof", "where"), tuple(rows), tuple(tones)))

    def show(self, style: str | None = None) -> None:
        """Show the steps."""
        self.sheet().show(style)

    def _repr_html_(self) -> str:
        return self.sheet().html()


def _refused_entry(refused: Refused) -> Entry:
    reason = f"refused: {refused.error.__name__} [{refused.error.code}]"
    return Entry(None, refused.call, refused.seconds, reason, str(refused.where or ""), refused)


def error_of(sch: ScheduleProtocol, refused: Refused) -> ScheduleError | None:
    """The error of a refusal, by having the step refused once more; None should it be accepted this time."""
    again = sch._frozen(refused.views)()
    try:
        again.run_instruction(refused.kind, refused.inputs, refused.attrs)
    except ScheduleError as error:
        error.user_line = refused.where
        error.render_level = "detail"
        return error
    return None
