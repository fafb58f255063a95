"""Places in a model's source, as front ends and scripts note them in the `span` of expressions.

    Span(SourceName("conv1"), 0, 0, 0, 0)       the name of the node that a value came from
    SequentialSpan([one, other])                 a value that came from several
"""

from __future__ import annotations

from loopwright.ir.node import Node, node


class _Place(Node):
    """Equal to others of the same content."""

    __slots__ = ()

    def _content(self) -> tuple[object, ...]:
        return tuple(getattr(self, field.name) for field in self.node_fields)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash((type(self), self._content()))


@node
class SourceName(_Place):
    """The name of a source: a file, or a node of a model."""

    name: str


@node
class Span(_Place):
    """A part of a source, from a line and a column to others."""

    source_name: SourceName | None
    line: int
    end_line: int
    column: int
    end_column: int

    @property
    def name(self) -> str:
        """The name of its source."""
        return "" if self.source_name is None else self.source_name.name

    def __str__(self) -> str:
        return f"{self.name}:{self.line}:{self.column}"


@node
class SequentialSpan(_Place):
    """Several parts, in order."""

    spans: tuple[Span, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.spans))}]"
