"""Questions about programs that scripts ask: variables without a definition, access regions, where a buffer is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loopwright.analysis.thread_axes import is_block_tag, is_thread_loop, tag_of
from loopwright.ir import (
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    Buffer,
    BufferLoad,
    BufferRealize,
    BufferRegion,
    BufferStore,
    Call,
    DeclBuffer,
    Expr,
    For,
    IfThenElse,
    IRModule,
    IterType,
    IterVar,
    Let,
    LetStmt,
    Node,
    PrimFunc,
    Range,
    Stmt,
    StringImm,
    Var,
    Visitor,
    any_node,
    collect,
    const,
    deep,
    structural_equal,
)
from loopwright.ir.functor import ir_transform
from loopwright.ir.sharing import bind_large
from loopwright.ir.verifier import NotWellFormed, verify
from loopwright.runtime.errors import LoopwrightError, SourceLine


def expr_deep_equal(lhs: Expr, rhs: Expr) -> bool:
    """Whether two expressions are built alike from the same variables."""
    return structural_equal(lhs, rhs)


def verify_ssa(func: PrimFunc) -> bool:
    """Whether every variable is defined in one place only, and before it is used."""
    try:
        verify(func)
    except NotWellFormed:
        return False
    # The verifier lets two expressions bind one variable, each for itself; here they must agree on its value.
    values: dict[Var, Expr] = {}
    return all([structural_equal(values.setdefault(let.var, let.value), let.value) for let in collect(func.body, Let)])


def has_if_then_else(stmt: Stmt) -> bool:
    """Whether a branch, as a statement or an expression, stands in the program."""

    def chooses(node: Node) -> bool:
        return isinstance(node, IfThenElse) or (isinstance(node, Call) and node.op.name == "tir.if_then_else")

    return any_node(stmt, chooses)


class _Undefined(Visitor):
    def __init__(self, defined: Sequence[Var]) -> None:
        self.defined = set(defined)
        self.found: dict[Var, None] = {}
        self.buffers: set[Buffer] = set()

    def visit_Var(self, var: Var) -> None:
        if var not in self.defined:
            self.found.setdefault(var)

    def visit_Buffer(self, buffer: Buffer) -> None:
        if buffer not in self.buffers:
            self.buffers.add(buffer)
            for part in (buffer.data, *buffer.shape, *buffer.strides, buffer.elem_offset):
                self.visit(part)

    def _with(self, variables: Sequence[Var], *bodies: Node | None) -> None:
        new = [var for var in variables if var not in self.defined]
        self.defined.update(new)
        for body in bodies:
            if body is not None:
                self.visit(body)
        self.defined.difference_update(new)

    def visit_For(self, loop: For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        self._with([loop.loop_var], loop.body)

    def visit_LetStmt(self, let: LetStmt | Let) -> None:
        self.visit(let.value)
        self._with([let.var], let.body)

    visit_Let = visit_LetStmt

    def visit_Allocate(self, node: Allocate | AllocateConst) -> None:
        for extent in node.extents:
            self.visit(extent)
        self._with([node.buffer_var], node.body)

    visit_AllocateConst = visit_Allocate

    def visit_AttrStmt(self, node: AttrStmt) -> None:
        self.visit(node.value)
        self._with([node.node.var] if isinstance(node.node, IterVar) else [], node.body)

    def visit_BufferRealize(self, node: BufferRealize) -> None:
        for part in (*node.bounds, node.condition):
            self.visit(part)
        self._with([node.buffer.data], node.body)

    def visit_Block(self, block: Block) -> None:
        own = [axis.var for axis in block.iter_vars]
        for axis in block.iter_vars:
            if axis.dom is not None:
                self.visit(axis.dom)
        own += [buffer.data for buffer in block.alloc_buffers]
        for match in block.match_buffers:
            # What a match leaves open is defined by it.
            sizes = (*match.buffer.shape, *match.buffer.strides, match.buffer.elem_offset)
            own += [match.buffer.data, *[size for size in sizes if isinstance(size, Var)]]
        sources = [match.source for match in block.match_buffers]
        self._with(own, *sources, *block.reads, *block.writes, block.init, block.body)


@deep
def undefined_vars(node: Node, defs: Sequence[Var] | None = None) -> list[Var]:
    """The variables that are used in `node` and not defined in it (or by `defs`), in order of appearance."""
    if isinstance(node, PrimFunc):
        walk = _Undefined([*node.params, *(defs or ())])
        for buffer in node.argument_buffers():
            parts = (buffer.data, *buffer.shape, *buffer.strides, buffer.elem_offset)
            walk.defined.update(part for part in parts if isinstance(part, Var))
        walk.visit(node.body)
    else:
        walk = _Undefined(defs or ())
        walk.visit(bind_large(node))
    return list(walk.found)


def get_block_access_region(block: Block, buffer_var_map: Mapping[Var, Buffer]) -> list[list[BufferRegion]]:
    """[what the block reads, what it writes, buffers it hands on by pointer], from its body and not its declaration."""
    handed: dict[Buffer, None] = {}

    def take(node: Node) -> Expr | None:
        """Pointers go out, and are noted."""
        if isinstance(node, Var) and node in buffer_var_map:
            handed.setdefault(buffer_var_map[node])
            return StringImm(node.name)
        if isinstance(node, Call) and node.op.name == "tir.address_of" and isinstance(node.args[0], BufferLoad):
            handed.setdefault(node.args[0].buffer)
            return StringImm(node.args[0].buffer.name)
        return None

    body = ir_transform(block.body, take, None, ["tir.Call", "tir.Var"])
    reads, writes = _inferred(block.with_(body=body))
    opaque = [_whole(buffer) for buffer in handed]
    # A pointer may be used for anything: such a buffer is in no other list.
    kept = [[region for region in part if region.buffer not in handed] for part in (reads, writes)]
    return [*kept, opaque]


def get_block_read_write_region(block: Block, buffer_var_map: Mapping[Var, Buffer]) -> list[list[BufferRegion]]:
    """[what the block reads, what it writes]; a buffer it hands on by pointer counts as both, whole."""
    reads, writes, opaque = get_block_access_region(block, buffer_var_map)
    return [[*reads, *opaque], [*writes, *opaque]]


def _inferred(block: Block) -> tuple[list[BufferRegion], list[BufferRegion]]:
    from loopwright.script.parser.regions import infer_regions  # the parser: most programs are not read as text

    return infer_regions(block, block.span if isinstance(block.span, SourceLine) else SourceLine("<block>", 0))


def _whole(buffer: Buffer) -> BufferRegion:
    return BufferRegion(buffer, tuple([Range.from_min_extent(const(0, size.dtype), size) for size in buffer.shape]))


class _Places(Visitor):
    """The loops and blocks around every access, outermost first."""

    def __init__(self, memory: Mapping[Var, Buffer]) -> None:
        self.memory = dict(memory)
        self.around: list[Stmt] = []
        self.grids: list[int] = []  # how much is around, up to and with each loop over blocks of threads
        self.paths: dict[Buffer, list[list[Stmt]]] = {}

    def _access(self, buffer: Buffer) -> None:
        # Memory that all blocks of threads share is seen by all of them.
        depth = self.grids[-1] if self.grids and buffer.scope() == "global" else len(self.around)
        self.paths.setdefault(buffer, []).append(self.around[:depth])

    def visit_For(self, loop: For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        self.around.append(loop)
        is_grid = is_block_tag(tag_of(loop))
        if is_grid:
            self.grids.append(len(self.around))
        self.visit(loop.body)
        if is_grid:
            self.grids.pop()
        self.around.pop()

    def visit_Buffer(self, buffer: Buffer) -> None:
        self._access(buffer)

    def visit_Var(self, var: Var) -> None:
        if var in self.memory:
            self._access(self.memory[var])

    def visit_Block(self, block: Block) -> None:
        self.around.append(block)
        for buffer in block.alloc_buffers:
            self.memory[buffer.data] = buffer
        # Regions and declarations are no accesses; a matched part of a buffer is one.
        for match in block.match_buffers:
            self.memory[match.buffer.data] = match.buffer
            self.visit(match.source)
        for part in (block.init, block.body):
            if part is not None:
                self.visit(part)
        self.around.pop()

    def visit_DeclBuffer(self, node: DeclBuffer) -> None:
        self.visit(node.body)


@deep
def detect_buffer_access_lca(func: PrimFunc) -> dict[Buffer, Stmt | None]:
    """For every buffer the innermost loop or block that holds all its accesses; None when nothing does."""
    walk = _Places({buffer.data: buffer for buffer in func.argument_buffers()})
    walk.visit(func.body)
    result: dict[Buffer, Stmt | None] = {}
    for buffer, paths in walk.paths.items():
        common: Stmt | None = None
        for level, stmt in enumerate(paths[0]):
            if not all(len(path) > level and path[level] is stmt for path in paths):
                break
            common = stmt
        result[buffer] = common
    return result


@deep
def find_anchor_block(mod: IRModule | PrimFunc) -> Block | None:
    """The block that does most of the work: the last one with a reduction, of those the one in most loops."""
    functions = [mod] if isinstance(mod, PrimFunc) else list(mod.functions.values())
    best: tuple[int, Block] | None = None

    def walk(node: Any, loops: int) -> None:
        nonlocal best
        if isinstance(node, Block) and any(axis.iter_type == IterType.CommReduce for axis in node.iter_vars):
            if best is None or loops >= best[0]:
                best = loops, node
        for child in node.children():
            if isinstance(child, (Stmt, Block)):
                walk(child, loops + isinstance(node, For))

    for func in functions:
        walk(func.body, 0)
    return None if best is None else best[1]


class OutsideThreads(LoopwrightError):
    """A function for a GPU touches memory outside a thread nest.

    For example:

        from loopwright import te
        from loopwright.analysis.queries import require_threads

        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
        require_threads(te.create_prim_func([A, B]).with_attr("target", "cuda"))
    """

    code = "LW0831"

    def __init__(self, func: PrimFunc, access: Node) -> None:
        super().__init__(
            f"{func.name}: memory of the device is touched outside a thread nest",
            at=access,
            hint="did you forget to bind?",
        )


def verify_memory(func: PrimFunc) -> bool:
    """Whether a function for a GPU touches memory inside thread nests only; others may touch it anywhere."""
    return _first_outside(func) is None


def require_threads(func: PrimFunc) -> None:
    """Raise unless `verify_memory` holds."""
    access = _first_outside(func)
    if access is not None:
        raise OutsideThreads(func, access)


def _first_outside(func: PrimFunc) -> Node | None:
    target = str(func.attrs.get("target", "llvm"))
    if target.split()[0] in ("llvm", "c", "hybrid", "stackvm"):
        return None
    pending: list[Any] = [func.body]
    while pending:
        node = pending.pop()
        if is_thread_loop(node):
            continue
        if isinstance(node, (BufferStore, BufferLoad)):
            return node
        pending += [child for child in node.children() if isinstance(child, (Stmt, Expr, Block))]
    return None


__all__ = [
    "detect_buffer_access_lca",
    "expr_deep_equal",
    "find_anchor_block",
    "get_block_access_region",
    "get_block_read_write_region",
    "has_if_then_else",
    "undefined_vars",
    "verify_memory",
    "verify_ssa",
]
