"""What to write for names that a schedule does not have, and that people look for in it."""

from __future__ import annotations

from typing import Final

INSTEAD: Final = {
    "blocks": "write sch.get_block(name) for one, sch.get_child_blocks(block) for those inside another",
    "func": 'write sch.mod["main"]',
    "inline": "write sch.compute_inline(block), or sch.reverse_compute_inline(block) into the block before it",
    "interchange": "write sch.reorder(j, i)",
    "loops": "write sch.get_loops(block)",
    "parallelize": "write sch.parallel(loop)",
    "script": "write sch.mod.script(), or sch.show()",
    "serial": "loops are serial until a step makes them something else; sch.undo() takes the last step back",
    "tile": "split both loops and reorder: i_0, i_1 = sch.split(i, [None, 8]); j_0, j_1 = sch.split(j, [None, 8]); "
    "sch.reorder(i_0, j_0, i_1, j_1)",
}
