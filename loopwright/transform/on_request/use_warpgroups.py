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

from collections.abc import Mapping
from math import prod

from loopwright.analysis.thread_axes import axis_of, barrier, tag_of
from loopwright.analysis.warp_roles import core_of, role_of
from loopwright.ir import (
    Allocate,
    AttrStmt,
    Buffer,
    BufferLoad,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    LetStmt,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
    any_statement,
    collect_statements,
    const,
    deep,
    seq,
    uses_var,
)
from loopwright.ir.intrinsics import address_of
from loopwright.ir.passes import function_pass
from loopwright.ir.warpgroup_intrinsics import fence_proxy_async, wgmma_commit, wgmma_fence, wgmma_wait
from loopwright.transform.errors import LoweringError
from loopwright.transform.parts.statements import StmtRewriter
from loopwright.transform.parts.swizzles import SWIZZLE
from loopwright.transform.parts.warpgroup_products import (
    PENDING,
    WARPGROUP,
    WGMMA,
    Differs,
    swizzle_of,
    tiles_of_warpgroups,
    warpgroup_product,
)


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


class _UseWarpgroups(StmtRewriter):
    def __init__(self, tiles: Mapping[Var, Buffer]) -> None:
        self.tiles = tiles
        self.of_block: set[Var] = set()  # tiles that all threads of the block fill and read, between barriers
        self.role: AttrStmt | None = None
        self.threads: list[AttrStmt] = []
        self.differ: set[Var] = set()  # variables that threads of a warpgroup have different values of
        self.accumulators: dict[Buffer, None] = {}  # of the role

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key == PENDING:
            assert isinstance(node.value, IntImm)
            return seq([self.wait(node.value.value), self.visit(node.body)])
        if role_of(node) is not None:
            self.accumulators, self.role = {}, node
            result: Stmt = self.rebuild(node)
            self.role = None
            return result
        if not tag_of(node).startswith("threadIdx"):
            return self.rebuild(node)
        self.threads.append(node)
        self.differ.add(axis_of(node).var)
        result = self.rebuild(node)
        self.threads.pop()
        return result

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        if uses_var(node.value, self.differ.__contains__):
            self.differ.add(node.var)
        return self.rebuild(node)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        """A tile that roles do not hand on lies as tensor cores read it, too."""
        tile = self.tiles.get(node.buffer_var)
        if tile is None or SWIZZLE in node.annotations:
            return self.rebuild(node)
        self.of_block.add(node.buffer_var)
        return node.with_(annotations={**node.annotations, SWIZZLE: swizzle_of(tile)}, body=self.visit(node.body))

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        if not any_statement(node.then_case, lambda case: role_of(case) is not None):
            self.check_alike(node.condition, node, f"where {node.condition} does not hold")
        return self.rebuild(node)

    def check_alike(self, value: Expr, around: Stmt, when: str) -> None:
        """Raise NotForTensorCores where a loop for tensor cores is inside what threads run differently."""
        loop = next((loop for loop in collect_statements(around, For) if core_of(loop) is not None), None)
        if loop is not None and uses_var(value, self.differ.__contains__):
            problem = f"threads of a warpgroup would skip it {when}"
            raise NotForTensorCores(loop, problem, "let all threads of the role run the loop")

    def visit_For(self, loop: For) -> Stmt:
        for value in (loop.min, loop.extent):
            self.check_alike(value, loop, f"as loop {loop.loop_var.name} depends on {value}")
        if not _is_for_cores(loop):
            return self.rebuild(loop)
        shared = [buffer for buffer in tiles_of_warpgroups(loop).values() if buffer.data in self.of_block]
        if not shared:
            return seq([self.group(loop), self.wait(0)])
        if self.role is not None:
            problem = f"{shared[0].name} is filled by the role that multiplies"
            raise NotForTensorCores(loop, problem, "fill the tiles in another role, or leave roles away")
        filled = [Evaluate(fence_proxy_async()), barrier()]  # what threads have stored is there for tensor cores
        return seq([*filled, self.group(loop), self.wait(0), barrier()])

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        """A group that is followed by what comes at most one group later is not waited for at once."""
        parts: list[Stmt] = []
        for part, following in zip(node.seq, (*node.seq[1:], None), strict=True):
            is_open = isinstance(following, AttrStmt) and following.attr_key == PENDING
            if is_open and isinstance(part, For) and _is_for_cores(part):
                parts.append(self.group(part))
            else:
                parts.append(self.visit(part))
        return seq(parts)

    def wait(self, count: int) -> Stmt:
        """All groups but the last `count` are done; the results of all are read only then."""
        kept: list[object] = []
        for buffer in self.accumulators if count == 0 else ():
            kept += [address_of(BufferLoad(buffer, tuple([const(0)] * buffer.ndim))), _size(buffer)]
        return Evaluate(wgmma_wait(count, *kept))

    def group(self, loop: For) -> Stmt:
        """The calls of a nest, as one group."""
        nests = [inner for inner in collect_statements(loop, For) if core_of(inner) is not None]
        for nest in nests:
            if core_of(nest) != WGMMA:
                raise NotForTensorCores(nest, f"there are none named {core_of(nest)}", f'annotate it with "{WGMMA}"')
        threads = {axis_of(node).var: node.value for node in sorted(self.threads, key=tag_of)}
        extents = {var: extent.value for var, extent in threads.items() if isinstance(extent, IntImm)}
        role = None if self.role is None else role_of(self.role)
        count = prod(extents.values()) if role is None else role.threads
        if len(extents) < len(threads) or count % WARPGROUP or not threads:
            of = "the block" if role is None else f"role {role.name}"
            given = " × ".join([str(extent) for extent in threads.values()]) if role is None else str(count)
            raise NotForTensorCores(nests[0], f"{of} has {given or 'no'} threads, no whole warpgroups of {WARPGROUP}")
        calls = _Calls(extents)
        body = calls.visit(loop)
        self.accumulators |= dict.fromkeys(calls.accumulators)
        return seq([Evaluate(wgmma_fence()), body, Evaluate(wgmma_commit())])


class _Calls(StmtRewriter):
    """Writes the calls of one group."""

    def __init__(self, threads: Mapping[Var, int]) -> None:
        self.threads = threads
        self.accumulators: list[Buffer] = []

    def visit_For(self, loop: For) -> Stmt:
        if core_of(loop) is None:
            return loop.with_(kind=ForKind.UNROLLED, body=self.visit(loop.body))
        try:
            product = warpgroup_product(loop, self.threads)
        except Differs as error:
            raise NotForTensorCores(loop, str(error)) from None
        self.accumulators.append(product.accumulators.buffer)
        return Evaluate(product.call())


def _is_for_cores(loop: For) -> bool:
    """Whether a nest is nothing but loops for tensor cores, in loops around them."""
    if core_of(loop) is not None:
        return True
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
    return func.with_(body=_UseWarpgroups(tiles_of_warpgroups(func.body)).visit(func.body))
