"""Values of a model that are no tensors: sequences and optionals. They resolve while the model is imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from loopwright.relay.expr import Expr, TupleWrapper


class SequenceValue:
    """A sequence whose length is known: its tensors are expressions (or sequences) of their own."""

    def __init__(self, items: Sequence[Value], dtype: str | None = None) -> None:
        self.items = tuple(items)
        self.dtype = dtype  # of its elements; of an empty one nothing else says it

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"SequenceValue({len(self.items)})"


class OptionalValue:
    """A value that may be absent: `content` is None then."""

    def __init__(self, content: Value | None) -> None:
        self.content = content

    def __repr__(self) -> str:
        return f"OptionalValue({'absent' if self.content is None else 'present'})"


# What a name of the model stands for.
Value: TypeAlias = Expr | SequenceValue | OptionalValue
# What a converter returns: one value, or several; None is an output that is not made.
Results: TypeAlias = Value | TupleWrapper | Sequence[Value | None]
