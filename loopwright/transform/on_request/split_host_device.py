"""split_host_device: every launch of threads becomes a kernel, a function of its own that the host calls.

    def main(A: T.Buffer(n), B: T.Buffer(n)):         →    def main(A: T.Buffer(n), B: T.Buffer(n)):
        bx = T.launch_thread("blockIdx.x", n // 32)            main_kernel(A.data, B.data, n // 32, 32)
        tx = T.launch_thread("threadIdx.x", 32)
        B[bx * 32 + tx] = A[bx * 32 + tx]                  def main_kernel(A: T.handle, B: T.handle): … # the launch

A kernel takes the pointers and then the scalars that it uses, both by name. A call passes these, and then the extents
of the axes that the kernel's attribute `tir.kernel_launch_params` lists. Arrays of constants move into the kernels
that read them.

Needs: flat buffers, `launch_threads`.  Leaves: no launch in a function of the host, and no access of memory there.
"""

from __future__ import annotations

from loopwright.analysis.thread_axes import is_thread_tag, tag_of
from loopwright.ir import (
    AllocateConst,
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Evaluate,
    Expr,
    For,
    GlobalVar,
    IntImm,
    IRModule,
    IterVar,
    Let,
    LetStmt,
    Node,
    PrimFunc,
    Stmt,
    Var,
    Visitor,
    collect,
    deep,
    substitute,
)
from loopwright.ir.annotations import LAUNCH_PARAMS
from loopwright.runtime.dtype import VOID
from loopwright.transform.errors import LoweringError
from loopwright.transform.parts.clone_definitions import clone_definitions
from loopwright.transform.parts.statements import StmtRewriter


class NotInAKernel(LoweringError, ValueError):
    """A statement reads or writes memory of the GPU outside every loop that is bound to blocks or threads.

    The host launches kernels; it does not reach the memory that they work on. What stands outside the bound loops
    becomes a kernel once one of its loops is bound. A program in which nothing is bound needs no schedule:
    `loopwright.build` binds its loops itself.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer(32), B: T.Buffer(32)):
            for i in T.thread_binding(32, thread="threadIdx.x"):
                A[i] = T.float32(1)
            for j in range(32):
                B[j] = T.float32(2)

        loopwright.build(f, target="cuda")
    """

    code = "LW0723"

    def __init__(self, statement: Stmt, name: str) -> None:
        super().__init__(
            f"split_host_device: {name} is used outside the loops that are bound to blocks or threads",
            at=statement,
            why="the host launches kernels, and memory of the GPU is theirs alone",
            hint='bind a loop around the statement, as in sch.bind(loop, "blockIdx.x")',
            fields={"buffer": name},
        )


class ThreadsUnknown(LoweringError, ValueError):
    """How many threads a block has is known only when the program runs.

    Memory and registers of a block are shared out when a kernel is compiled, so a loop that is bound to `threadIdx` has
    a constant number of iterations. How many blocks there are may depend on sizes: split the loop, bind its outer part
    to `blockIdx` and the inner one, of constant length, to `threadIdx`.

    For example:

        import loopwright
        from loopwright import te

        n = te.var("n")
        A = te.placeholder((n,), name="A")
        B = te.compute((n,), lambda i: A[i] + 1, name="B")
        s = te.create_schedule(B.op)
        s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
        loopwright.build(s, [A, B], target="cuda")
    """

    code = "LW0724"

    def __init__(self, launch: AttrStmt, tag: str) -> None:
        super().__init__(
            f"{tag} has {launch.value} threads, which is no constant",
            at=launch,
            hint='split the loop by a constant, bind its outer part to "blockIdx.x" and the inner one to "threadIdx.x"',
            fields={"axis": tag, "extent": str(launch.value)},
        )


class _Used(Visitor):
    """The variables that statements of flat buffers use and do not define."""

    def __init__(self) -> None:
        self.defined: set[Var] = set()
        self.found: dict[Var, None] = {}

    def visit_Var(self, var: Var) -> None:
        if var not in self.defined:
            self.found[var] = None

    def visit_Buffer(self, buffer: Buffer) -> None:
        self.visit(buffer.data)  # its shape is no longer asked

    def visit_AttrStmt(self, node: AttrStmt) -> None:
        self.visit(node.value)
        if isinstance(node.node, IterVar) and tag_of(node):
            self.defined.add(node.node.var)
        self.visit(node.body)

    def visit_For(self, loop: For) -> None:
        self.defined.add(loop.loop_var)
        self.visit_children(loop)

    def visit_LetStmt(self, let: LetStmt | Let) -> None:
        self.visit(let.value)
        self.defined.add(let.var)
        self.visit(let.body)

    visit_Let = visit_LetStmt

    def _allocated(self, node: Node) -> None:
        self.defined.add(node.buffer_var)  # type: ignore[attr-defined]
        self.visit_children(node)

    visit_Allocate = visit_AllocateConst = _allocated


class _Split(StmtRewriter):
    """Takes the launches out of one function."""

    def __init__(self, name: str, taken: set[str], attrs: dict[str, object]) -> None:
        self.name, self.taken, self.attrs = name, taken, attrs
        self.kernels: dict[GlobalVar, PrimFunc] = {}
        self.constants: dict[Var, AllocateConst] = {}

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        return self._launch(node) if tag_of(node) else self.rebuild(node)

    def visit_AllocateConst(self, node: AllocateConst) -> Stmt:
        self.constants[node.buffer_var] = node
        body: Stmt = self.visit(node.body)
        return body

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        raise NotInAKernel(store, store.buffer.name)

    def visit_Stmt(self, statement: Stmt) -> Stmt:
        for part in statement.children():
            if isinstance(part, Expr):
                for load in collect(part, BufferLoad):
                    raise NotInAKernel(statement, load.buffer.name)
        return self.rebuild(statement)

    def _launch(self, launch: AttrStmt) -> Stmt:
        body: Stmt = launch
        used = _Used()
        used.visit(body)
        for constant in [self.constants[var] for var in used.found if var in self.constants]:
            body = clone_definitions(constant.with_(body=body))
        outside = [var for var in used.found if var not in self.constants]
        outside.sort(key=lambda var: (var.dtype.kind != "handle", var.name))
        own = {var: Var(var.name, var.type_annotation if var.dtype.kind == "handle" else var.dtype) for var in outside}
        extents = _extents(launch)
        attrs = {**self.attrs, "tir.is_global_func": True, LAUNCH_PARAMS: list(extents)}
        callee = GlobalVar(self._fresh())
        kernel = PrimFunc(list(own.values()), substitute(body, own), attrs={**attrs, "global_symbol": callee.name})
        self.kernels[callee] = kernel
        return Evaluate(Call(VOID, callee, (*outside, *extents.values())))

    def _fresh(self) -> str:
        name, count = f"{self.name}_kernel", 0
        while name in self.taken:
            count += 1
            name = f"{self.name}_kernel_{count}"
        self.taken.add(name)
        return name


def _extents(launch: AttrStmt) -> dict[str, Expr]:
    """The axes of a launch, outermost first, with how long they are."""
    result: dict[str, Expr] = {}
    statement: Stmt = launch
    while isinstance(statement, AttrStmt):
        tag = tag_of(statement)
        if tag:
            result[tag] = statement.value
            if is_thread_tag(tag) and not isinstance(statement.value, IntImm):
                raise ThreadsUnknown(statement, tag)
        statement = statement.body
    return result


@deep
def split_host_device(module: IRModule) -> IRModule:
    """The module with its launches as kernels, which the functions that launched them call."""
    result = IRModule(attrs=module.attrs)
    kernels: dict[GlobalVar, PrimFunc] = {}
    taken = {name for name, _ in module.functions_items()}
    for name, function in module.functions_items():
        attrs = {key: function.attrs[key] for key in ("target", "tir.noalias") if key in function.attrs}
        split = _Split(str(function.attrs.get("global_symbol", name)), taken, attrs)
        result[module.get_global_var(name)] = function.with_(body=split.visit(function.body))
        kernels.update(split.kernels)
    for callee, kernel in kernels.items():
        result[callee] = kernel
    return result
