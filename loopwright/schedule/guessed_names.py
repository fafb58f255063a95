"""What to write for names that a schedule does not have, and that people look for in it."""

from __future__ import annotations

from typing import Final

INSTEAD: Final = {
    "blocks": "write sch.get_block(name) for one, sch.get_child_blocks(block) for those inside another",
    "build": "write loopwright.build(sch)",
    "explain": "write sch.history() for the steps and their proofs; "
    "loopwright.autosched.apply(function).explain() tells the reasons of a schedule by rule",
    "func": 'write sch.mod["main"]',
    "inline": "write sch.compute_inline(block), or sch.reverse_compute_inline(block) into the block before it",
    "interchange": "write sch.reorder(j, i)",
    "loops": "write sch.get_loops(block)",
    "parallelize": "write sch.parallel(loop)",
    "print": "write sch.show(), or print(sch.mod.script())",
    "script": "write sch.mod.script(), or sch.show()",
    "serial": "loops are serial until a step makes them something else; sch.undo() takes the last step back",
    "steps": "write sch.history(), or sch.trace",
    "tile": "split both loops and reorder: i_0, i_1 = sch.split(i, [None, 8]); j_0, j_1 = sch.split(j, [None, 8]); "
    "sch.reorder(i_0, j_0, i_1, j_1)",
}
