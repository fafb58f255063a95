"""The parser: Python source that was decorated or given as text, read as a program and never run.

Read `entry.py` (decorators), `source.py` (where text comes from), `scopes.py` (what names mean), `expressions.py` and
`subscripts.py` (values), `directives.py` (what the words of `T` hand to the parser), `frames.py` (what stands around a
statement), `memory.py`, `blocks.py`, `assignments.py` and `statements.py` (what is built), `regions.py` (what a block
touches), `macros.py`, `functions.py` (functions and modules). One parser object is put together from these layers, each
a subclass of the one before. `errors.py` lists what can be wrong.
"""

from loopwright.script.parser.entry import from_source, ir_module, macro, prim_func
