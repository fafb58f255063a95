"""show: a program as it is written, and after each lowering pass; as text, as differences, as an HTML page, as JSON."""

from __future__ import annotations

import difflib
import html
import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from loopwright.cli.programs import Program, compiled
from loopwright.display import progress
from loopwright.display.colours import highlight
from loopwright.display.sheet import Code, Lines, Sheet, Span
from loopwright.ir import IRModule
from loopwright.runtime.errors import LoopwrightError
from loopwright.target import Target

START: Final = "start"


class NoSuchStage(LoopwrightError, ValueError):
    """`loopwright show --stage` was given a name that is no stage of lowering.

    For example:

        from loopwright.cli.show import chosen_stages

        chosen_stages([], ["vectorise"], ["start", "vectorize_loops"])
    """

    code = "LW0024"

    def __init__(self, name: str, names: Sequence[str]) -> None:
        near = difflib.get_close_matches(name, names, 1)
        super().__init__(
            f"lowering has no stage {name!r}",
            hint=f"did you mean {near[0]!r}?" if near else f"its stages are {', '.join(names)}",
            fields={"name": name, "stages": list(names)},
        )


class Stage(NamedTuple):
    """The program after one pass, as text."""

    name: str
    text: str
    changed: bool  # by this pass


def stage_names(target: str) -> list[str]:
    """ "start", then the passes of the pipeline for that target."""
    from loopwright.transform.pipeline import pipeline

    return [START, *[step.run.info.name for step in pipeline(Target(target))]]


def lowering_stages(module: IRModule, target: str) -> list[Stage]:
    """The program as it is given, then after each pass."""
    from loopwright.transform.pipeline import pipeline

    chosen = Target(target)
    steps = pipeline(chosen)
    stages = [Stage(START, _text(module), True)]
    with progress.task("lower", len(steps)) as task:
        for step in steps:
            task.advance(step.run.info.name)
            with chosen:
                module = step.run(module)
            text = _text(module)
            stages.append(Stage(step.run.info.name, text, text != stages[-1].text))
    return stages


def _text(module: IRModule) -> str:
    """A module of one function is shown as that function."""
    functions = list(module.functions_items())
    if len(functions) == 1 and not module.attrs:
        name, func = functions[0]
        return func.script(name=None if "global_symbol" in func.attrs else name)
    return module.script()


def chosen_stages(stages: Sequence[Stage], wanted: Sequence[str], names: Sequence[str]) -> list[Stage]:
    """The stages asked for, by name; "last" is the final one. Without a wish, those that changed something."""
    for name in wanted:
        if name not in (*names, "last", "all"):
            raise NoSuchStage(name, [*names, "last", "all"])
    if "all" in wanted:
        return list(stages)
    if not wanted:
        return [stage for stage in stages if stage.changed]
    return [
        stage for k, stage in enumerate(stages) if stage.name in wanted or ("last" in wanted and k + 1 == len(stages))
    ]


def native_text(module: IRModule, target: str, form: str) -> str:
    """The LLVM text ("ll") or the assembly ("asm") of the compiled program."""
    text: str = compiled(module, target).get_source(form)
    return text


def difference(before: Stage, after: Stage) -> str:
    """The lines that changed between two stages, in the usual unified form."""
    lines = difflib.unified_diff(
        before.text.splitlines(), after.text.splitlines(), before.name, after.name, lineterm="", n=2
    )
    return "\n".join(lines)


def as_text(program: Program, stages: Sequence[Stage], diff: bool, coloured: bool, title: bool) -> str:
    """The stages one below the other, each under a line with its name."""
    parts = []
    previous: Stage | None = None
    for stage in stages:
        name = f"{program.name}: {stage.name}" if title else stage.name
        note = "" if stage.changed or stage.name == START else " (no change)"
        parts.append(_ruler(f"{name}{note}"))
        if diff and previous is not None:
            changes = Sheet(_diff_lines(difference(previous, stage)))
            parts.append(changes.coloured() if coloured else changes.text())
        else:
            parts.append(highlight(stage.text).rstrip("\n") if coloured else stage.text)
        previous = stage
    if program.explained:
        parts += [_ruler(f"{program.name}: explain" if title else "explain"), program.explained]
    return "\n".join(parts)


def _ruler(text: str) -> str:
    return f"# ---- {text} " + "-" * max(0, 100 - len(text))


def native_json(texts: Sequence[tuple[Program, str]], form: str) -> str:
    """Programs, each with its LLVM text or its assembly."""
    return json.dumps([{"program": program.name, "form": form, "text": text} for program, text in texts], indent=2)


def as_json(shown: Sequence[tuple[Program, Sequence[Stage]]]) -> str:
    """Programs, each with its stages in order."""
    return json.dumps(
        [
            {
                "program": program.name,
                "stages": [{"name": one.name, "changed": one.changed, "script": one.text} for one in stages],
                **({"explain": program.explained} if program.explained else {}),
            }
            for program, stages in shown
        ],
        indent=2,
    )


# Light or dark, as the reader's system is; the programs bring their own colours for both.
_STYLE: Final = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
nav a { margin-right: 1rem } details { margin: 1rem 0; border-left: 3px solid #8888; padding-left: 1rem }
summary { cursor: pointer; font-weight: 600 }
"""
_TONES: Final = {"+": "good", "-": "bad", "@": "key"}


def as_html(file: str, shown: Sequence[tuple[Program, Sequence[Stage]]]) -> str:
    """A page that stands alone: every stage of every program, and what each pass changed."""
    body = [f"<h1>{html.escape(file)}</h1>"]
    body.append(
        "<nav>" + "".join([f'<a href="#{html.escape(p.name)}">{html.escape(p.name)}</a>' for p, _ in shown]) + "</nav>"
    )
    for program, stages in shown:
        body.append(f'<h2 id="{html.escape(program.name)}">{html.escape(program.name)}</h2>')
        if program.explained:
            reasons = html.escape(program.explained)
            body.append(f"<details open><summary>explain</summary><pre>{reasons}</pre></details>")
        previous: Stage | None = None
        for stage in stages:
            is_open = " open" if previous is None or stage is stages[-1] else ""
            note = "" if stage.changed or previous is None else " (no change)"
            body.append(f"<details{is_open}><summary>{html.escape(stage.name)}{note}</summary>")
            if previous is not None and stage.text != previous.text:
                changes = Sheet(_diff_lines(difference(previous, stage))).html()
                body.append(f"<details><summary>what changed</summary>{changes}</details>")
            body.append(Sheet(Code(stage.text)).html())
            body.append("</details>")
            previous = stage
    text = "\n".join(body)
    title = html.escape(file)
    return f'<!doctype html>\n<meta charset="utf-8">\n<title>{title}</title>\n<style>{_STYLE}</style>\n{text}\n'


def _diff_lines(text: str) -> Lines:
    return Lines(tuple([(Span(line, _TONES.get(line[:1], "")),) for line in text.split("\n")]))
