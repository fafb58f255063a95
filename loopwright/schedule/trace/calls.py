"""Calls: a step as the user writes it, `split(i, [None, 4])`, and the handles among its arguments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import Parameter, signature
from typing import Any, Final, TypeAlias

from loopwright.ir import Var
from loopwright.schedule.handles import BlockRV, ExprRV, LoopRV

Handle = BlockRV | LoopRV | ExprRV | Var
# The arguments of a step by name: handles, numbers, texts, lists and tables of those, as the method declares them.
Arguments: TypeAlias = Mapping[str, Any]
Outputs: TypeAlias = list[Handle] | Handle | None  # of a step, as its caller gets them

# The methods of a schedule and the steps that users have registered, by name; the first parameter is the schedule.
# Whoever defines one enters it here (`engine/methods/base.py`, `engine/composites.py`).
METHODS: Final[dict[str, Callable[..., object]]] = {}


def usual_settings(method: str) -> dict[str, object]:
    """What a step does when it is not told otherwise."""
    parameters = _parameters(method).values()
    return {given.name: given.default for given in parameters if given.default is not Parameter.empty}


def _parameters(method: str) -> Mapping[str, Parameter]:
    """What a step takes besides the schedule."""
    return dict(list(signature(METHODS[method]).parameters.items())[1:])


_MAPS = ("layout", "index_map")  # settings that are a lambda, carried as its text


def call_text(method: str, arguments: Arguments, handle: Callable[[BlockRV | LoopRV], str]) -> str:
    """A step as a user writes it: what must be given by position, the rest by name where it is not as usual."""
    parts: list[str] = []
    for name, parameter in _parameters(method).items():
        if name not in arguments:
            continue
        value = arguments[name]
        if parameter.kind is Parameter.VAR_POSITIONAL:
            parts += [_shown(item, handle) for item in value]
            continue
        text = value if name in _MAPS and isinstance(value, str) else _shown(value, handle)
        if parameter.default is Parameter.empty:
            parts.append(text)
        elif type(value) is not type(parameter.default) or value != parameter.default:
            parts.append(f"{name}={text}")
    return f"{method}({', '.join(parts)})"


def _shown(value: object, handle: Callable[[BlockRV | LoopRV], str]) -> str:
    if isinstance(value, (BlockRV, LoopRV)):
        return handle(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join([_shown(item, handle) for item in value])}]"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def handles_in(values: Iterable[object]) -> list[BlockRV | LoopRV]:
    """Every handle of a block or loop among the values, lists entered."""
    return [handle for handle in every_handle(list(values)) if isinstance(handle, (BlockRV, LoopRV))]


def every_handle(value: object) -> Iterator[Handle]:
    """Every handle in a value, those of sampled numbers included."""
    if isinstance(value, (BlockRV, LoopRV, ExprRV, Var)):
        yield value  # a variable stands for a sampled number in traces that were written by hand
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from every_handle(item)
    elif isinstance(value, Mapping):
        yield from every_handle(list(value.values()))
