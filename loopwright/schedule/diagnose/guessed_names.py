"""What to write for names that a schedule does not have, and that people look for in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

INSTEAD: Final = {
    "blocks": "write sch.get_block(name) for one, sch.get_child_blocks(block) for those inside another",
    "build": "write loopwright.build(sch)",
    "func": 'write sch.mod["main"]',
    "inline": "write sch.compute_inline(block), or sch.reverse_compute_inline(block) into the block before it",
    "interchange": "write sch.reorder(j, i)",
    "loops": "write sch.get_loops(block)",
    "parallelize": "write sch.parallel(loop)",
    "print": "write sch.show(), or print(sch.mod.script())",
    "script": "write sch.mod.script(), or sch.show()",
    "serial": "loops are serial until a step makes them something else; sch.undo() takes the last step back",
    "steps": "write sch.history(), or sch.trace",
}
_TILE: Final = re.compile(r"(\w+)\.tile\(\s*(\w+),\s*(\w+),\s*(?:\w+=)?(\w+),\s*(?:\w+=)?(\w+)\s*\)")


def instead(name: str, asked: Callable[[], str]) -> Mapping[str, str]:
    """What to write for `name`, and for others; `asked` gives the user's line, whose own names and numbers are used."""
    if name != "tile":
        return INSTEAD
    result = _TILE.search(asked())
    sch, i, j, rows, columns = result.groups() if result is not None else ("sch", "i", "j", "8", "8")
    splits = f"{i}_0, {i}_1 = {sch}.split({i}, [None, {rows}]); {j}_0, {j}_1 = {sch}.split({j}, [None, {columns}])"
    return {name: f"split both loops and reorder: {splits}; {sch}.reorder({i}_0, {j}_0, {i}_1, {j}_1)"}
