"""Paths to a part of a program, as `get_first_structural_mismatch` gives them: `body.seq[1].value.b`, `["main"]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from loopwright.ir import IRModule, Node, PrimFunc
from loopwright.runtime.errors import LoopwrightError

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


def node_at(root: Any, path: str) -> Node:
    """The part of `root` that `path` leads to; the node that holds it when it is no node itself."""
    result, nearest = root, root
    for match in _STEP.finditer("" if path == "the root" else path):
        name, param, position, _, key = match.groups()
        try:
            if name is not None:
                result = len(result) if name == "length" and isinstance(result, tuple) else getattr(result, name)
            elif param is not None:
                result = result[nearest.params[int(param)]]
            else:
                result = result[int(position) if position is not None else key]
        except (AttributeError, LookupError, TypeError):
            raise NoSuchPart(path, match.group(0).lstrip("."), result) from None
        if isinstance(result, (Node, IRModule)):
            nearest = result
        elif not isinstance(result, (tuple, Mapping)):
            break  # a plain value: its node is what can be marked
    if isinstance(nearest, (IRModule, PrimFunc)) and nearest is root:
        nearest = nearest.body if isinstance(nearest, PrimFunc) else next(iter(nearest.functions.values())).body
    assert isinstance(nearest, Node)
    return nearest.body if isinstance(nearest, PrimFunc) else nearest
