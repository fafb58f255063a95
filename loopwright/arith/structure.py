"""Numbers for structure: two expressions get one number exactly when they are built alike.

Unlike linear forms this looks at no facts, so a number stays right whatever is learnt or forgotten later.
"""

from __future__ import annotations

from collections.abc import Hashable

from loopwright.ir import Expr, FloatImm, IntImm, Let, Reduce, StringImm, Var
from loopwright.ir.node import FieldKind


class Structure:
    """A growing table of structures."""

    __slots__ = ("_names", "_numbers")

    def __init__(self) -> None:
        self._numbers: dict[Expr, int] = {}
        self._names: dict[Hashable, int] = {}

    def number(self, e: Expr) -> int:
        """The number of this structure."""
        result = self._numbers.get(e)
        if result is None:
            result = self._numbers[e] = self._names.setdefault(self._name(e), len(self._names))
        return result

    def _name(self, e: Expr) -> Hashable:
        # What binds variables is alike only when identical.
        if isinstance(e, (Var, Let, Reduce)):
            return e
        if isinstance(e, (IntImm, FloatImm, StringImm)):
            return type(e), e.dtype, repr(e.value)  # repr: -0.0 is not 0.0
        parts: list[object] = [type(e)]
        for field in e.node_fields:
            value = getattr(e, field.name)
            if field.kind is FieldKind.NODES:
                items: list[object] = []
                for item in value:
                    items.append(self.number(item) if isinstance(item, Expr) else item)
                parts.append(tuple(items))
            else:
                # Buffers, operators and producers are the same only when identical.
                parts.append(self.number(value) if isinstance(value, Expr) else value)
        return tuple(parts)
