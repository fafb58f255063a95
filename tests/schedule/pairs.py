"""Two programs written apart, made versions of one: blocks match by name, arguments by position."""

from __future__ import annotations

from loopwright.ir import Block, Buffer, BufferRewriter, Expr, IterVar, PrimFunc, Var, pre_order_visit


def blocks_of(function: PrimFunc) -> dict[str, Block]:
    """The blocks of a function by name."""
    found: dict[str, Block] = {}

    def look(node: object) -> None:
        if isinstance(node, Block):
            found.setdefault(node.name_hint, node)

    pre_order_visit(function.body, look)
    return found


def axis(function: PrimFunc, block: str) -> Var:
    """What identifies a block: its first axis."""
    return blocks_of(function)[block].iter_vars[0].var


class _Rename(BufferRewriter):
    def __init__(self, values: dict[Var, Expr], buffers: dict[Buffer, Buffer]) -> None:
        super().__init__()
        self.values = values
        self.buffers.update(buffers)

    def visit_Var(self, var: Var) -> Expr:
        return self.values.get(var, var)

    def visit_Block(self, block: Block) -> Block:
        block = block.rebuild(self.visit)
        axes = [
            IterVar(one.dom, self.values.get(one.var, one.var), one.iter_type, one.thread_tag)
            for one in block.iter_vars
        ]
        return block.with_(iter_vars=tuple(axes), alloc_buffers=tuple([self.visit(b) for b in block.alloc_buffers]))


def version_of(before: PrimFunc, after: PrimFunc) -> PrimFunc:
    """`after` with the axes, parameters and argument buffers of `before`."""
    values: dict[Var, Expr] = {}
    buffers: dict[Buffer, Buffer] = {}
    old = blocks_of(before)
    for name, block in blocks_of(after).items():
        if name in old:
            for new_axis, old_axis in zip(block.iter_vars, old[name].iter_vars, strict=True):
                values[new_axis.var] = old_axis.var
    for new, known in zip(after.params, before.params, strict=True):
        values[new] = known
        if known in before.buffer_map:
            mine, theirs = after.buffer_map[new], before.buffer_map[known]
            buffers[mine] = theirs
            for size, other in zip(mine.shape, theirs.shape, strict=True):
                if isinstance(size, Var):
                    values[size] = other
    return before.with_(body=_Rename(values, buffers).visit(after.body))
