"""Tables of patterns that other compilers compute: what MergeComposite looks for.

@register_pattern_table("dnnl")
def table():
    return [("dnnl.conv2d_relu", is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), wildcard())))]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:  # only named here
    from loopwright.relay.dataflow_pattern.patterns import DFPattern
    from loopwright.relay.expr import Expr

# A name, a pattern, and perhaps a check of what it has matched.
PatternRow: TypeAlias = tuple[str, "DFPattern"] | tuple[str, "DFPattern", Callable[["Expr"], bool]]
Table: TypeAlias = Callable[[], Sequence[PatternRow]]
_TABLES: Final[dict[str, Table]] = {}


def register_pattern_table(compiler: str, table: Table | None = None) -> Table | Callable[[Table], Table]:
    """Enter the table of a compiler, a function that makes it; a decorator without one."""

    def enter(result: Table) -> Table:
        _TABLES[compiler] = result
        return result

    return enter if table is None else enter(table)


def get_pattern_table(compiler: str) -> Sequence[PatternRow] | None:
    """The table of a compiler; None where it has none."""
    table = _TABLES.get(compiler)
    return None if table is None else table()
