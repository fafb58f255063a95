"""Buffers of a program: which one a step means, where it is allocated, and how to put another in its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loopwright.ir import (
    Allocate,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Call,
    DeclBuffer,
    Expr,
    For,
    MatchBufferRegion,
    Node,
    PrimFunc,
    Stmt,
    Var,
    const,
    decl_buffer,
    deep,
    pre_order_visit,
)
from loopwright.ir.types import PointerType
from loopwright.ir.visitor import BufferRewriter
from loopwright.schedule.errors import BadStepArgument, NotSupported, ScheduleError
from loopwright.schedule.view import Path, View


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


class NotOurMemory(ScheduleError):
    """The step would change how a buffer is stored, but the buffer belongs to the caller.

    The layout, scope and place of an argument are part of the function's signature. Copy it first (`cache_read`,
    `cache_write` or `stage`), and change the copy.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.set_scope("B", 0, "local")
    """

    code = "LW0251"

    def __init__(self, step: str, buffer: Buffer, at: Node) -> None:
        super().__init__(
            f"{step}: {buffer.name} is an argument of the function, so the caller says how it is stored", at=at
        )


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
        found = [buffer for buffer in buffers if buffer.name == name]
        if len(found) == 1:
            return found[0]
    raise NoSuchBuffer(step, realize, given, buffers, kind)


@dataclass(frozen=True)
class Home:
    """Where a buffer's memory is allocated: the path to the block that lists it, or to its Allocate."""

    path: Path

    @property
    def block(self) -> BlockRealize | None:
        last = self.path[-1]
        return last if isinstance(last, BlockRealize) else None


def home_of(step: str, view: View, buffer: Buffer, at: Node) -> Home:
    """Where `buffer` is allocated; arguments of the function and names of part of another buffer are refused."""
    if any(buffer.data is argument.data for argument in view.function.argument_buffers()):
        raise NotOurMemory(step, buffer, at)
    found: list[Path] = []
    path: list[Stmt] = []

    def look(statement: Stmt) -> None:
        path.append(statement)
        if isinstance(statement, Allocate) and statement.buffer_var is buffer.data:
            found.append(tuple(path))
        if isinstance(statement, BlockRealize) and any(b.data is buffer.data for b in statement.block.alloc_buffers):
            found.append(tuple(path))
        for child in statement.children():
            if isinstance(child, Stmt):
                look(child)
        path.pop()

    deep(look)(view.function.body)
    if not found:
        problem = f"{buffer.name} is not allocated in the program: it names part of another buffer"
        raise NotSupported(step, problem, at, "name the buffer it is part of")
    return Home(found[0])


class OutsideAllocation(ScheduleError):
    """A step names a loop at which its buffer does not exist yet: the buffer is allocated further in.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8, 8), name="A")
        B = te.compute((8, 8), lambda i, j: A[i, j] + 1, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        i, j = sch.get_loops("B")
        sch.stage("B", j, "A", "local")  # A_stage lives in one iteration of j
        sch.stage("B", i, "A_stage", "local")
    """

    code = "LW0257"

    def __init__(self, step: str, buffer: Buffer, loop: For, place: For | None) -> None:
        inside = f" in loop {place.loop_var.name}" if place is not None else " further in"
        super().__init__(
            f"{step}: {buffer.name} is allocated{inside}, so there is none of it at loop {loop.loop_var.name}",
            at=loop,
            fields={"memory": buffer.name},
        )


def visible_from(path: Path, buffer: Buffer) -> int:
    """How many statements of a path stand around the buffer's declaration: from there on it may be used."""
    found = 0
    for position, statement in enumerate(path):
        allocates = isinstance(statement, Allocate) and statement.buffer_var is buffer.data
        if allocates or (isinstance(statement, DeclBuffer) and statement.buffer is buffer):
            found = position + 1
    return found


def check_visible(step: str, path: Path, buffer: Buffer, loop: For) -> None:
    """The buffer exists in the loop, which is on the path."""
    start = visible_from(path, buffer)
    if start > next(k for k, statement in enumerate(path) if statement is loop):
        around = [statement for statement in path[:start] if isinstance(statement, For)]
        if around[-1] is not loop:
            raise OutsideAllocation(step, buffer, loop, around[-1])


def fresh_buffer(name: str, shape: Sequence[Expr], like: Buffer, scope: str) -> Buffer:
    """Memory of its own with the element type of `like`."""
    return decl_buffer(tuple(shape), like.dtype, name, scope=scope, data_alignment=like.data_alignment)


_SCOPES = ("global", "local", "shared", "warp", "wmma", "m16n8k8", "texture")


def check_scope(step: str, scope: str, at: Node) -> str:
    """`scope` itself, when there is such memory."""
    if not isinstance(scope, str) or scope.split(".")[0] not in _SCOPES:
        raise BadStepArgument(step, f"there is no memory scope {scope!r}", at, 'use "global", "local" or "shared"')
    return scope


def rescoped(buffer: Buffer, scope: str) -> Buffer:
    """The buffer in other memory."""
    annotation = buffer.data.type_annotation
    assert isinstance(annotation, PointerType)
    return buffer.with_(data=Var(buffer.data.name, PointerType(annotation.element_type, scope)))


class _Exchange(BufferRewriter):
    """Puts one buffer in place of another, in its allocation too; every name of the same memory follows."""

    def __init__(self, old: Buffer, new: Buffer) -> None:
        super().__init__()
        self.old, self.new = old, new
        self.buffers[old] = new

    def visit_Var(self, var: Var) -> Expr:
        return self.new.data if var is self.old.data else var

    def visit_Allocate(self, allocation: Allocate) -> Stmt:
        body = self.visit(allocation.body)
        if allocation.buffer_var is not self.old.data:
            return allocation.with_(body=body)
        return allocation.with_(buffer_var=self.new.data, extents=allocated_extents(self.new), body=body)


@deep
def exchange(function: PrimFunc, old: Buffer, new: Buffer) -> PrimFunc:
    """`function` with `new` in place of `old` everywhere; the indices stay."""
    return function.with_(body=_Exchange(old, new).visit(function.body))


def allocate(buffer: Buffer, body: Stmt) -> Stmt:
    """`body` with memory for `buffer`."""
    return Allocate(buffer.data, buffer.dtype, allocated_extents(buffer), const(True), DeclBuffer(buffer, body))


def allocated_extents(buffer: Buffer) -> tuple[Expr, ...]:
    """What Allocate reserves for the buffer: its shape, or as many elements as its strides reach."""
    if not buffer.strides:
        return buffer.shape
    last: Expr = buffer.elem_offset
    for extent, stride in zip(buffer.shape, buffer.strides, strict=True):
        last = last + (extent - 1) * stride
    return (last + 1,)


def uses_of(root: Node, buffer: Buffer) -> list[BufferLoad | BufferStore | BufferRegion | MatchBufferRegion | Call]:
    """Every node below `root` that touches the buffer's memory."""
    found: list[BufferLoad | BufferStore | BufferRegion | MatchBufferRegion | Call] = []

    def look(node: Node) -> None:
        touched = False
        if isinstance(node, (BufferLoad, BufferStore, BufferRegion)):
            touched = node.buffer.data is buffer.data
        elif isinstance(node, MatchBufferRegion):
            touched = node.source.buffer.data is buffer.data
        elif isinstance(node, Call):
            touched = any(arg is buffer.data for arg in node.args)
        if touched:
            found.append(node)  # type: ignore[arg-type]

    pre_order_visit(root, look)
    return found


def check_plain_use(step: str, root: Stmt, buffer: Buffer) -> None:
    """The buffer is only loaded from and stored to, under this one name."""
    for use in uses_of(root, buffer):
        if isinstance(use, (MatchBufferRegion, Call)):
            what = "matched by a sub-buffer" if isinstance(use, MatchBufferRegion) else "passed by its address"
            raise NotSupported(step, f"{buffer.name} is {what}", use, "the step rewrites plain loads and stores only")
        if use.buffer is not buffer:
            raise NotSupported(step, f"the memory of {buffer.name} is also called {use.buffer.name}", use)


def touches(regions: Sequence[BufferRegion], buffer: Buffer) -> bool:
    """Whether one of the regions is of the buffer's memory."""
    return any(region.buffer.data is buffer.data for region in regions)


def replaced_regions(
    regions: Sequence[BufferRegion], old: Buffer, new: BufferRegion | None
) -> tuple[BufferRegion, ...]:
    """The regions of a block whose accesses of `old` now go to `new`."""
    swapped = [new if region.buffer is old else region for region in regions]
    return tuple([region for region in swapped if region is not None])


def is_leaf(block: Block) -> bool:
    """Whether no block stands inside."""
    inside = False

    def look(node: Node) -> bool:
        nonlocal inside
        inside = inside or isinstance(node, BlockRealize)
        return not inside

    pre_order_visit(block.body, look)
    return not inside
