"""Allocations: where the memory of a buffer is allocated, where it can be used, and how it moves further in or out."""

from __future__ import annotations

from dataclasses import dataclass

from loopwright.ir import Allocate, BlockRealize, Buffer, DeclBuffer, For, Node, PrimFunc, Stmt, const, deep
from loopwright.schedule.errors import NotSupported, ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.rewrite.buffers import uses_of
from loopwright.schedule.rewrite.edits import Edits
from loopwright.schedule.rewrite.insertion_points import common_path, visible_from
from loopwright.schedule.view import Path, View


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


@dataclass(frozen=True)
class Home:
    """Where a buffer's memory is allocated: the path to the block that lists it, or to its Allocate."""

    path: Path


def home_of(step: str, view: View, buffer: Buffer, at: Node) -> Home:
    """Where `buffer` is allocated; arguments of the function and names of part of another buffer are refused."""
    if any(buffer.data is argument.data for argument in view.function.argument_buffers()):
        raise NotOurMemory(step, buffer, at)
    result: list[Path] = []
    path: list[Stmt] = []

    def look(statement: Stmt) -> None:
        path.append(statement)
        if isinstance(statement, Allocate) and statement.buffer_var is buffer.data:
            result.append(tuple(path))
        if isinstance(statement, BlockRealize) and any(b.data is buffer.data for b in statement.block.alloc_buffers):
            result.append(tuple(path))
        for child in statement.children():
            if isinstance(child, Stmt):
                look(child)
        path.pop()

    deep(look)(view.function.body)
    if not result:
        problem = f"{buffer.name} is not allocated in the program: it names part of another buffer"
        raise NotSupported(step, problem, at, "name the buffer it is part of")
    return Home(result[0])


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

    def __init__(self, step: str, buffer: Buffer, loop: For, location: For | None) -> None:
        inside = f" in loop {location.loop_var.name}" if location is not None else " further in"
        super().__init__(
            f"{step}: {buffer.name} is allocated{inside}, so there is none of it at loop {loop.loop_var.name}",
            at=loop,
            fields={"memory": buffer.name},
        )


def check_visible(step: str, path: Path, buffer: Buffer, loop: For) -> None:
    """The buffer exists in the loop, which is on the path."""
    start = visible_from(path, buffer)
    if start > next(k for k, statement in enumerate(path) if statement is loop):
        around = [statement for statement in path[:start] if isinstance(statement, For)]
        if around[-1] is not loop:
            raise OutsideAllocation(step, buffer, loop, around[-1])


def allocate(buffer: Buffer, body: Stmt) -> Stmt:
    """`body` with memory for `buffer`."""
    return Allocate(buffer.data, buffer.dtype, buffer.allocated_extents(), const(True), DeclBuffer(buffer, body))


def common_use(view: View, buffer: Buffer) -> Path:
    """The statements around every block that uses the buffer, from the root."""
    users = [path for path in view.index.blocks.values() if _uses(path[-1], buffer)]
    outer = {statement for path in users for statement in path[:-1]}
    return common_path([path for path in users if path[-1] not in outer])


def _uses(realize: Stmt, buffer: Buffer) -> bool:
    return isinstance(realize, BlockRealize) and bool(uses_of(realize.block, buffer))


def allocated_in(view: View, home: Home, buffer: Buffer, shared: Path, index: int) -> PrimFunc:
    """The function with the allocation at the start of the loop `shared[place]`."""
    loop = shared[index]
    assert isinstance(loop, For)
    inner = loop.with_(body=allocate(buffer, loop.body))
    after = view.replaced(shared[: index + 1], inner)
    return without_allocation(View(after), buffer, home)


def without_allocation(view: View, buffer: Buffer, home: Home) -> PrimFunc:
    """The function without the outer allocation of the buffer."""
    last = home.path[-1]
    if isinstance(last, BlockRealize):
        return _without_alloc_buffer(view, buffer, last)
    return _without_allocate(view, buffer)


def _without_alloc_buffer(view: View, buffer: Buffer, realize: BlockRealize) -> PrimFunc:
    path = view.block_path(block_key(realize.block))
    current = path[-1]
    assert isinstance(current, BlockRealize)
    kept = tuple([item for item in current.block.alloc_buffers if item is not buffer])
    return view.replaced(path, current.with_(block=current.block.with_(alloc_buffers=kept)))


def _without_allocate(view: View, buffer: Buffer) -> PrimFunc:
    """The outermost Allocate of the buffer is taken out."""
    result: list[Allocate] = []

    def look(statement: Stmt) -> None:
        if isinstance(statement, Allocate) and statement.buffer_var is buffer.data:
            result.append(statement)
            return
        for child in statement.children():
            if isinstance(child, Stmt):
                look(child)

    deep(look)(view.function.body)
    body = result[0].body
    edits = Edits()
    edits.replaced[result[0]] = body.body if isinstance(body, DeclBuffer) and body.buffer is buffer else body
    return edits.apply(view.function)
