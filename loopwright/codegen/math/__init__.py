"""Mathematical functions as IR: range reduction and polynomials in plain arithmetic, for any lane count.

Backends emit each body once a function and type, always inlined; the evaluator can run the same bodies. A file holds
one family, in the words of `body.py`. Open `table.py` first: it lists which function has which body, and what is left
to the C library.
"""

from loopwright.codegen.math.table import C_LIBRARY, TAME_QUOTIENTS, body_types, expand, has_body

__all__ = ["C_LIBRARY", "TAME_QUOTIENTS", "body_types", "expand", "has_body"]
