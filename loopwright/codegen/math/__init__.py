"""Mathematical functions as IR: range reduction and polynomials in plain arithmetic, for any lane count.

Backends emit each body once a function and type, always inlined; the evaluator can run the same bodies. A file holds
one family; `table.py` lists them.
"""

from loopwright.codegen.math.table import expand, has_body

__all__ = ["expand", "has_body"]
