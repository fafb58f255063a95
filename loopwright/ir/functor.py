"""Walks that take functions instead of classes: `ir_transform`, and `renew_defs`, a copy that defines its own names.

ir_transform(func.body, None, lambda node: halve(node), only_enable=["tir.For"])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, Final

from loopwright.ir import buffer as _buffer
from loopwright.ir import expr as _expr
from loopwright.ir import stmt as _stmt
from loopwright.ir.buffer import Buffer, MatchBufferRegion
from loopwright.ir.deep import deep
from loopwright.ir.expr import CommReducer, Expr, IterVar, Let, Reduce, Var
from loopwright.ir.function import PrimFunc
from loopwright.ir.node import Node, rewrite_tuple
from loopwright.ir.stmt import Allocate, AllocateConst, Block, BlockRealize, DeclBuffer, For, LetStmt, Stmt
from loopwright.ir.visitor import BufferRewriter, Rewriter
from loopwright.runtime.errors import LoopwrightError

Change = Callable[[Any], Any]


class UnknownNodeName(LoopwrightError, ValueError):
    """`ir_transform` was to stop at nodes of a class that does not exist.

    For example:

        from loopwright import tir

        tir.stmt_functor.ir_transform(tir.Evaluate(0), None, lambda node: None, ["tir.Foor"])
    """

    code = "LW0529"

    def __init__(self, name: str) -> None:
        near = get_close_matches(name, [f"tir.{known}" for known in NODE_CLASSES], 3)
        super().__init__(
            f"only_enable: no node is called {name!r}",
            hint=f"did you mean {', '.join(near)}?" if near else 'names look like "tir.For"',
        )


class BadReplacement(LoopwrightError, TypeError):
    """A function given to `ir_transform` returned something that cannot replace the node it was given.

    An expression is replaced by an expression, a statement by a statement; None keeps the node.

    For example:

        from loopwright import tir

        loop = tir.For(tir.Var("i"), 0, 4, tir.ForKind.SERIAL, tir.Evaluate(0))
        tir.stmt_functor.ir_transform(loop, None, lambda node: True, ["tir.For"])
    """

    code = "LW0534"

    def __init__(self, node: Node, result: object) -> None:
        kind = "an expression" if isinstance(node, Expr) else "a statement" if isinstance(node, Stmt) else "a node"
        super().__init__(
            f"ir_transform: {type(node).__name__} is replaced by {kind}, got {type(result).__name__} {result!r}",
            hint="return None to keep the node",
        )


NODE_CLASSES: Final[dict[str, type[Node]]] = {
    name: cls
    for module in (_expr, _buffer, _stmt)
    for name, cls in vars(module).items()
    if isinstance(cls, type) and issubclass(cls, Node)
}


def node_class(name: str) -> type[Node]:
    """The node class that `tir.For` (or `For`) names; `tir.IntImm` and `IntImm` are one."""
    found = NODE_CLASSES.get(name.removeprefix("tir."))
    if found is None:
        raise UnknownNodeName(name)
    return found


class _Transform(Rewriter, memo=True):
    def __init__(self, before: Change | None, after: Change | None, only: tuple[type[Node], ...] | None) -> None:
        self.before, self.after, self.only = before, after, only

    def visit_Node(self, node: Node) -> Any:
        chosen = self.only is None or isinstance(node, self.only)
        if chosen and self.before is not None:
            found = self.before(node)
            if found is not None:
                return _checked(node, found)
        node = self.rebuild(node)
        if chosen and self.after is not None:
            found = self.after(node)
            if found is not None:
                return _checked(node, found)
        return node


def _checked(node: Node, result: Any) -> Any:
    wanted = Expr if isinstance(node, Expr) else Stmt if isinstance(node, Stmt) else Node
    if not isinstance(result, wanted):
        raise BadReplacement(node, result)
    return result


@deep
def ir_transform(
    stmt: Any, preorder: Change | None, postorder: Change | None, only_enable: Sequence[str] | None = None
) -> Any:
    """`stmt` with nodes replaced; a PrimFunc is changed in its body.

    `preorder(node)` comes first: what it returns, if not None, replaces the node, whose children are then left alone.
    `postorder(node)` gets the node with its children replaced; None keeps it. `only_enable` names the classes of nodes
    the functions are asked about (`["tir.For"]`); others are only walked through.
    """
    only = None if only_enable is None else tuple([node_class(name) for name in only_enable])
    walk = _Transform(preorder, postorder, only)
    if isinstance(stmt, PrimFunc):
        return stmt.with_(body=walk.visit(stmt.body))
    return walk.visit(stmt)


class _Renew(BufferRewriter, memo=True):
    """A copy in which every variable and buffer that is defined inside is new."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[Var, Var] = {}

    def fresh(self, var: Var) -> Var:
        new = self.values[var] = type(var)(var.name, var.type_annotation)
        return new

    def declare(self, buffer: Buffer) -> Buffer:
        """A new buffer, with its memory and the sizes that are first named there."""
        for part in (buffer.data, *buffer.shape, *buffer.strides, buffer.elem_offset):
            if isinstance(part, Var) and part not in self.values:
                self.fresh(part)
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
        if buffer is node.buffer:
            buffer = Buffer(**{name: getattr(buffer, name) for name in Buffer.__slots__}, span=buffer.span)
            self.buffers[node.buffer] = buffer
        return node.with_(buffer=buffer, body=self.visit(node.body))

    def visit_Block(self, block: Block) -> Block:
        axes = tuple([self._axis(axis) for axis in block.iter_vars])
        allocated = tuple([self.declare(buffer) for buffer in block.alloc_buffers])
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

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        # The values are computed outside the block: before its axes are renewed.
        values, predicate = rewrite_tuple(realize.iter_values, self.visit), self.visit(realize.predicate)
        return realize.with_(iter_values=values, predicate=predicate, block=self.visit(realize.block))

    def visit_CommReducer(self, reducer: CommReducer) -> CommReducer:
        left, right = tuple(map(self.fresh, reducer.lhs)), tuple(map(self.fresh, reducer.rhs))
        return self.rebuild(reducer.with_(lhs=left, rhs=right))

    def visit_Reduce(self, reduce: Reduce) -> Expr:
        axes = tuple([self._axis(axis) for axis in reduce.axis])
        return self.rebuild(reduce.with_(axis=axes))

    def _axis(self, axis: IterVar) -> IterVar:
        dom = None if axis.dom is None else self.visit(axis.dom)
        return axis.with_(dom=dom, var=self.values[axis.var] if axis.var in self.values else self.fresh(axis.var))

    def _match(self, match: MatchBufferRegion) -> MatchBufferRegion:
        source = self.visit(match.source)
        return match.with_(source=source, buffer=self.declare(match.buffer))


@deep
def renew_defs(func: PrimFunc) -> PrimFunc:
    """A copy of the function that shares no definition with it: parameters, buffers, loops, lets and axes are new."""
    renew = _Renew()
    params = tuple([renew.fresh(param) for param in func.params])
    mapped = [(param, new) for param, new in zip(func.params, params, strict=True) if param in func.buffer_map]
    buffers = {new: renew.declare(func.buffer_map[param]) for param, new in mapped}
    body = renew.visit(func.body)
    return PrimFunc(params, body, func.ret_type, buffers, func.attrs, span=func.span)
