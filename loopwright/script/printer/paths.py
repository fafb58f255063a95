"""Paths to a part of a program: an `ObjectPath`, as `get_first_structural_mismatch` gives it, or its text.

The text may do without the root: `body.seq[1].value.b`, `["main"]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from loopwright.ir import IRModule, Node, PrimFunc
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.object_path import ObjectPath, PathStep

_STEP: Final = re.compile(r"""\.?([A-Za-z_]\w*)|\[params\[(\d+)\]\]|\[(-?\d+)\]|\[(["'])(.*?)\4\]""")


class NoSuchPart(LoopwrightError, LookupError):
    """A path names a part that the program does not have.

    Paths are made of field names, positions and keys: `body.seq[1].value`. `ir.get_first_structural_mismatch` returns
    such paths; `script(path_to_underline=[...])` marks what they lead to.

    For example:

        from loopwright.script import from_source

        program = from_source("@T.prim_func\\ndef f(n: T.int32):\\n    T.evaluate(n)")
        program.script(path_to_underline=["body.extent"])
    """

    code = "LW0326"

    def __init__(self, path: str, step: str, owner: object) -> None:
        fields = [field.name for field in owner.node_fields] if isinstance(owner, Node) else []
        super().__init__(
            f"the path {path!r} leads nowhere: {type(owner).__name__} has no {step!r}",
            hint=f"its parts are {', '.join(fields)}"
            if fields
            else "use a path that get_first_structural_mismatch gave",
            fields={"path": path, "step": step},
        )


def node_at(root: Any, path: str | ObjectPath) -> Node:
    """The part of `root` that `path` leads to; the node that holds it when it is no node itself."""
    result, nearest = root, root
    for text, step in _steps(path):
        try:
            result = step(result, nearest)
        except (AttributeError, LookupError, TypeError):
            raise NoSuchPart(str(path), text, result) from None
        if isinstance(result, (Node, IRModule)):
            nearest = result
        elif not isinstance(result, (tuple, Mapping)):
            break  # a plain value: its node is what can be marked
    if isinstance(nearest, (IRModule, PrimFunc)) and nearest is root:
        nearest = nearest.body if isinstance(nearest, PrimFunc) else next(iter(nearest.functions.values())).body
    assert isinstance(nearest, Node)
    return nearest.body if isinstance(nearest, PrimFunc) else nearest


Step: TypeAlias = Callable[[Any, Any], Any]  # from an object, and the nearest node, to the next object


def _steps(path: str | ObjectPath) -> Iterator[tuple[str, Step]]:
    """Every step of a path, with its text."""
    if isinstance(path, ObjectPath):
        for kind, key in path.steps():
            if kind is PathStep.ATTR:
                yield str(key), _field(key)
            elif kind in (PathStep.ARRAY_INDEX, PathStep.MAP_VALUE):
                yield f"[{key}]", _entry(key)
            else:
                return  # what is missing has no text
        return
    for match in _STEP.finditer("" if path == "the root" else path.removeprefix("<root>")):
        name, param, position, _, key = match.groups()
        text = match.group(0).lstrip(".")
        if name is not None:
            yield text, _field(name)
        elif param is not None:
            yield text, _parameter(int(param))
        else:
            yield text, _entry(int(position) if position is not None else key)


def _field(name: str) -> Step:
    def step(owner: Any, nearest: Any) -> Any:
        return len(owner) if name == "length" and isinstance(owner, tuple) else getattr(owner, name)

    return step


def _entry(key: object) -> Step:
    return lambda owner, nearest: owner[key]


def _parameter(index: int) -> Step:
    return lambda owner, nearest: owner[nearest.params[index]]
