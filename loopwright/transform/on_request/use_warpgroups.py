"""use_warpgroups: nests that a schedule gave to tensor cores become `wgmma` of the warpgroups that run them.

    for k in range(4):                                             →    T.wgmma_fence()
        for j in T.serial(16, {"tensor_core": "wgmma"}):                for k in T.unroll(4):
            for h, e, kk in T.grid(2, 2, 16):                               T.wgmma(&C[0], 128, …, &A[…], …, &B[…], …)
                C[j, h, e] = C[j, h, e] + …                             T.wgmma_commit()
                                                                        T.wgmma_wait(0, &C[0], 64)

Until here each thread computes its share of the tile by loops of its own, so that schedules are proved, and programs
evaluated, on what they mean (`parts/warpgroup_products.py` says what the share is). Tiles come by tensor copies, or
threads fill them; all accesses put elements where tensor cores expect them (`parts/swizzles.py`).

Needs: threads launched, buffers compacted.  Leaves: no loop for tensor cores. For sm_90a.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any, NamedTuple

from loopwright.analysis.thread_axes import axis_of, barrier, tag_of
from loopwright.analysis.warp_roles import core_of, has_roles, role_of
from loopwright.ir import (
    Allocate,
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    LetStmt,
    Node,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
    While,
    any_node,
    any_statement,
    collect_statements,
    const,
    deep,
    logical_or,
    seq,
    uses_var,
)
from loopwright.ir.intrinsics import address_of
from loopwright.ir.passes import function_pass
from loopwright.ir.warpgroup_intrinsics import fence_proxy_async, wgmma_commit, wgmma_fence, wgmma_wait
from loopwright.transform.errors import LoweringError
from loopwright.transform.parts.register_operands import in_registers, register_operands
from loopwright.transform.parts.statements import StmtRewriter
from loopwright.transform.parts.swizzles import SWIZZLE
from loopwright.transform.parts.warpgroup_products import (
    CORES,
    PENDING,
    RELEASE,
    WARPGROUP,
    WGMMA,
    Differs,
    clears_accumulators,
    swizzle_of,
    tiles_of_warpgroups,
    warpgroup_product,
)
from loopwright.transform.warp_roles.places import touches


class NotForTensorCores(LoweringError, ValueError):
    """A nest that is annotated for tensor cores is not the share of a thread in what they compute.

    A warpgroup multiplies tiles in shared memory, 64 rows of A by up to 256 columns of B, which tensor copies fill.
    Thread t holds rows h * 8 + t // 32 * 16 + t % 32 // 4 and columns j * 8 + t % 4 * 2 + e of the result, as element
    j * 4 + h * 2 + e of local memory; the annotated loop counts j, and loops over h, e and 32 bytes of K are inside.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((128, 16)), B: T.Buffer((128, 16))):
            for tx in T.thread_binding(128, thread="threadIdx.x"):
                for k in T.serial(16, annotations={"tensor_core": "wgmma"}):
                    B[tx, k] = A[tx, k]

        loopwright.build(f, target="cuda -arch=sm_90a")
    """

    code = "LW0728"

    def __init__(self, loop: For, problem: str, hint: str | None = None) -> None:
        super().__init__(f"loop {loop.loop_var.name} is not for tensor cores: {problem}", at=loop, hint=hint)


class _Group(NamedTuple):
    """Products that are under way."""

    accumulators: tuple[Buffer, ...]
    operands: tuple[Buffer, ...]  # in registers
    behind: list[Stmt]  # what comes when they are done

    def forbids(self, statement: Stmt) -> bool:
        """Whether a statement has to wait: results are not there yet, and operands are still read."""
        results = {buffer.data for buffer in self.accumulators}
        stored = {buffer.data for buffer in self.operands} | results

        def touches(node: Node) -> bool:
            if isinstance(node, BufferLoad):
                return node.buffer.data in results
            return isinstance(node, BufferStore) and node.buffer.data in stored

        return any_node(statement, touches)


class _UseWarpgroups(StmtRewriter):
    """Writes groups of products, and waits for them where their results are used: as late as the text allows."""

    def __init__(self, tiles: Mapping[Var, Buffer], registers: Mapping[Var, Buffer]) -> None:
        self.tiles, self.registers = tiles, registers
        self.of_block: set[Var] = set()  # tiles that all threads of the block fill and read, between barriers
        self.role: AttrStmt | None = None
        self.threads: list[AttrStmt] = []
        self.differ: set[Var] = set()  # variables that threads of a warpgroup have different values of
        self.accumulators: dict[Buffer, None] = {}  # of the role
        self.open: list[_Group] = []

    def visit(self, node: Any) -> Any:
        if not isinstance(node, Stmt):
            return super().visit(node)
        if isinstance(node, SeqStmt):
            return self.visit_SeqStmt(node)
        if isinstance(node, AttrStmt) and node.attr_key == PENDING:
            assert isinstance(node.value, IntImm)
            self.open = []
            return seq([self.wait(node.value.value), self.visit(node.body)])
        if isinstance(node, AttrStmt) and node.attr_key == RELEASE:
            if not self.open:
                return node.body
            self.open[-1].behind.append(node.body)
            return seq([])
        if isinstance(node, For):
            for value in (node.min, node.extent):
                self.check_alike(value, node, f"as loop {node.loop_var.name} depends on {value}")
            if _is_for_cores(node):
                return self.begun(node, False)
        if any_statement(node, _is_of_products) or (self.open and isinstance(node, (Allocate, DeclBuffer))):
            return self.around(node)
        return seq([*self.done_before(node), node])

    def around(self, node: Stmt) -> Stmt:
        """A statement with products inside: what is under way outside is done before, and the other way round."""
        if isinstance(node, (Allocate, DeclBuffer)):
            data = node.buffer_var if isinstance(node, Allocate) else node.buffer.data
            is_handed_on = SWIZZLE in getattr(node, "annotations", {}) or (self.role is None and has_roles(node.body))
            if isinstance(node, Allocate) and data in self.tiles and not is_handed_on:
                # A tile that roles do not hand on lies as tensor cores read it, too.
                self.of_block.add(data)
                node = node.with_(annotations={**node.annotations, SWIZZLE: swizzle_of(self.tiles[data])})
            body = self.visit(node.body)
            ends = any([data is used.data for group in self.open for used in (*group.accumulators, *group.operands)])
            return node.with_(body=seq([body, *self.done()]) if ends else body)
        before = self.done()
        if isinstance(node, AttrStmt):
            is_role, is_axis = role_of(node) is not None, tag_of(node).startswith("threadIdx")
            if is_role:
                self.accumulators, self.role = {}, node
            self.threads += [node] * is_axis
            self.differ |= {axis_of(node).var} if is_axis else set()
            body = self.visit(node.body)
            result: Stmt = node.with_(body=seq([body, *self.done()]))
            del self.threads[len(self.threads) - is_axis :]
            self.role = None if is_role else self.role
        elif isinstance(node, IfThenElse):
            self.check_is_for_all(node)
            then_case = seq([self.visit(node.then_case), *self.done()])
            other = None if node.else_case is None else seq([self.visit(node.else_case), *self.done()])
            result = node.with_(then_case=then_case, else_case=other)
        else:
            assert isinstance(node, (For, LetStmt, While))
            if isinstance(node, LetStmt) and uses_var(node.value, self.differ.__contains__):
                self.differ.add(node.var)
            body = self.visit(node.body)
            result = node.with_(body=seq([body, *self.done()]))
        return seq([*before, result])

    def check_is_for_all(self, node: IfThenElse) -> None:
        """Raise NotForTensorCores where only some threads of a warpgroup would multiply."""
        if not any_statement(node.then_case, lambda case: role_of(case) is not None):
            self.check_alike(node.condition, node, f"where {node.condition} does not hold")

    def check_alike(self, value: Expr, around: Stmt, when: str) -> None:
        """Raise NotForTensorCores where a loop for tensor cores is inside what threads run differently."""
        loop = next((loop for loop in collect_statements(around, For) if core_of(loop) is not None), None)
        if loop is not None and uses_var(value, self.differ.__contains__):
            problem = f"threads of a warpgroup would skip it {when}"
            raise NotForTensorCores(loop, problem, "let all threads of the role run the loop")

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        cleared = {at: into for at, part in enumerate(node.seq) if (into := _cleared_for(part, node.seq[at + 1 :]))}
        parts: list[Stmt] = []
        for at, part in enumerate(node.seq):
            if at in cleared:  # the first product stores to these accumulators in place of adding
                parts += self.done_before(part)
            elif isinstance(part, For) and part in cleared.values():
                parts.append(self.begun(part, True))
            else:
                parts.append(self.visit(part))
        return seq(parts)

    def done(self) -> list[Stmt]:
        """All products are done."""
        return self.wait_for(0)

    def done_before(self, statement: Stmt) -> list[Stmt]:
        """Products are done whose results or operands a statement touches."""
        for count, group in enumerate(reversed(self.open)):
            if group.forbids(statement):
                return self.wait_for(count)
        return []

    def wait_for(self, count: int) -> list[Stmt]:
        """All groups that are under way but the last `count` are done."""
        finished = self.open[: len(self.open) - count]
        if not finished:
            return []
        self.open = self.open[len(finished) :]
        kept: list[object] = []
        for buffer in dict.fromkeys([buffer for group in finished for buffer in group.accumulators]):
            kept += [address_of(BufferLoad(buffer, tuple([const(0)] * buffer.ndim))), _size(buffer)]
        return [Evaluate(wgmma_wait(count, *kept)), *[part for group in finished for part in group.behind]]

    def wait(self, count: int) -> Stmt:
        """All groups but the last `count` are done; the results of all are read only then."""
        kept: list[object] = []
        for buffer in self.accumulators if count == 0 else ():
            kept += [address_of(BufferLoad(buffer, tuple([const(0)] * buffer.ndim))), _size(buffer)]
        return Evaluate(wgmma_wait(count, *kept))

    def begun(self, loop: For, is_cleared: bool) -> Stmt:
        """The products of a nest; what all threads of the block fill is there before, and free behind them."""
        shared = [buffer for buffer in tiles_of_warpgroups(loop).values() if buffer.data in self.of_block]
        if not shared:
            return self.group(loop, is_cleared)
        if self.role is not None:
            problem = f"{shared[0].name} is filled by the role that multiplies"
            hint = "fill the tiles in another role, or let each thread store its share of A"
            raise NotForTensorCores(loop, problem, hint)
        filled = [Evaluate(fence_proxy_async()), barrier()]  # what threads have stored is there for tensor cores
        return seq([*filled, self.group(loop, is_cleared), *self.done(), barrier()])

    def group(self, loop: For, is_cleared: bool) -> Stmt:
        """The calls of a nest, as one group; the first one stores to accumulators that were cleared before."""
        nests = [inner for inner in collect_statements(loop, For) if core_of(inner) is not None]
        for nest in nests:
            if core_of(nest) not in CORES:
                raise NotForTensorCores(nest, f"there are none named {core_of(nest)}", f'annotate it with "{WGMMA}"')
        threads = {axis_of(node).var: node.value for node in sorted(self.threads, key=tag_of)}
        extents = {var: extent.value for var, extent in threads.items() if isinstance(extent, IntImm)}
        role = None if self.role is None else role_of(self.role)
        count = prod(extents.values()) if role is None else role.threads
        if len(extents) < len(threads) or count % WARPGROUP or not threads:
            of = "the block" if role is None else f"role {role.name}"
            given = " × ".join([str(extent) for extent in threads.values()]) if role is None else str(count)
            raise NotForTensorCores(nests[0], f"{of} has {given or 'no'} threads, no whole warpgroups of {WARPGROUP}")
        calls = _Calls(extents, self.registers, is_cleared)
        body = calls.visit(loop)
        self.accumulators |= dict.fromkeys(calls.accumulators)
        self.open.append(_Group(tuple(calls.accumulators), tuple(calls.operands), []))
        return seq([Evaluate(wgmma_fence()), body, Evaluate(wgmma_commit())])


class _Calls(StmtRewriter):
    """Writes the calls of one group."""

    def __init__(self, threads: Mapping[Var, int], registers: Mapping[Var, Buffer], is_cleared: bool) -> None:
        self.threads, self.registers, self.is_cleared = threads, registers, is_cleared
        self.accumulators: list[Buffer] = []
        self.operands: list[Buffer] = []
        self.loops: list[For] = []

    def visit_For(self, loop: For) -> Stmt:
        if core_of(loop) is None:
            self.loops.append(loop)
            result = loop.with_(kind=ForKind.UNROLLED, body=self.visit(loop.body))
            self.loops.pop()
            return result
        try:
            product = warpgroup_product(loop, self.threads, self.loops, self.registers)
        except Differs as error:
            raise NotForTensorCores(loop, str(error)) from None
        self.accumulators.append(product.accumulators.buffer)
        self.operands += product.registers()
        adds: Expr = const(1)
        if self.is_cleared:
            is_first = [around.loop_var > around.min for around in self.loops]
            adds = reduce(logical_or, is_first) if is_first else const(0)
        return Evaluate(product.call(adds))


def _cleared_for(part: Stmt, following: Sequence[Stmt]) -> For | None:
    """The nest for tensor cores that adds to accumulators which a statement sets to 0."""
    if not isinstance(part, For) or _is_of_products(part) or not following:
        return None
    for between, nest in enumerate(following):
        if isinstance(nest, For) and _is_for_cores(nest):
            data = clears_accumulators(part, nest)
            return nest if data is not None and not touches(seq(following[:between]), frozenset([data])) else None
        if any_statement(nest, _is_of_products):
            return None
    return None


def _is_of_products(node: Stmt) -> bool:
    return core_of(node) is not None or (isinstance(node, AttrStmt) and node.attr_key in (PENDING, RELEASE))


def _is_for_cores(loop: For) -> bool:
    """Whether a nest is nothing but loops for tensor cores, in loops around them that can be unrolled."""
    if core_of(loop) is not None:
        return True
    if not isinstance(loop.extent, IntImm):
        return False
    parts = loop.body.seq if isinstance(loop.body, SeqStmt) else [loop.body]
    return all([isinstance(part, For) and _is_for_cores(part) for part in parts])


def _size(buffer: Buffer) -> int:
    result = 1
    for extent in buffer.shape:
        assert isinstance(extent, IntImm)
        result *= extent.value
    return result


@function_pass
@deep
def use_warpgroups(func: PrimFunc) -> PrimFunc:
    """Nests that a schedule gave to tensor cores become `wgmma` of the warpgroups that run them."""
    if not any_statement(func.body, lambda node: core_of(node) is not None):
        return func
    operands = register_operands(func.body)
    body = in_registers(func.body, operands)
    registers = {data: operand.registers for data, operand in operands.items()}
    tiles = {data: tile for data, tile in tiles_of_warpgroups(func.body).items() if data not in registers}
    return func.with_(body=_UseWarpgroups(tiles, registers).visit(body))
