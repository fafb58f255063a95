"""The order in which the blocks of a kernel compute tiles (rasterization): groups of rows, each column by column.

    for tile in T.thread_binding(32, "blockIdx.x", {"rasterize": [8, 4, 2]})          0  2  4  6
        row, column = tile // 4, tile % 4                                             1  3  5  7
                                                                                      8 10 12 14
                                                                                      9 11 13 15 …

Blocks that run at the same time then read few rows and few columns of tiles: their operands are in L2. Blocks run in
any order, so this is no schedule step that would have to be proved: the loop stands for the same tiles, each once.
"""

from __future__ import annotations

from typing import Final

from loopwright.analysis.thread_axes import axis_of, is_block_tag, tag_of
from loopwright.ir import AttrStmt, Expr, For, IntImm, Min, const
from loopwright.transform.errors import LoweringError

RASTERIZE: Final = "rasterize"  # of a loop over blocks: rows and columns of tiles, and rows that are one group


class NotRasterized(LoweringError, ValueError):
    """A loop is annotated with an order of tiles that its iterations cannot have.

    `rasterize` is three numbers: rows and columns of tiles, the columns being the faster ones, and rows of a group. The
    loop is bound to blocks, and has a constant number of iterations, that of all tiles, once or several times.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((6, 32))):
            for bx in T.thread_binding(6, thread="blockIdx.x", annotations={"rasterize": [4, 2, 2]}):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    A[bx, tx] = T.float32(0)

        loopwright.build(f, target="cuda")
    """

    code = "LW0795"

    def __init__(self, node: For, problem: str) -> None:
        hint = "annotate a loop over blocks of rows * columns tiles with [rows, columns, rows of a group]"
        super().__init__(f"{RASTERIZE} of loop {node.loop_var.name}: {problem}", at=node, hint=hint)


def rasterized(node: For | AttrStmt, index: Expr) -> Expr:
    """The tile that iteration `index` of a loop over blocks computes; `index` itself where no order is asked for."""
    given = node.annotations.get(RASTERIZE) if isinstance(node, For) and node.annotations else None
    if given is None:
        return index
    assert isinstance(node, For)
    rows, columns, group = _sizes(node, given)
    extent = axis_of(node).extent
    is_once = isinstance(extent, IntImm) and extent.value == rows * columns
    around = const(0, index.dtype) if is_once else index // (rows * columns)
    within = index if is_once else index % (rows * columns)
    first = within // (group * columns) * group  # row of the group
    within = within % (group * columns)
    rest = const(group, index.dtype) if rows % group == 0 else Min(const(group, index.dtype), rows - first)
    return around * (rows * columns) + (first + within % rest) * columns + within // rest


def _sizes(node: For, given: object) -> tuple[int, int, int]:
    items = list(given) if isinstance(given, (list, tuple)) else []
    sizes = [item.value if isinstance(item, IntImm) else item for item in items]
    if len(sizes) != 3 or not all([isinstance(size, int) and size > 0 for size in sizes]):
        raise NotRasterized(node, f"{given} is not three positive numbers")
    rows, columns, group = [int(size) for size in sizes]
    extent = axis_of(node).extent
    if not is_block_tag(tag_of(node)) or not isinstance(extent, IntImm):
        raise NotRasterized(node, f"it is no loop over a constant number of blocks ({tag_of(node) or 'not bound'})")
    if extent.value % (rows * columns):
        raise NotRasterized(node, f"its {extent.value} iterations are no multiple of {rows} × {columns} tiles")
    return rows, columns, group


__all__ = ["RASTERIZE", "NotRasterized", "rasterized"]
