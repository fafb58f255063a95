"""Sources in C and its relatives: lowered IR in, text out.

`expressions.py` and `statements.py` are the walks, with one file each for arithmetic, casts and calls; `helpers.py`
holds the small functions a source brings along, `types.py` and `names.py` how types, literals and names look. All this
is common to C-like languages; the folder `c/` is plain C. Open `c/emit_c.py` first.
"""

from loopwright.codegen.source.c import CSource, emit_c, make_c_module

__all__ = ["CSource", "emit_c", "make_c_module"]
