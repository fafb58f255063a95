"""renew: copies that define variables and buffers of their own.

A program must not define one variable twice, so whoever writes a part of it a second time renews that part: loops,
lets, axes, allocations and matches get new variables and buffers under the old names. What the part only uses stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir.buffer import Buffer, MatchBufferRegion
from loopwright.ir.deep import deep
from loopwright.ir.expr import CommReducer, Expr, IterVar, Let, Reduce, Var
from loopwright.ir.function import PrimFunc
from loopwright.ir.node import rewrite_tuple
from loopwright.ir.stmt import Allocate, AllocateConst, AttrStmt, Block, BlockRealize, DeclBuffer, For, LetStmt, Stmt
from loopwright.ir.visitor import BufferRewriter, uses_var, variables_in


class Cloner(BufferRewriter):
    """Rebuilds a statement with a new variable or buffer for each that is defined inside."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[Var, Var] = {}

    def fresh(self, var: Var) -> Var:
        """A new variable that stands for `var` from now on."""
        new = self.values[var] = type(var)(var.name, var.type_annotation)
        return new

    def own(self, buffer: Buffer) -> Buffer:
        """A new buffer over new memory."""
        self.fresh(buffer.data)
        self.buffers.pop(buffer, None)
        new: Buffer = self.visit(buffer)
        return new

    def visit_Var(self, var: Var) -> Expr:
        return self.values.get(var, var)

    def visit_For(self, loop: For) -> Stmt:
        low, extent = self.visit(loop.min), self.visit(loop.extent)
        binding = loop.thread_binding
        if binding is not None:
            binding = binding.with_(dom=None if binding.dom is None else self.visit(binding.dom))
        var = self.fresh(loop.loop_var)
        return loop.with_(loop_var=var, min=low, extent=extent, body=self.visit(loop.body), thread_binding=binding)

    def visit_LetStmt(self, let: LetStmt) -> Stmt:
        value = self.visit(let.value)
        return let.with_(var=self.fresh(let.var), value=value, body=self.visit(let.body))

    def visit_Let(self, let: Let) -> Expr:
        value = self.visit(let.value)
        return let.with_(var=self.fresh(let.var), value=value, body=self.visit(let.body))

    def visit_Allocate(self, node: Allocate) -> Stmt:
        return self.rebuild(node.with_(buffer_var=self.fresh(node.buffer_var)))

    def visit_AllocateConst(self, node: AllocateConst) -> Stmt:
        return self.rebuild(node.with_(buffer_var=self.fresh(node.buffer_var)))

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        buffer = self.visit(node.buffer)
        if buffer is node.buffer:  # over memory from outside: a second name for it all the same
            buffer = Buffer(**{name: getattr(buffer, name) for name in Buffer.__slots__}, span=buffer.span)
            self.buffers[node.buffer] = buffer
        return node.with_(buffer=buffer, body=self.visit(node.body))

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        # The values are computed outside the block: before its axes are renewed.
        values, predicate = rewrite_tuple(realize.iter_values, self.visit), self.visit(realize.predicate)
        return realize.with_(iter_values=values, predicate=predicate, block=self.visit(realize.block))

    def visit_Block(self, block: Block) -> Block:
        axes = tuple([self.axis(axis) for axis in block.iter_vars])
        allocated = tuple([self.own(buffer) for buffer in block.alloc_buffers])
        matches = tuple([self._match(match) for match in block.match_buffers])
        return block.with_(
            iter_vars=axes,
            alloc_buffers=allocated,
            match_buffers=matches,
            reads=rewrite_tuple(block.reads, self.visit),
            writes=rewrite_tuple(block.writes, self.visit),
            init=None if block.init is None else self.visit(block.init),
            body=self.visit(block.body),
        )

    def visit_CommReducer(self, reducer: CommReducer) -> CommReducer:
        left, right = tuple([self.fresh(var) for var in reducer.lhs]), tuple([self.fresh(var) for var in reducer.rhs])
        return self.rebuild(reducer.with_(lhs=left, rhs=right))

    def visit_Reduce(self, reduce: Reduce) -> Expr:
        # The values of one reduction share its axes: the first one met renews them for all.
        return self.rebuild(
            reduce.with_(axis=tuple([self.axis(axis, self.values.get(axis.var)) for axis in reduce.axis]))
        )

    def axis(self, axis: IterVar, var: Var | None = None) -> IterVar:
        """The axis with its domain rewritten and a new variable, or `var`."""
        dom = None if axis.dom is None else self.visit(axis.dom)
        return axis.with_(dom=dom, var=self.fresh(axis.var) if var is None else var)

    def _match(self, match: MatchBufferRegion) -> MatchBufferRegion:
        buffer = match.buffer
        for part in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            # A symbol that the matched region does not use has its value from the match, so the match defines it.
            if isinstance(part, Var) and part not in self.values and not uses_var(match.source, part.same_as):
                self.fresh(part)
        source = self.visit(match.source)
        return match.with_(source=source, buffer=self.own(buffer))


class _CloneFunction(Cloner, memo=True):
    """Of a whole function, in which every variable has one definition: so an expression has one result."""

    def arguments(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """New buffers for all arguments: they share memory and symbols as the old ones did."""
        # All symbols before any buffer: one may stand in a size before the size that it is.
        for buffer in buffers:
            for part in (buffer.data, *buffer.shape, *buffer.strides, buffer.elem_offset):
                for var in variables_in(part):
                    if var not in self.values:
                        self.fresh(var)
        return [self.visit(buffer) for buffer in buffers]

    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        if not isinstance(attr.node, IterVar):
            return super().visit_AttrStmt(attr)
        # The first launch of a thread axis defines its variable.
        value, thread = self.visit(attr.value), self.axis(attr.node, self.values.get(attr.node.var))
        return attr.with_(node=thread, value=value, body=self.visit(attr.body))


@deep
def renew_defs(func: PrimFunc) -> PrimFunc:
    """A copy of the function that shares no definition with it: parameters, buffers, loops, lets and axes are new."""
    renew = _CloneFunction()
    params = tuple([renew.fresh(param) for param in func.params])
    mapped = [(param, new) for param, new in zip(func.params, params, strict=True) if param in func.buffer_map]
    result = renew.arguments([func.buffer_map[param] for param, _ in mapped])
    buffers = {new: buffer for (_, new), buffer in zip(mapped, result, strict=True)}
    body = renew.visit(func.body)
    return PrimFunc(params, body, func.ret_type, buffers, func.attrs, span=func.span)
