"""Programs as Python text that parses back to the same program.

Start with `entry.py`. One printer object is put together from layers: `expressions.py`, `data.py` (annotations and
attributes), `scopes.py` (lines, names, declarations), `blocks.py`, `statements.py`, `functions.py`.

What text cannot say: sequences directly inside sequences print flat; Python reads at most 100 levels of indentation
and about 90 of nested parentheses; a function whose body has blocks but no root block gets one when it is read.
"""

from loopwright.script.printer.entry import render, render_node, script_text
from loopwright.script.printer.options import Options

__all__ = ["Options", "render", "render_node", "script_text"]
