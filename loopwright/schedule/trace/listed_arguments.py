"""Listed arguments: a step whose inputs and settings were listed in the order of a trace file, not given by name.

    Instruction(kind=InstructionKind.get("Split"), inputs=[loop, None, 32], attrs=[True], outputs=[outer, inner])

Such a step is written by hand: its handles (`BlockRV()`, `LoopRV()`, a variable for a sampled number) belong to no
schedule until the trace is applied to one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from loopwright.ir import FloatImm, IntImm, StringImm, Var
from loopwright.schedule.handles import BlockRV, ExprRV, LoopRV
from loopwright.schedule.trace.trace_json import read_step

_SPREAD: Final = ("factors", "loops", "ordered_loops")  # whose items stand one by one


class Given(dict[Any, Any]):
    """The arguments of a step by name; by position too, as trace files list them."""

    def __missing__(self, key: object) -> Any:
        if not isinstance(key, int):
            raise KeyError(key)
        listed: list[Any] = []
        for name, value in self.items():
            listed += value if name in _SPREAD and isinstance(value, (list, tuple)) else [value]
        return listed[key]


def by_name(
    kind: str, inputs: Sequence[object], attrs: Sequence[object], rows: tuple[Sequence[str], Sequence[str]]
) -> tuple[Given, Given]:
    """Listed inputs and settings of a kind by their names; `rows` are the names of both."""
    known: dict[str, Any] = {}
    given, settings = read_step(
        kind, [_input(value, known) for value in inputs], [_attribute(value, known) for value in attrs], rows, known
    )
    return Given(given), Given(settings)


def _input(value: object, known: dict[str, Any]) -> object:
    """A value as trace files have it: a handle by a name, a text in quotes."""
    if isinstance(value, (BlockRV, LoopRV, ExprRV, Var)):
        return _named(value, known)
    if value is None:
        return "None"
    if isinstance(value, (str, StringImm)):
        return json.dumps(str(getattr(value, "value", value)))
    return _plain(value, known, _input)


def _attribute(value: object, known: dict[str, Any]) -> object:
    if isinstance(value, (BlockRV, LoopRV, ExprRV, Var)):
        return {"rv": _named(value, known)}
    return _plain(value, known, _attribute)


def _named(value: object, known: dict[str, Any]) -> str:
    return next((name for name, other in known.items() if other is value), None) or _new_name(value, known)


def _new_name(value: object, known: dict[str, Any]) -> str:
    name = f"h{len(known)}"
    known[name] = value
    return name


def _plain(value: object, known: dict[str, Any], each: Any) -> object:
    if isinstance(value, (IntImm, FloatImm)):
        return value.value
    if isinstance(value, StringImm):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): each(item, known) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [each(item, known) for item in value]
    return value
