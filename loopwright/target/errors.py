"""The ways a target can be written wrongly."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from loopwright.runtime.errors import LoopwrightError


def nearest(name: str, candidates: Iterable[str]) -> list[str]:
    """The candidates most like `name`, best first; all of them, sorted, when none is alike."""
    known = sorted(candidates)
    return difflib.get_close_matches(name, known, n=4, cutoff=0.5) or known


class UnknownTargetKind(LoopwrightError, ValueError):
    """The first word of a target names what generates the code (`llvm`, `c`, `cuda` …); this word names nothing.

    `loopwright.target.list_kinds()` lists the kinds, `list_tags()` the named machines that stand for a whole target.

    For example:

        from loopwright.target import Target

        Target("lvm -mcpu=core-avx2")
    """

    code = "LW0601"

    def __init__(self, kind: str, candidates: Iterable[str], meant: str = "") -> None:
        near = [meant] if meant else nearest(kind, candidates)
        super().__init__(
            f"unknown target kind {kind!r}",
            why="a target starts with its kind, such as llvm, then options, such as -mcpu=core-avx2",
            hint=f'write "{meant}"' if meant else f"use one of {', '.join(near)}",
            fields={"kind": kind, "candidates": near},
        )


class UnknownTargetAttribute(LoopwrightError, ValueError):
    """A target has an option that its kind does not know.

    Options are never ignored: a misspelled `-mcpu` would quietly give slow code.

    For example:

        from loopwright.target import Target

        Target("llvm -mpcu=core-avx2")
    """

    code = "LW0602"

    def __init__(self, kind: str, name: str, candidates: Iterable[str]) -> None:
        near = nearest(name, candidates)
        super().__init__(
            f"target kind {kind} has no attribute {name!r}",
            hint=f"use one of {', '.join('-' + n for n in near)}",
            fields={"kind": kind, "attribute": name, "candidates": near},
        )


class BadTargetAttribute(LoopwrightError, ValueError):
    """An option of a target has a value of the wrong type, such as `-num-cores=many`.

    For example:

        from loopwright.target import Target

        Target("llvm -num-cores=many")
    """

    code = "LW0603"

    def __init__(self, kind: str, name: str, value: object, expected: str, hint: str | None = None) -> None:
        super().__init__(
            f"target kind {kind}: attribute {name} is {expected}, but got {value!r}",
            hint=hint,
            fields={"kind": kind, "attribute": name, "value": value, "expected": expected},
        )


class BadTargetText(LoopwrightError, ValueError):
    """A target is not written as a target: unbalanced quotes, a word that is no option, JSON that does not parse, or
    something that is neither text, dict nor `Target`.

    A target is text such as `llvm -mcpu=core-avx2 -mattr=+avx512f,+fma -num-cores=4`, the same as a dict or as JSON
    (`{"kind": "llvm", "mcpu": "core-avx2"}`), or a tag such as `raspberry-pi/4b-aarch64`.

    For example:

        from loopwright.target import Target

        Target("llvm core-avx2")
    """

    code = "LW0604"

    def __init__(self, text: object, problem: str) -> None:
        super().__init__(
            f"cannot read the target {text!r}: {problem}",
            hint='write it like "llvm -mcpu=core-avx2 -mattr=+avx512f,+fma", as a dict with a "kind", or as JSON',
            fields={"text": str(text), "problem": problem},
        )


class NoCurrentTarget(LoopwrightError, ValueError):
    """`Target.current(allow_none=False)` was asked outside any `with Target(...):`.

    For example:

        from loopwright.target import Target

        Target.current(allow_none=False)
    """

    code = "LW0605"

    def __init__(self) -> None:
        super().__init__(
            "there is no current target", hint='put the code under `with Target("llvm"):`, or pass a target'
        )
