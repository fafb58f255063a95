"""marked_program: the program as `show` has it, with what the last step changed marked.

# step 2: parallel(i_0) · marked +: new with it
  def main(…):
+     for i_0 in T.parallel(8):
          for i_1 in range(8):
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from loopwright.display.sheet import Code
from loopwright.schedule.page.diff import line_changes
from loopwright.schedule.page.versions import module_text, versions
from loopwright.schedule.trace.protocol import ScheduleProtocol
from loopwright.script.highlight import show_script


def marked_program(sch: ScheduleProtocol, black_format: bool | None, options: Mapping[str, object]) -> Code:
    """The program; lines that the last step made are marked, and where lines went."""
    states, changes = versions(sch), sch.changes()
    texts = [show_script(module_text(sch, state, options), black_format) for state in states[-2:]]
    if not changes:
        return Code(texts[-1])
    marks: list[str] = []
    lines: list[str] = []
    gone = 0
    for mark, run in groupby(line_changes(texts[0].split("\n"), texts[1].split("\n")), lambda item: item[0]):
        result = [line for _, line in run]
        if mark == "-":
            gone = len(result)
            continue
        if mark != "+" and gone:  # nothing new stands in their place
            marks.append("-")
            lines.append(f"# {gone} line{'s' * (gone != 1)} went here")
        gone = 0
        marks += [mark if mark == "+" else " "] * len(result)
        lines += result
    step = changes[-1][0]
    message = "marked +: new with it" if "+" in marks else "nothing new with it" if "-" in marks else "no line changed"
    heading = f"# step {len(changes)}: {step} · {message}"
    return Code("\n".join([heading, *lines]), marks=(" ", *marks))
