"""launch_threads: loops bound to blocks and threads become one launch, around all that the kernel does.

    for bx in T.thread_binding(4, thread="blockIdx.x"):       →    blockIdx_x = T.launch_thread("blockIdx.x", 4)
        for k in range(8):                                         threadIdx_x = T.launch_thread("threadIdx.x", 32)
            for u in T.thread_binding(32, thread="threadIdx.x"):   for k in range(8):
                S[u] = A[bx, k, u]                                     S[threadIdx_x] = A[blockIdx_x, k, threadIdx_x]
            S_sum[k] = S[0]                                            if threadIdx_x == 0:
                                                                           S_sum[k] = S[0]

A kernel is what stands under an outermost bound loop. Every thread runs all of it, so what only some axes run (or one
thread for all others, see docs/semantics.md) is guarded. Barriers that bound loops imply are gone: `insert_barriers`
comes right after, and puts one wherever it is needed. Memory of blocks and threads is allocated inside the launch;
virtual threads become serial loops between the barriers.

Needs: no blocks, reductions over threads written out (`serialize_thread_reduction`).  Leaves: no bound loop. For
targets that have threads; a CPU has none (`canonicalize_loops` says so).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import Final

from loopwright.analysis.effects import stored_memory
from loopwright.analysis.kernel_memory import flows_between_launches
from loopwright.analysis.thread_axes import (
    Axis,
    axis_of,
    has_threads,
    has_warp_call,
    is_barrier,
    is_block_tag,
    is_of_block,
    is_thread_tag,
    is_virtual_tag,
    is_warp_call,
    scope_of,
    tag_of,
)
from loopwright.analysis.thread_extents import check_thread_extents
from loopwright.analysis.thread_regions import Regions, write_regions
from loopwright.analysis.warp_roles import SLOTS, Role, RoleThreads, block_threads, role_of, role_threads
from loopwright.ir import (
    Allocate,
    AttrStmt,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    IterType,
    IterVar,
    LetStmt,
    Node,
    PrimFunc,
    Range,
    Rewriter,
    SeqStmt,
    Stmt,
    StringImm,
    Var,
    While,
    any_node,
    any_statement,
    collect,
    const,
    deep,
    logical_and,
    pre_order_visit,
    seq,
)
from loopwright.ir.operators import cast
from loopwright.ir.passes import function_pass
from loopwright.ir.visitor import variables_in
from loopwright.runtime.dtype import INT32
from loopwright.runtime.errors import LoopwrightError
from loopwright.transform.errors import LoweringError
from loopwright.transform.parts.clone_definitions import clone_definitions
from loopwright.transform.parts.flat_index import add_index
from loopwright.transform.parts.rasterize import rasterized

# Of a loop over blocks: so many blocks stay, and each runs the iterations that follow its own after so many (a
# persistent kernel). Blocks do not wait for each other, so that nothing else changes.
RESIDENT_BLOCKS: Final = "resident_blocks"
_BLOCK_AXIS: Final = "blockIdx.x"
_ROLE_AXIS: Final = "threadIdx.x"  # along which the threads of roles lie side by side
_WARP_AXIS: Final = "threadIdx.x"  # along which the lanes of a warp lie side by side
_WARP: Final = 32
_THREAD_AXES: Final = tuple([f"threadIdx.{axis}" for axis in "xyz"])
_AXES: Final = tuple([f"{kind}.{axis}" for kind in ("blockIdx", "threadIdx") for axis in "xyz"])


class NotALaunch(LoweringError, ValueError):
    """Loops bound to blocks and threads cannot be made one launch of a kernel.

    A kernel runs blocks of threads: its block loops stand right inside each other, with everything else inside them.
    Memory of scope "shared" is used inside block loops only, and "local" memory by all thread axes of the kernel. All
    threads of a block reach every barrier.

    For example:

        from loopwright.script import tir as T
        from loopwright.transform import launch_threads

        @T.prim_func
        def f(A: T.Buffer((4, 8)), B: T.Buffer(4)):
            for by in T.thread_binding(4, thread="blockIdx.y"):
                B[by] = T.float32(0)
                for bx in T.thread_binding(8, thread="blockIdx.x"):
                    A[by, bx] = T.float32(1)

        launch_threads(f)
    """

    code = "LW0722"

    def __init__(self, problem: str, at: Node, hint: str | None = None) -> None:
        super().__init__(f"launch_threads: {problem}", at=at, hint=hint)


class _Kernels(Rewriter):
    """Finds kernels, and the allocations that belong inside them."""

    def __init__(self, function: PrimFunc) -> None:
        self.function = function
        self.waiting: dict[Var, list[Allocate | DeclBuffer]] = {}  # memory of blocks and threads, from outside
        self.kernels: dict[Var, list[Stmt]] = {}  # the kernels that use it

    def visit_Block(self, block: Block) -> Block:
        raise NotALaunch(f"block {block.name_hint!r} is still there", block, "run lower_blocks first")

    def visit_Allocate(self, node: Allocate) -> Stmt:
        data = node.buffer_var
        if scope_of(data) == "global" or not has_threads(node.body):
            return self.rebuild(node)
        self.waiting[data] = [node]
        body = self.visit(node.body)
        if _uses_memory(body, data) and not _is_launched(body, data):
            problem = f"{data.name} has scope {scope_of(data)!r}, but is used outside the kernel as well"
            raise NotALaunch(problem, node, "move all its uses under the bound loops, or give it scope global")
        del self.waiting[data]
        kernels = self.kernels.pop(data, [])
        if len(kernels) > 1 or (kernels and _is_launched_again(node.body, data)):
            self._check_flow(node, len(kernels) > 1)
        return body

    def _check_flow(self, node: Allocate, are_several: bool) -> None:
        """Raise NotALaunch where a launch may read what another one has written."""
        data = node.buffer_var
        accesses: list[BufferLoad | BufferStore] = [*collect(node.body, BufferLoad)]
        accesses += collect(node.body, BufferStore)
        buffers = list(dict.fromkeys([access.buffer for access in accesses if access.buffer.data is data]))
        flows = flows_between_launches(self.function, buffers[0]) if len(buffers) == 1 else None
        if flows is False:
            return
        who, other = ("one kernel", "another kernel") if are_several else ("a launch of a kernel", "an earlier launch")
        verb = "reads" if flows else "may read"
        problem = f"{who} {verb} {data.name} of scope {scope_of(data)!r}, which {other} has written"
        hint = f"compute {data.name} inside the kernel that reads it (compute_at), or give it scope global"
        raise NotALaunch(f"{problem}: such memory ends with its kernel", node, hint)

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        if node.buffer.data not in self.waiting:
            return self.rebuild(node)
        self.waiting[node.buffer.data].append(node)
        return self.visit(node.body)

    def visit_For(self, loop: For) -> Stmt:
        return self._kernel(loop) if tag_of(loop) else self.rebuild(loop)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        """A launch is a kernel already, but for the memory that was allocated around it."""
        is_launch = tag_of(node) and not is_virtual_tag(tag_of(node))
        if not is_launch or any_statement(node.body, lambda inner: isinstance(inner, For) and bool(tag_of(inner))):
            return self.rebuild(node)
        return self._launch(node, node)

    def _launch(self, node: Stmt, kernel: Stmt) -> Stmt:
        if isinstance(node, AttrStmt) and tag_of(node) and not is_virtual_tag(tag_of(node)):
            return node.with_(body=self._launch(node.body, kernel))
        return self._with_memory(node, kernel)

    def _kernel(self, loop: For) -> Stmt:
        kernel = _Kernel(loop)
        return kernel.launched(self._with_memory(kernel.write(), loop))

    def _with_memory(self, body: Stmt, kernel: Stmt) -> Stmt:
        """The body of a kernel, with the memory from outside that it uses allocated in it."""
        for data, nodes in self.waiting.items():
            if _uses_memory(body, data):
                for node in reversed(nodes):
                    body = node.with_(body=body)
                if data in self.kernels:  # each kernel has memory of its own, whose shape differs later
                    body = clone_definitions(body)
                self.kernels.setdefault(data, []).append(kernel)
        return body


class _Kernel:
    """The loops under one outermost bound loop, as a launch."""

    def __init__(self, root: For) -> None:
        self.regions: Regions = write_regions(root, implied=False)
        if self.regions.reason is not None:
            raise NotALaunch(self.regions.reason, root)
        self.extents: dict[str, Expr] = {}
        self.axes: dict[str, Var] = {}
        self.computed: set[Var] = set()  # inside the kernel
        self.roles: dict[str, RoleThreads] = role_threads(root)
        self.resident: int | None = None  # blocks that stay, each for several iterations
        self.role: Role | None = None  # around what is looked at
        self.outside: For | AttrStmt | None = None  # the first loop over threads that no role runs
        pre_order_visit(root, self._find)
        if self.roles:
            self.axes.setdefault(_ROLE_AXIS, Var(_ROLE_AXIS.replace(".", "_"), INT32))
            self.extents[_ROLE_AXIS] = const(block_threads(root))
        self.grid: dict[str, int] = {}  # where blocks stay, the iterations along each axis of blocks
        if self.resident is not None:
            self._let_blocks_stay(root)
        self.threads = [tag for tag in self.axes if is_thread_tag(tag)]
        self.blocks = [tag for tag in self.axes if is_block_tag(tag)]
        self.users = _users(self.regions.body, _THREAD_AXES if self.roles else self.threads)

    def _find(self, node: Node) -> bool:
        role = role_of(node)
        if role is not None:
            assert isinstance(node, AttrStmt)
            self._enter_role(role, node)
            return False
        tag = tag_of(node) if isinstance(node, Stmt) else ""
        if is_thread_tag(tag) and not is_virtual_tag(tag):
            assert isinstance(node, (For, AttrStmt))
            self._check_role(node)
        if self.role is None and tag and not is_virtual_tag(tag) and tag not in self.axes:
            if tag not in _AXES:
                raise NotALaunch(f"there is no thread axis {tag!r}", node, f"use one of {', '.join(_AXES)}, vthread")
            assert isinstance(node, (For, AttrStmt))
            self.axes[tag] = Var(tag.replace(".", "_"), axis_of(node).var.dtype)
            self.extents[tag] = axis_of(node).extent
            self._check_extent(node)
            self.resident = self.resident or resident_blocks(node)
        if tag:
            assert isinstance(node, (For, AttrStmt))
            self.computed.add(axis_of(node).var)
        elif isinstance(node, For):
            self.computed.add(node.loop_var)
        elif isinstance(node, LetStmt):
            self.computed.add(node.var)
        return True

    def _let_blocks_stay(self, root: For) -> None:
        """All loops over blocks become one, of as many blocks as stay; where they are fewer, nothing changes."""
        assert self.resident is not None
        for tag, extent in self.extents.items():
            if is_block_tag(tag):
                if not isinstance(extent, IntImm):
                    problem = f"{RESIDENT_BLOCKS} of a loop over blocks of {extent} iterations"
                    raise NotALaunch(problem, root, "annotate loops whose lengths are constants")
                self.grid[tag] = extent.value
        if prod(self.grid.values()) <= self.resident:
            self.resident = None
            return
        for tag in self.grid:
            self.extents.pop(tag)
            var = self.axes.pop(tag)
        self.axes = {_BLOCK_AXIS: Var(_BLOCK_AXIS.replace(".", "_"), var.dtype), **self.axes}
        self.extents[_BLOCK_AXIS] = const(self.resident, var.dtype)

    def _enter_role(self, role: Role, node: AttrStmt) -> None:
        if self.role is not None:
            raise NotALaunch(f"role {role.name} stands inside role {self.role.name}", node, "put it beside that one")
        if self.roles[role.name].size != role.threads:
            problem = f"role {role.name} has {role.threads} threads, and {self.roles[role.name].size} in another part"
            raise NotALaunch(problem, node, "give all parts of a role the same number of threads")
        self._check_outside()
        self.role = role
        pre_order_visit(node.body, self._find)
        self.role = None

    def _check_role(self, node: For | AttrStmt) -> None:
        """Threads of a kernel with roles are those of its roles."""
        if self.role is None:
            self.outside = self.outside or node
            self._check_outside()
            return
        mine, axis = self.roles[self.role.name], axis_of(node)
        extents = " × ".join([str(extent) for extent in mine.extents.values()])
        if prod(mine.extents.values()) != mine.size or tag_of(node) not in mine.extents:
            problem = f"loop {axis.var.name} over {axis.tag} of role {self.role.name} has {axis.extent} iterations"
            also = f" ({extents} along its axes)" if len(mine.extents) > 1 else ""
            hint = f"bind loops of {mine.size} iterations together to {_ROLE_AXIS}, y and z"
            raise NotALaunch(f"{problem}{also}, and the role {mine.size} threads", node, hint)
        extent = mine.extents[tag_of(node)]
        if not (isinstance(axis.extent, IntImm) and axis.extent.value == extent):
            problem = f"loop {axis.var.name} over {axis.tag} of role {self.role.name} has {axis.extent} iterations"
            hint = "bind loops alike in all parts of a role"
            raise NotALaunch(f"{problem}, and {extent} in another part", node, hint)

    def _check_outside(self) -> None:
        if self.outside is not None and self.roles:
            axis = axis_of(self.outside)
            problem = f"loop {axis.var.name} over {axis.tag} stands outside the roles of its kernel"
            raise NotALaunch(problem, self.outside, "make it a part of a role")

    def _check_extent(self, node: For | AttrStmt) -> None:
        """The host says how many blocks and threads there are, before any of them runs."""
        axis = axis_of(node)
        inside = [var.name for var in variables_in(axis.extent) if var in self.computed]
        inside += [load.buffer.name for load in collect(axis.extent, BufferLoad)]
        if inside:
            raise NotALaunch(
                f"loop {axis.var.name} over {axis.tag} has {axis.extent} iterations, and {inside[0]} is not known "
                "before the kernel runs",
                node,
                "give the loop its greatest extent, and put its body under a condition",
            )

    def write(self) -> Stmt:
        return _Inside(self).place(self.regions.body, frozenset())

    def launched(self, body: Stmt) -> Stmt:
        """The body under the launch of all axes, blocks outermost."""
        for tag in reversed([*self.blocks, *self.threads]):
            var, extent = self.axes[tag], self.extents[tag]
            axis = IterVar(Range.from_min_extent(const(0, extent.dtype), extent), var, IterType.ThreadIndex, tag)
            body = AttrStmt(axis, "thread_extent", extent, body)
        return body


class _Inside(Rewriter):
    """Puts the variables of the launch in place of those of bound loops."""

    def __init__(self, kernel: _Kernel) -> None:
        self.kernel = kernel
        self.values: dict[Var, Expr] = {}
        # Of the block, or of the role that is written: its axes, with the number of a thread along each.
        self.threads: dict[str, Expr] = {tag: kernel.axes[tag] for tag in kernel.threads}
        self.extents = dict(kernel.extents)
        self.numbers: dict[str, Expr] = {}  # of the iteration of loops over blocks, where blocks stay
        self.private: dict[Var, list[Axis]] = {}  # memory of virtual threads: it gets a dimension for each axis
        self.buffers: dict[Buffer, Buffer] = {}

    def visit_Var(self, var: Var) -> Expr:
        return self.values.get(var, var)

    # --- structure ------------------------------------------------------------------------------------------------

    def place(self, statement: Stmt, running: frozenset[str]) -> Stmt:
        """The statement as every thread of the kernel meets it; `running` are the axes that run it."""
        tag = tag_of(statement)
        if tag:
            assert isinstance(statement, (For, AttrStmt))
            return self.bound(statement, running)
        if is_barrier(statement):
            return statement
        if isinstance(statement, AttrStmt) and (role := role_of(statement)) is not None:
            return self.in_role(role, statement, running)
        if not _has_bound(statement) or any([is_thread_tag(tag) for tag in running]):
            if is_warp_call(statement):
                return self.of_warp(statement, running)
            if _WARP_AXIS in running or not has_warp_call(statement):
                return self.guarded(statement, running)
        if isinstance(statement, SeqStmt):
            if any([is_block_tag(tag_of(part)) for part in statement.seq]):
                raise NotALaunch(
                    "a loop over blocks stands beside other statements of its kernel",
                    statement,
                    "make it a kernel of its own, or put the statements inside it",
                )
            return seq([self.place(part, running) for part in statement.seq])
        for expr in _steering(statement):
            self._check_memory(expr, [tag for tag in self.threads if tag not in running])
        if isinstance(statement, IfThenElse):
            other = None if statement.else_case is None else self.place(statement.else_case, running)
            condition = self.visit(statement.condition)
            return statement.with_(
                condition=condition, then_case=self.place(statement.then_case, running), else_case=other
            )
        if isinstance(statement, LetStmt):
            return statement.with_(value=self.visit(statement.value), body=self.place(statement.body, running))
        if isinstance(statement, For):
            return statement.with_(
                min=self.visit(statement.min),
                extent=self.visit(statement.extent),
                body=self.place(statement.body, running),
            )
        if isinstance(statement, Allocate):
            return self.allocation(statement, running)
        if isinstance(statement, DeclBuffer):
            return statement.with_(buffer=self.declared(statement.buffer), body=self.place(statement.body, running))
        if isinstance(statement, AttrStmt):
            return statement.with_(body=self.place(statement.body, running))
        raise NotALaunch(f"threads are bound inside a {type(statement).__name__}", statement)

    def in_role(self, role: Role, statement: AttrStmt, running: frozenset[str]) -> Stmt:
        """What the threads of a role do, under the condition that a thread is one of them."""
        mine, index = self.kernel.roles[role.name], self.kernel.axes[_ROLE_AXIS]
        around = self.threads, self.extents
        self.threads = mine.numbers(index)
        self.extents = {**self.extents, **{tag: const(extent) for tag, extent in mine.extents.items()}}
        body = self.place(statement.body, running)
        self.threads, self.extents = around
        last = self.kernel.extents[_ROLE_AXIS]
        within = [index >= mine.begin] if mine.begin > 0 else []
        if not (isinstance(last, IntImm) and mine.begin + mine.size == last.value):
            within.append(index < mine.begin + mine.size)
        return statement.with_(body=IfThenElse(reduce(logical_and, within), body) if within else body)

    def bound(self, node: For | AttrStmt, running: frozenset[str]) -> Stmt:
        tag, axis = tag_of(node), axis_of(node)
        if is_virtual_tag(tag):
            var = Var(axis.var.name, axis.var.dtype)
            self.values[axis.var] = var
            body = self.place(node.body, running)
            low = self.visit(node.min) if isinstance(node, For) else const(0, var.dtype)
            return For(var, low, self.visit(axis.extent), ForKind.SERIAL, body)
        if is_block_tag(tag) and tag in running:
            raise NotALaunch(
                f"loop {axis.var.name} over {tag} stands inside another loop over {tag}",
                node,
                "fuse the two loops and bind the fused one, or bind one of them to another axis",
            )
        low = self.visit(node.min) if isinstance(node, For) else const(0, axis.var.dtype)
        if is_block_tag(tag) and self.kernel.resident is not None and not self.numbers:
            return self.in_turns(node, running)
        if is_block_tag(tag):
            number = self.numbers[tag] if self.numbers else self.kernel.axes[tag]
        else:
            number = self.threads[tag]
        return self.iteration(node, cast(number, axis.var.dtype), low, running | {tag})

    def in_turns(self, node: For | AttrStmt, running: frozenset[str]) -> Stmt:
        """What blocks that stay do: the iterations of all loops over blocks, that along x the fastest."""
        kernel, blocks = self.kernel, self.kernel.resident
        assert blocks is not None
        turn, total = Var("turn", "int32"), prod(kernel.grid.values())
        number: Expr = turn * blocks + kernel.axes[_BLOCK_AXIS]
        done = 1
        for tag in sorted(kernel.grid):
            rest = number if done == 1 else number // done
            done *= kernel.grid[tag]
            self.numbers[tag] = rest if done == total else rest % kernel.grid[tag]
        turns = (total - 1 - kernel.axes[_BLOCK_AXIS]) // blocks + 1
        kept = {key: value for key, value in node.annotations.items() if key == SLOTS} if isinstance(node, For) else {}
        return For(turn, const(0), turns, ForKind.SERIAL, self.bound(node, running), annotations=kept)

    def iteration(self, node: For | AttrStmt, index: Expr, low: Expr, running: frozenset[str]) -> Stmt:
        """What a block or a thread does in iteration `index` of a loop, counted from 0."""
        var, tile = axis_of(node).var, rasterized(node, index)
        if tile is index:
            self.values[var] = add_index(index, low)
            return self.place(node.body, running)
        named = Var(var.name, var.dtype)
        self.values[var] = add_index(named, low)
        return LetStmt(named, tile, self.place(node.body, running))

    def allocation(self, node: Allocate, running: frozenset[str]) -> Stmt:
        """Memory for several stretches between barriers, in which virtual threads take turns, is one for each."""
        axes = [axis for axis in self.kernel.regions.hoisted.get(node.buffer_var, ()) if is_virtual_tag(axis.tag)]
        if axes:
            self.private[node.buffer_var] = axes
        extents = (*[self.visit(axis.extent) for axis in axes], *[self.visit(extent) for extent in node.extents])
        return node.with_(extents=extents, body=self.place(node.body, running))

    def declared(self, buffer: Buffer) -> Buffer:
        axes = self.private.get(buffer.data)
        if not axes:
            return buffer
        if buffer.strides:
            raise NotALaunch(f"{buffer.name} has strides, and virtual threads have copies of it", buffer)
        shape = (*[self.visit(axis.extent) for axis in axes], *buffer.shape)
        new = self.buffers[buffer] = buffer.with_(shape=shape)
        return new

    def _own_indices(self, buffer: Buffer, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        axes = self.private.get(buffer.data, ())
        low = [axis.node.min if isinstance(axis.node, For) else const(0, axis.var.dtype) for axis in axes]
        own = [self.visit(axis.var) - self.visit(first) for axis, first in zip(axes, low, strict=True)]
        return (*own, *[self.visit(index) for index in indices])

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        if load.buffer not in self.buffers:
            return self.rebuild(load)
        return BufferLoad._make(self.buffers[load.buffer], self._own_indices(load.buffer, load.indices), span=load.span)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        if store.buffer not in self.buffers:
            return self.rebuild(store)
        value, indices = self.visit(store.value), self._own_indices(store.buffer, store.indices)
        return BufferStore(self.buffers[store.buffer], value, indices, span=store.span)

    def visit_For(self, loop: For) -> Stmt:
        """Between barriers, virtual threads run one after the other."""
        if not tag_of(loop):
            return self.rebuild(loop)
        if not is_virtual_tag(tag_of(loop)):
            raise NotALaunch(f"a loop over {tag_of(loop)} stands inside threads", loop)
        var = Var(loop.loop_var.name, loop.loop_var.dtype)
        self.values[loop.loop_var] = var
        return For(var, self.visit(loop.min), self.visit(loop.extent), ForKind.SERIAL, self.visit(loop.body))

    def of_warp(self, statement: Stmt, running: frozenset[str]) -> Stmt:
        """An instruction of all lanes of a warp: the first 32 threads along x, where no loop over them is around it."""
        if _WARP_AXIS in running:
            return self.guarded(statement, running)
        extent = self.kernel.extents.get(_WARP_AXIS)
        threads = extent.value if isinstance(extent, IntImm) else 0
        if threads == 0 or threads % _WARP != 0:
            has = "no loop" if extent is None else f"a loop of {extent} iterations"
            problem = f"{_name_of(statement)} is an instruction of the 32 lanes of a warp"
            problem = f"{problem}, and {has} is bound to {_WARP_AXIS}"
            hint = f"bind a loop of 32 iterations to {_WARP_AXIS}, one that fills shared memory for instance"
            raise NotALaunch(problem, statement, hint)
        body = self.guarded(statement, running | {_WARP_AXIS})
        lane = self.kernel.axes[_WARP_AXIS]
        return body if threads == _WARP else IfThenElse(lane < const(_WARP, lane.dtype), body)

    def guarded(self, statement: Stmt, running: frozenset[str]) -> Stmt:
        """Along axes that do not run the statement, the first thread does."""
        missing = [tag for tag in [*self.kernel.blocks, *self.threads] if tag not in running]
        body: Stmt = self.visit(statement)
        if not missing:
            return body
        for tag in missing:
            if is_block_tag(tag):
                raise NotALaunch(f"a statement stands outside the loop over {tag}", statement, "put it inside")
        self._check_memory(statement, missing)
        first = [self.threads[tag].equal(const(0, self.threads[tag].dtype)) for tag in missing]
        return IfThenElse(reduce(logical_and, first), body)

    def _check_memory(self, node: Stmt | Expr, missing: Sequence[str]) -> None:
        """What threads have for themselves is not what one of them finds there, or leaves there for others."""
        several = [tag for tag in missing if not _is_one(self.extents[tag])]
        stored = stored_memory(node)
        for data in [*stored, *[load.buffer.data for load in collect(node, BufferLoad)]]:
            seen = [tag for tag in several if tag in self.kernel.users.get(data, ())]
            if seen and scope_of(data) != "global" and not is_of_block(scope_of(data)):
                axes, what = ", ".join(seen), "written" if data in stored else "read"
                problem = f"{data.name} has scope {scope_of(data)!r}, but is {what} outside the loops over {axes}"
                hint = f"bind a loop around it to these axes, or put {data.name} into shared memory"
                raise NotALaunch(problem, node, hint)

    def visit_LetStmt(self, let: LetStmt) -> Stmt:
        """What a thread calls its number once more is that number."""
        if let.var in self.kernel.regions.aliases:
            self.values[let.var] = self.visit(let.value)
            return self.visit(let.body)
        return self.rebuild(let)


def _name_of(statement: Stmt) -> str:
    """What an instruction of a warp is called."""
    if isinstance(statement, AttrStmt):
        return str(statement.node.value) if isinstance(statement.node, StringImm) else statement.attr_key
    assert isinstance(statement, Evaluate) and isinstance(statement.value, Call)
    return statement.value.op.name.removeprefix("tir.")


def _steering(node: Stmt) -> Sequence[Expr]:
    """What a statement around bound loops asks."""
    if isinstance(node, IfThenElse):
        return (node.condition,)
    if isinstance(node, For):
        return node.min, node.extent
    return (node.value,) if isinstance(node, (LetStmt, AttrStmt)) else ()


def resident_blocks(node: For | AttrStmt) -> int | None:
    """How many blocks at most run the iterations of a loop over blocks, each some of them; None where each has one."""
    blocks = node.annotations.get(RESIDENT_BLOCKS) if isinstance(node, For) and node.annotations else None
    if blocks is None:
        return None
    number = blocks.value if isinstance(blocks, IntImm) else blocks
    if not isinstance(number, int) or number < 1 or not is_block_tag(tag_of(node)):
        hint = "annotate a loop over blocks with a number, as in 132"
        raise NotALaunch(f"{RESIDENT_BLOCKS} of loop {axis_of(node).var.name} is {blocks}", node, hint)
    return number


def _is_one(extent: Expr) -> bool:
    return isinstance(extent, IntImm) and extent.value == 1


def _has_bound(statement: Stmt) -> bool:
    """Whether not all of the statement is the work of one thread."""
    return any_statement(statement, lambda node: bool(tag_of(node)) or is_barrier(node) or role_of(node) is not None)


def _users(body: Stmt, axes: Sequence[str]) -> dict[Var, set[str]]:
    """The thread axes along which more than the first thread touches a memory."""
    result: dict[Var, set[str]] = {}
    running: list[str] = []

    def look(node: Node) -> bool:
        if isinstance(node, Stmt) and tag_of(node):
            assert isinstance(node, (For, AttrStmt))
            running.append(tag_of(node))
            pre_order_visit(node.body, look)
            running.pop()
            return False
        if isinstance(node, Var):
            result.setdefault(node, set()).update(running)
        elif isinstance(node, (BufferLoad, BufferStore)):
            result.setdefault(node.buffer.data, set()).update(running)
        if isinstance(node, (IfThenElse, LetStmt, For, AttrStmt)) and _has_bound(node):  # every thread asks
            for part in _steering(node):
                pre_order_visit(part, everyone)
        return True

    def everyone(node: Node) -> None:
        if isinstance(node, BufferLoad):
            result.setdefault(node.buffer.data, set()).update(axes)

    pre_order_visit(body, look)
    return result


def _uses_memory(statement: Stmt, data: Var) -> bool:
    def uses(node: Node) -> bool:
        return node is data or (isinstance(node, (BufferLoad, BufferStore)) and node.buffer.data is data)

    return any_node(statement, uses)


def _is_launched_again(statement: Stmt, data: Var) -> bool:
    """Whether a kernel that uses the memory stands in a loop that may have several iterations."""
    found = False

    def look(node: Node) -> bool:
        nonlocal found
        if isinstance(node, Stmt) and tag_of(node):
            return False
        if isinstance(node, (For, While)) and not (isinstance(node, For) and _is_one(node.extent)):
            found = found or _uses_memory(node.body, data)
        return not found

    pre_order_visit(statement, look)
    return found


def _is_launched(statement: Stmt, data: Var) -> bool:
    """Whether the memory is allocated inside, before every use."""
    outside = False

    def look(node: Node) -> bool:
        nonlocal outside
        if isinstance(node, Allocate) and node.buffer_var is data:
            return False
        outside = outside or node is data or (isinstance(node, (BufferLoad, BufferStore)) and node.buffer.data is data)
        return not outside

    pre_order_visit(statement, look)
    return not outside


@function_pass
@deep
def launch_threads(func: PrimFunc) -> PrimFunc:
    """Loops bound to blocks and threads become one launch for each kernel."""
    if not has_threads(func.body):
        return func
    check_thread_extents(func)
    return func.with_(body=_Kernels(func).visit(func.body))


@function_pass
def launch_threads_where_possible(func: PrimFunc) -> PrimFunc:
    """As `launch_threads`; a function whose bound loops make no launch keeps them, for a reader to see."""
    try:
        return launch_threads(func)
    except LoopwrightError:
        return func
