"""Show: the methods of a schedule that show it: on the screen, as a history, as differences, as a page."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING

from loopwright.schedule.engine.methods.base import Base
from loopwright.schedule.errors import BadStepArgument, NotSupported

if TYPE_CHECKING:
    from os import PathLike

    from loopwright.display.sheet import Sheet
    from loopwright.schedule.page.diff import Diff
    from loopwright.schedule.page.history import History
    from loopwright.schedule.trace.trace import Trace
    from loopwright.target import Target


class ShowMethods(Base):
    """What was done, what it changed, what was refused."""

    _trace: Trace

    def show(self, style: str | None = None, black_format: bool | None = None, **options: object) -> None:
        """Show the program, with what the last step changed marked, and the steps, with how each was proved."""
        self._sheet(black_format, options).show(style)

    def _repr_html_(self) -> str:
        return self._sheet(None, {}).html()

    def _sheet(self, black_format: bool | None, options: Mapping[str, object]) -> Sheet:
        from loopwright.display.sheet import Sheet  # loaded when somebody looks
        from loopwright.schedule.page.marked import marked_program

        program = marked_program(self, black_format, options)  # type: ignore[arg-type]
        return Sheet(program, *self.history().sheet().parts)

    def history(self) -> History:
        """The steps, one a line: number, call, time and how it was proved; the last refusals stand among them."""
        from loopwright.schedule.page.history import History

        return History.of(self)  # type: ignore[arg-type]

    def explain(self, target: Target | str | None = None) -> str:
        """How each innermost loop will run on `target` (this machine by default), and what would make it faster."""
        from loopwright.target import Target  # loaded when somebody asks
        from loopwright.transform.explain_loops import explain_loops

        if target is not None and Target(target).kind.name != "llvm":
            problem = f"for target {Target(target).kind.name}, another compiler decides how loops run"
            raise NotSupported("explain", problem, hint='ask about machine code: explain("llvm")')
        views = self.views()  # type: ignore[attr-defined]
        notes = [note for view in views.values() for note in explain_loops(view.function, target)]
        return "\n".join(str(note) for note in notes)

    def diff(self, first: int = -1, last: int | None = None) -> Diff:
        """What step `first` changed (1 is the first step, -1 the last), or all that changed between two versions.

        `diff(i, j)` compares the program after `i` steps with the program after `j`; 0 is how it began.
        """
        from loopwright.schedule.page.diff import Diff

        return Diff.of(self, first, last)  # type: ignore[arg-type]

    def to_html(
        self,
        path: str | PathLike[str],
        *,
        title: str | None = None,
        sizes: Mapping[str, int] | None = None,
        seed: int = 0,
    ) -> Path:
        """Write one page, complete in itself, that goes through the schedule step by step in a browser.

        Small programs are run on random numbers (from `seed`) so that the page can tell the story of every cell;
        `sizes` says what symbolic sizes are then.
        """
        from loopwright.schedule.page.html import page_text

        written = Path(path)
        given = {name: _whole("sizes", name, size) for name, size in (sizes or {}).items()}
        written.write_text(page_text(self, title, given, seed), encoding="utf-8")  # type: ignore[arg-type]
        return written


def _whole(argument: str, name: str, size: object) -> int:
    try:
        return index(size)  # type: ignore[arg-type]
    except TypeError:
        problem = f"{argument} gives {name} as {size!r}"
        raise BadStepArgument("to_html", problem, hint="give each size as a whole number") from None
