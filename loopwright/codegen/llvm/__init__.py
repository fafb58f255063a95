"""LLVM as text: lowered IR in, an object out.

`emit_module.py` writes a module; `emitter.py` is the walk over statements and `expressions.py` the one over values,
with one file each for arithmetic, casts, calls and parallel loops; `abi.py` writes the checked entry; `engine.py`
compiles and links text; `make_module.py` puts these together.
"""

from loopwright.codegen.llvm.emit_module import emit_module
from loopwright.codegen.llvm.make_module import make_module

__all__ = ["emit_module", "make_module"]
