"""Plain C: `emit_c.py` writes a module, `function.py` what functions do beside computing, `header.py` the header.

`entry.py` writes the checked entry that Python calls, `compile_c.py` runs the C compiler, and `make_module.py` puts
these together.
"""

from loopwright.codegen.source.c.emit_c import CSource, emit_c
from loopwright.codegen.source.c.make_module import make_c_module

__all__ = ["CSource", "emit_c", "make_c_module"]
