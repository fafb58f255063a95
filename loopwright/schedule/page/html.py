"""page_text: one HTML page, complete in itself, that goes through a schedule step by step.

The page is `page.html` with its data put in: for each step what it changed, the tree of loops, and what a run of the
program does; for each refusal its message and its witness as a drawing. Lines of the program are written once, however
many versions have them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Final

from loopwright.display import progress
from loopwright.display.colours import html_lines, style_rules
from loopwright.ir import IRModule
from loopwright.runtime.json_text import JsonObject
from loopwright.schedule.diagnose.witness import witness_figure
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.handles import BlockRV, LoopRV
from loopwright.schedule.page.cell_trace import NotTraced, cell_trace
from loopwright.schedule.page.diff import changed_words, line_changes
from loopwright.schedule.page.history import Entry, History, error_of
from loopwright.schedule.page.loop_tree import TreeNode, loop_tree
from loopwright.schedule.page.versions import Version, version_lines, versions
from loopwright.schedule.trace.calls import handles_in
from loopwright.schedule.trace.protocol import ScheduleProtocol
from loopwright.schedule.trace.record import Refused
from loopwright.transform import LoweringError, explain_loops

MOST_EVENTS: Final = 80_000  # of all versions together: some four megabytes
SUGGESTING: Final = 8  # refusals whose alternatives are tried, which takes a moment each


def page_text(sch: ScheduleProtocol, title: str | None, sizes: Mapping[str, int], seed: int) -> str:
    """The page as text."""
    name = title or f"Schedule of {', '.join(sch.views())}"
    template = files("loopwright.schedule.page").joinpath("page.html").read_text(encoding="utf-8")
    colours = [style_rules(style, f'[data-theme="{style}"] .code') for style in ("light", "dark")]
    data = json.dumps(page_data(sch, name, sizes, seed), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    parts = {
        "<!--TITLE-->": escape(name),
        "/*CODE COLOURS*/": "\n".join(colours),
        "/*DATA*/": data.replace("<", "\\u003c"),  # so that nothing in it ends the script
    }
    for mark, text in parts.items():
        template = template.replace(mark, text)
    return template


def page_data(sch: ScheduleProtocol, title: str, sizes: Mapping[str, int], seed: int) -> JsonObject:
    """What the page is made of, as plain data."""
    page = _Page(sch)
    entries = page.entries()
    stories, of_version, reasons = _stories(sch, page.states, sizes, seed)
    for entry in entries:
        entry["story"] = of_version[entry["version"]]
        entry["no_story"] = reasons[entry["version"]]
    lines = html_lines(list(page.lines))
    return {"title": title, "lines": lines, "entries": entries, "stories": stories, "runs": _runs(sch)}


def _runs(sch: ScheduleProtocol) -> list[JsonObject]:
    """How each innermost loop will run on this machine; nothing where the program is not one for a CPU yet."""
    try:
        notes = [note for function in sch.mod.functions.values() for note in explain_loops(function)]
    except LoweringError:
        return []
    return [{"loops": note.loops, "writes": note.writes, "text": note.text, "hint": note.hint} for note in notes]


class _Page:
    def __init__(self, sch: ScheduleProtocol) -> None:
        self.sch = sch
        self.states = versions(sch)
        self.texts = [version_lines(state) for state in self.states]
        self.lines: dict[str, int] = {}
        self.tried = 0

    def entries(self) -> list[JsonObject]:
        """The start, then what was done and refused."""
        result = [{"kind": "start", "version": 0, "call": "the program", "code": self._code(0), **self._trees(0)}]
        version = 0
        history = History.of(self.sch)
        with progress.task("page", len(history)) as task:
            for entry in history:
                task.now(entry.call)
                if entry.refused is not None:
                    result.append(self._refused(entry, entry.refused, version))
                else:
                    version += 1
                    result.append(self._step(entry, version))
                task.advance()
        return result

    def _step(self, entry: Entry, version: int) -> JsonObject:
        return {
            "kind": "step",
            "version": version,
            "call": entry.call,
            "where": entry.where,
            "ms": round(1e3 * entry.seconds, 2),
            "proof": entry.proof,
            "code": self._code(version),
            "words": self._words(version),
            **self._trees(version),
        }

    def _refused(self, entry: Entry, refused: Refused, version: int) -> JsonObject:
        error = error_of(self.sch, refused)
        message: JsonObject = {
            "kind": "refused",
            "version": version,
            "call": entry.call,
            "where": entry.where,
            "ms": round(1e3 * entry.seconds, 2),
            "proof": entry.proof,
            "code": [4 * self._line(line) for line in self.texts[version]],
            **self._trees(version, asked={_identity(handle) for handle in handles_in(refused.inputs.values())}),
        }
        if error is not None:
            message.update(problem=error.problem, why=error.why or "", hint=error.hint or "", code_of_error=error.code)
            message["figure"] = witness_figure(error, refused.views) or ""
            message["suggestions"] = self._suggestions(error)
        return message

    def _suggestions(self, error: ScheduleError) -> list[str]:
        self.tried += 1
        return [str(suggestion) for suggestion in error.suggestions] if self.tried <= SUGGESTING else []

    def _line(self, line: str) -> int:
        return self.lines.setdefault(line, len(self.lines))

    def _code(self, version: int) -> list[int]:
        """Four times the number of the line, plus 1 where it is new, 2 where it is gone, 3 where it moved in or out."""
        before = self.texts[max(version - 1, 0)]
        return [4 * self._line(line) + " +->".index(mark) for mark, line in line_changes(before, self.texts[version])]

    def _words(self, version: int) -> dict[str, list[list[int]]]:
        """For lines that took the place of others: which of their characters changed, by the number of the row."""
        rows = list(line_changes(self.texts[version - 1], self.texts[version]))
        return {str(row): ranges for row, ranges in changed_words(rows).items()}

    def _trees(self, version: int, asked: Collection[object] | None = None) -> JsonObject:
        """The loops and blocks: marked is what changed, or what a refused step was asked of."""
        state, before = self.states[version], self.states[max(version - 1, 0)]
        trees = []
        for name, view in state.items():
            tree = loop_tree(view, before.get(name) if asked is None else None)
            for root in tree.roots:
                for node, _ in root.walk():
                    if asked is not None and node.key in asked:
                        node.mark = "asked"
            nodes = [_node(node) for node in tree.roots]
            trees.append({"name": name, "nodes": nodes, "allocates": tree.allocates, "gone": tree.gone})
        return {"trees": trees}


def _identity(handle: BlockRV | LoopRV) -> object:
    return handle.var if isinstance(handle, LoopRV) else handle.key


def _node(node: TreeNode) -> JsonObject:
    result: JsonObject = {"what": node.what, "name": node.name}
    for name in ("extent", "kind", "detail", "mark"):
        if getattr(node, name):
            result[name] = getattr(node, name)
    if node.children:
        result["children"] = [_node(child) for child in node.children]
    return result


def _stories(
    sch: ScheduleProtocol, states: Sequence[Version], sizes: Mapping[str, int], seed: int
) -> tuple[list[JsonObject], list[int | None], list[str]]:
    """The stories that differ, which one each version has, and why it has none.

    Where all of them would be too much, the first and the last version keep theirs.
    """
    function = sch.func_working_on
    name = function.name if function is not None else next(iter(states[0]))
    stories: list[JsonObject] = []
    known: dict[str, int] = {}
    of_version: list[int | None] = [None] * len(states)
    reasons = [""] * len(states)
    events = 0
    for version in [len(states) - 1, *range(len(states) - 1)]:  # the last one first
        if events > MOST_EVENTS:
            reasons[version] = "the page would become too large"
            continue
        module = IRModule({key: view.function for key, view in states[version].items()})
        try:
            data = cell_trace(module, name, sizes, seed).data()
        except NotTraced as reason:
            reasons[version] = str(reason)
            continue
        text = json.dumps(data)
        if text not in known:
            known[text] = len(stories)
            stories.append(data)
            events += len(data["events"])
        of_version[version] = known[text]
    return stories, of_version, reasons
