"""The parser: Python source that was decorated or given as text, read as a program and never run.

Read `source.py` (where text comes from), `scopes.py` (what names mean), `expressions.py`, `statements.py` and
`blocks.py` (what is built), `regions.py` (what a block touches), `functions.py` (functions and modules), `entry.py`
(decorators).
"""

from loopwright.script.parser.entry import from_source, ir_module, macro, prim_func
