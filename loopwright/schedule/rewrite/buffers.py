"""Buffers of a program: which one a step means, what uses it, and how to put another in its place."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir import (
    STORAGE_SCOPES,
    Allocate,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Call,
    Expr,
    Let,
    LetStmt,
    MatchBufferRegion,
    Node,
    PrimFunc,
    Stmt,
    Var,
    decl_buffer,
    deep,
    pre_order_visit,
    structural_equal,
)
from loopwright.ir.types import PointerType
from loopwright.ir.visitor import BufferRewriter
from loopwright.schedule.errors import BadStepArgument, NotSupported, ScheduleError


class NoSuchBuffer(ScheduleError, ValueError):
    """A step names a buffer that its block does not touch, or by a name or position that does not tell which.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.cache_read("B", "D", "local")
    """

    code = "LW0250"
    is_tried = False

    def __init__(self, step: str, realize: BlockRealize, given: object, buffers: Sequence[Buffer], kind: str) -> None:
        names = [buffer.name for buffer in buffers]
        name = given.name if isinstance(given, Buffer) else given
        if names.count(str(name)) > 1:
            problem = f"block {realize.block.name_hint!r} {kind} {names.count(str(name))} buffers called {name!r}"
        elif isinstance(given, int):
            problem = f"block {realize.block.name_hint!r} {kind} {len(names)} buffers, so there is none at {given}"
        else:
            problem = f"block {realize.block.name_hint!r} {kind} no buffer {name!r}"
        listed = ", ".join(f"{position}: {item}" for position, item in enumerate(names)) or "none"
        super().__init__(f"{step}: {problem}", at=realize, hint=f"the buffers it {kind} are {listed}")


BufferName = int | str | Buffer


def find_buffer(step: str, realize: BlockRealize, given: BufferName, kind: str) -> Buffer:
    """The buffer a step means: by position, name or itself, among those the block "reads", "writes" or "touches"."""
    block = realize.block
    regions = [*(block.reads if kind != "writes" else ()), *(block.writes if kind != "reads" else ())]
    buffers = list(dict.fromkeys([region.buffer for region in regions]))
    if isinstance(given, bool) or not isinstance(given, (int, str, Buffer)):
        raise BadStepArgument(step, f"expected the position or name of a buffer, got {given!r}", realize)
    if isinstance(given, int):
        if 0 <= given < len(buffers):
            return buffers[given]
    elif given in buffers:
        assert isinstance(given, Buffer)
        return given
    else:
        name = given.name if isinstance(given, Buffer) else given
        result = [buffer for buffer in buffers if buffer.name == name]
        if len(result) == 1:
            return result[0]
    raise NoSuchBuffer(step, realize, given, buffers, kind)


def fresh_buffer(name: str, shape: Sequence[Expr], like: Buffer, scope: str) -> Buffer:
    """Memory of its own with the element type of `like`."""
    return decl_buffer(tuple(shape), like.dtype, name, scope=scope, data_alignment=like.data_alignment)


def check_scope(step: str, scope: str, at: Node) -> str:
    """`scope` itself, when there is such memory."""
    if not isinstance(scope, str) or scope.split(".")[0] not in STORAGE_SCOPES:
        raise BadStepArgument(step, f"there is no memory scope {scope!r}", at, 'use "global", "local" or "shared"')
    return scope


def rescoped(buffer: Buffer, scope: str) -> Buffer:
    """The buffer in other memory."""
    annotation = buffer.data.type_annotation
    assert isinstance(annotation, PointerType)
    return buffer.with_(data=Var(buffer.data.name, PointerType(annotation.element_type, scope)))


class _Exchange(BufferRewriter):
    """Puts one buffer in place of another, in its allocation too; every name of the same memory follows.

    A sub-buffer that a block matches to a part of it is a name of that memory with a pointer of its own.
    """

    def __init__(self, old: Buffer, new: Buffer) -> None:
        super().__init__()
        self.old, self.new = old, new
        self.pointers: dict[Var, Var] = {old.data: new.data}
        self.buffers[old] = new

    def visit_Var(self, var: Var) -> Expr:
        return self.pointers.get(var, var)

    def visit_Block(self, block: Block) -> Block:
        for match in block.match_buffers:
            part, scope = match.buffer, self.new.scope()
            if match.source.buffer.data in self.pointers:
                self.pointers[part.data] = part.data if part.scope() == scope else rescoped(part, scope).data
                if self.new.axis_separators != self.old.axis_separators:
                    data = self.pointers[part.data]
                    self.buffers[part] = part.with_(data=data, axis_separators=self.new.axis_separators)
        return block.rebuild(self.visit)

    def visit_Allocate(self, allocation: Allocate) -> Stmt:
        body = self.visit(allocation.body)
        if allocation.buffer_var is not self.old.data:
            return allocation.with_(body=body)
        return allocation.with_(buffer_var=self.new.data, extents=self.new.allocated_extents(), body=body)


@deep
def exchange(function: PrimFunc, old: Buffer, new: Buffer) -> PrimFunc:
    """`function` with `new` in place of `old` everywhere; the indices stay."""
    return function.with_(body=_Exchange(old, new).visit(function.body))


Use = BufferLoad | BufferStore | BufferRegion | MatchBufferRegion | Call | Let | LetStmt


def uses_of(root: Node, buffer: Buffer) -> list[Use]:
    """Every node below `root` that touches the buffer's memory, or says where it is."""
    result: list[Use] = []
    hints: list[Expr] = []

    def look(node: Node) -> None:
        touched = False
        if isinstance(node, (BufferLoad, BufferStore, BufferRegion)):
            touched = node.buffer.data is buffer.data
        elif isinstance(node, MatchBufferRegion):
            touched = node.source.buffer.data is buffer.data
        elif isinstance(node, (Let, LetStmt)):
            touched = node.value is buffer.data
        elif isinstance(node, Call):
            if node.op.name == "tir.prefetch":
                hints.append(node.args[0])  # an address that nobody goes to
            touched = any(arg is buffer.data for arg in node.args)
            if node.op.name == "tir.address_of" and not any(node is hint for hint in hints):
                element = node.args[0]
                touched = isinstance(element, BufferLoad) and element.buffer.data is buffer.data
        if touched:
            result.append(node)  # type: ignore[arg-type]

    pre_order_visit(root, look)
    return result


def check_no_pointer(step: str, root: Stmt, buffer: Buffer) -> None:
    """No call has a pointer to the buffer, which says nothing of the layout that it expects."""
    for use in uses_of(root, buffer):
        if isinstance(use, (Call, Let, LetStmt)):
            hint = "what goes by the pointer expects the layout that the buffer has"
            raise NotSupported(step, f"{buffer.name} is passed by its address", use, hint)


def check_plain_use(step: str, root: Stmt, buffer: Buffer) -> None:
    """The buffer is only loaded from and stored to, under this one name."""
    for use in uses_of(root, buffer):
        if isinstance(use, (MatchBufferRegion, Call, Let, LetStmt)):
            what = "matched by a sub-buffer" if isinstance(use, MatchBufferRegion) else "passed by its address"
            raise NotSupported(step, f"{buffer.name} is {what}", use, "the step rewrites plain loads and stores only")
        if use.buffer is not buffer:
            raise NotSupported(step, f"the memory of {buffer.name} is also called {use.buffer.name}", use)


def touches(regions: Sequence[BufferRegion], buffer: Buffer) -> bool:
    """Whether one of the regions is of the buffer's memory."""
    return any(region.buffer.data is buffer.data for region in regions)


def is_same_region(one: BufferRegion, other: BufferRegion) -> bool:
    """Whether both are the same box of the same buffer."""
    return one.buffer is other.buffer and structural_equal(one.region, other.region)


def replaced_regions(
    regions: Sequence[BufferRegion], old: Buffer, new: BufferRegion | None
) -> tuple[BufferRegion, ...]:
    """The regions of a block whose accesses of `old` now go to `new`."""
    swapped = [new if region.buffer is old else region for region in regions]
    return tuple([region for region in swapped if region is not None])
