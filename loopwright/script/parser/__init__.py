"""The parser: Python source that was decorated or given as text, read as a program and never run.

Read `entry.py` (decorators), `source.py` (where text comes from), `scopes.py` (what names mean), `expressions.py` and
`subscripts.py` (values), `statements.py`, `assignments.py`, `blocks.py` and `memory.py` (what is built), `regions.py`
(what a block touches), `functions.py` (functions and modules).
"""

from loopwright.script.parser.entry import from_source, ir_module, macro, prim_func
