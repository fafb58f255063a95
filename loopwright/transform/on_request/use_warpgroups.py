"""use_warpgroups: nests that a schedule gave to tensor cores become `wgmma` of the warpgroups that run them.

    for k in range(4):                                             →    T.wgmma_fence()
        for j in T.serial(16, {"tensor_core": "wgmma"}):                for k in T.unroll(4):
            for h, e, kk in T.grid(2, 2, 16):                               T.wgmma(&C[0], 128, …, &A[…], …, &B[…], …)
                C[j, h, e] = C[j, h, e] + …                             T.wgmma_commit()
                                                                        T.wgmma_wait(0, &C[0], 64)

Until here each thread computes its share of the tile by loops of its own, so that schedules are proved, and programs
evaluated, on what they mean (`parts/warpgroup_products.py` says what the share is). Tiles in shared memory come by
tensor copies, which lay them out as tensor cores read them (`specialize_warps`).

Needs: threads launched, buffers compacted.  Leaves: no loop for tensor cores. For sm_90a.
"""

from __future__ import annotations

from loopwright.analysis.thread_axes import axis_of, tag_of
from loopwright.analysis.warp_roles import core_of, role_of
from loopwright.ir import (
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
    any_statement,
    collect,
    collect_statements,
    const,
    deep,
    seq,
    uses_var,
)
from loopwright.ir.intrinsics import address_of
from loopwright.ir.passes import function_pass
from loopwright.ir.warpgroup_intrinsics import wgmma_commit, wgmma_fence, wgmma_wait
from loopwright.transform.errors import LoweringError
from loopwright.transform.parts.statements import StmtRewriter
from loopwright.transform.parts.warpgroup_products import (
    PENDING,
    WARPGROUP,
    WGMMA,
    Differs,
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
    def __init__(self) -> None:
        self.threads: list[AttrStmt] = []
        self.accumulators: dict[Buffer, None] = {}  # of the role
        self.count: Expr | None = None  # of threads, those of the role

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key == PENDING:
            assert isinstance(node.value, IntImm)
            return seq([self.wait(node.value.value), self.visit(node.body)])
        if role_of(node) is not None:
            self.accumulators = {}
            self.count, around = node.value, self.count
            result = self.rebuild(node)
            self.count = around
            return result
        if not tag_of(node).startswith("threadIdx"):
            return self.rebuild(node)
        self.threads.append(node)
        result = self.rebuild(node)
        self.threads.pop()
        return result

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        if not any_statement(node.then_case, lambda case: role_of(case) is not None):
            loop = next((loop for loop in collect_statements(node, For) if core_of(loop) is not None), None)
            variables = [axis_of(launch).var for launch in self.threads]
            if loop is not None and uses_var(node.condition, variables.__contains__):
                problem = f"threads of a warpgroup would skip it where {node.condition} does not hold"
                raise NotForTensorCores(loop, problem, "let all threads of the role run the loop")
        return self.rebuild(node)

    def visit_For(self, loop: For) -> Stmt:
        return seq([self.group(loop), self.wait(0)]) if _is_for_cores(loop) else self.rebuild(loop)

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
        axes = [tag_of(node) for node in self.threads]
        if axes != ["threadIdx.x"]:
            problem = f"threads lie along {', '.join(axes) or 'no axis'}, and those of warpgroups along threadIdx.x"
            raise NotForTensorCores(nests[0], problem, "give the loops to a role, whose threads are counted along x")
        thread, count = axis_of(self.threads[0]).var, self.count or axis_of(self.threads[0]).extent
        if not isinstance(count, IntImm) or count.value % WARPGROUP:
            problem = f"{count} threads run it, which are no whole warpgroups"
            raise NotForTensorCores(nests[0], problem, f"give it to a multiple of {WARPGROUP} threads")
        calls = _Calls(thread)
        body = calls.visit(loop)
        self.accumulators |= dict.fromkeys(calls.accumulators)
        return seq([Evaluate(wgmma_fence()), body, Evaluate(wgmma_commit())])


class _Calls(StmtRewriter):
    """Writes the calls of one group."""

    def __init__(self, thread: Var) -> None:
        self.thread = thread
        self.accumulators: list[Buffer] = []

    def visit_For(self, loop: For) -> Stmt:
        if core_of(loop) is None:
            return loop.with_(kind=ForKind.UNROLLED, body=self.visit(loop.body))
        try:
            product = warpgroup_product(loop, self.thread)
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


def _check_only_copied(func: PrimFunc, before: dict[Var, Buffer]) -> None:
    """Raise NotForTensorCores where a thread touches a tile: the copies have laid it out as tensor cores read it."""
    loops = [loop for loop in collect_statements(func.body, For) if core_of(loop) is not None]
    inside = {id(node) for loop in loops for node in [*collect(loop, BufferLoad)]}
    addressed = {id(call.args[0]) for call in collect(func.body, Call) if call.op.name == "tir.address_of"}
    accesses: list[BufferLoad | BufferStore] = [*collect(func.body, BufferLoad), *collect(func.body, BufferStore)]
    for node in accesses:
        if node.buffer.data in before and id(node) not in inside and id(node) not in addressed:
            problem = f"a thread {'loads' if isinstance(node, BufferLoad) else 'stores'} elements of {node.buffer.name}"
            hint = "let one thread of another role copy boxes of a tensor to it, and nothing else touch it"
            raise NotForTensorCores(loops[0], f"{problem}, which tensor copies have to fill", hint)


@function_pass
@deep
def use_warpgroups(func: PrimFunc) -> PrimFunc:
    """Nests that a schedule gave to tensor cores become `wgmma` of the warpgroups that run them."""
    if not any_statement(func.body, lambda node: core_of(node) is not None):
        return func
    _check_only_copied(func, tiles_of_warpgroups(func.body))
    return func.with_(body=_UseWarpgroups().visit(func.body))
