"""Visitors and rewriters: who is met, in which order, what stays the same object, how buffers follow."""

from __future__ import annotations

from loopwright import ir
from loopwright.ir import Var, const, substitute, variables_in
from loopwright.script import tir as T


def program() -> tuple[ir.PrimFunc, ir.Var, ir.Buffer, ir.Buffer]:
    n, i = ir.Var("n"), ir.Var("i")
    A, B = ir.decl_buffer((n,), "int32", "A"), ir.decl_buffer((8,), "int32", "B")
    body = ir.For(i, 0, 8, ir.ForKind.SERIAL, ir.BufferStore(B, ir.BufferLoad(A, [i]) + i * n, [i]))
    return ir.PrimFunc([A, B, n], body), n, A, B


def names(nodes: list[ir.Node]) -> list[str]:
    return [type(node).__name__ for node in nodes]


def test_methods_fit_subclasses_nearest_first():
    class Walk(ir.Visitor):
        def __init__(self) -> None:
            self.met: list[str] = []

        def visit_BinaryExpr(self, node: ir.BinaryExpr) -> None:
            self.met.append(f"binary {type(node).__name__}")
            self.visit_children(node)

        def visit_Mul(self, node: ir.Mul) -> None:
            self.met.append("product")

        def visit_Var(self, var: ir.Var) -> None:
            self.met.append(var.name)

    walk = Walk()
    x = ir.Var("x")
    walk.visit((x + x * 2) < ir.SizeVar("n"))
    assert walk.met == ["binary LT", "binary Add", "x", "product", "n"]


def test_a_rewriter_keeps_what_does_not_change():
    class Double(ir.Rewriter):
        def visit_IntImm(self, imm: ir.IntImm) -> ir.Expr:
            return const(imm.value * 2, imm.dtype)

    x, y = ir.Var("x"), ir.Var("y")
    kept = x * y
    before = kept + (y - 3)
    after = Double().visit(before)
    assert repr(after) == "x * y + (y - 6)"
    assert after.a is kept
    assert Double().visit(kept) is kept


def test_rewriting_statements():
    class NoGuards(ir.Rewriter):
        def visit_IfThenElse(self, statement: ir.IfThenElse) -> ir.Stmt:
            kept: ir.Stmt = self.visit(statement.then_case)
            return kept

    A = ir.decl_buffer((4,), "int32", "A")
    store = ir.BufferStore(A, 1, [0])
    assert NoGuards().visit(ir.IfThenElse(ir.Var("p", "bool"), store)) is store
    func = ir.PrimFunc([A], store)
    assert NoGuards().visit(func) is func


def test_orders_of_visits():
    x = ir.Var("x")
    expr = ir.Add(ir.Mul(x, const(2)), x)
    met: list[ir.Node] = []
    ir.post_order_visit(expr, met.append)
    assert names(met) == ["Var", "IntImm", "Mul", "Add"]  # each node once
    met = []
    ir.pre_order_visit(expr, met.append)
    assert names(met) == ["Add", "Mul", "Var", "IntImm", "Var"]
    met = []

    def look(node: ir.Node) -> bool:
        met.append(node)
        return not isinstance(node, ir.Mul)

    ir.pre_order_visit(expr, look)
    assert names(met) == ["Add", "Mul", "Var"]


def test_walks_stop_at_buffers():
    func, n, A, _ = program()
    met: list[ir.Node] = []
    ir.pre_order_visit(func.body, met.append)
    assert A in met
    uses = sum(node is n for node in met)
    assert uses == 1  # i * n; not the shape of A


def test_uses_var():
    func, n, _, _ = program()
    assert ir.uses_var(func.body, lambda var: var is n)
    assert not ir.uses_var(func.body, lambda var: var.name == "q")


def test_substitution_gives_the_same_object_without_the_variable():
    func, n, A, B = program()
    assert ir.substitute(func, {ir.Var("q"): 1}) is func
    assert ir.substitute(func, {}) is func
    x = ir.Var("x")
    assert repr(ir.substitute(x + 1, {x: 5})) == "T.Add(5, 1)"  # nothing is folded


def test_substitution_rewrites_each_buffer_once():
    func, n, A, B = program()
    new = ir.substitute(func.body, {n: const(16)})
    loads: list[ir.BufferLoad] = []
    ir.post_order_visit(new, lambda node: loads.append(node) if isinstance(node, ir.BufferLoad) else None)
    assert repr(loads[0].buffer.shape[0]) == "16" and loads[0].buffer is not A
    assert new.body.buffer is B  # its shape does not mention n
    twice = ir.seq([func.body, ir.BufferStore(A, 1, [0])])
    moved = ir.substitute(twice, {n: const(16)})
    assert moved[0].body.value.a.buffer is moved[1].buffer


def test_substitution_in_a_function_reaches_its_buffer_map():
    func, n, A, B = program()
    new = ir.substitute(func, {n: const(16)})
    assert repr(new.argument_buffers()[0].shape[0]) == "16"
    assert new.body.body.value.a.buffer is new.argument_buffers()[0]


def test_substituting_memory_and_buffers():
    func, n, A, B = program()
    data = ir.pointer("other", "int32")
    moved = ir.substitute(func.body, {A.data: data})
    assert moved.body.value.a.buffer.data is data
    C = ir.decl_buffer((8,), "int32", "C")
    swapped = ir.substitute(func.body, {}, {B: C})
    assert swapped.body.buffer is C and swapped.body.value.a.buffer is A


def test_substitution_reaches_the_domains_of_block_axes():
    n, A = ir.Var("n"), ir.decl_buffer((8,), "int32", "A")
    axis = ir.IterVar(ir.Range(n), "vi", 0)
    block = ir.Block([axis], [], [ir.BufferRegion(A, [ir.Range(n)])], "B", ir.BufferStore(A, 1, [axis.var]))
    new = ir.substitute(block, {n: const(4)})
    assert repr(new.iter_vars[0].dom.extent) == "4" and repr(new.writes[0].region[0].extent) == "4"
    assert new.iter_vars[0].var is axis.var


def test_buffer_rewriters_follow_shapes():
    class Widen(ir.BufferRewriter):
        def visit_IntImm(self, imm: ir.IntImm) -> ir.Expr:
            return const(imm.value, "int64")

    A = ir.decl_buffer((8,), "int8", "A")
    load = ir.BufferLoad(A, [3])
    new = Widen().visit(load)
    assert new.buffer.shape[0].dtype == "int64" and new.indices[0].dtype == "int64" and new.buffer.data is A.data


@T.prim_func
def attributed(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "float32")
    T.attr(A.data, "storage_alignment", 128)
    T.attr(A, "mark", n)
    A[0] = T.float32(1)


def test_an_attribute_is_about_the_variable_or_buffer_that_replaced_its_own():
    n = attributed.params[1]
    body = substitute(attributed.body, {n: 16})
    about_pointer, about_buffer = body, body.body
    assert about_pointer.node is attributed.body.node
    assert about_buffer.node is about_buffer.body.buffer and about_buffer.node.shape[0].value == 16
    assert "A_1" not in attributed.specialize({n: 16}).script()


def test_variables_in_order_each_once():
    x, y, z = (Var(name) for name in "xyz")
    assert variables_in(y * (x + y) // (z + x)) == [y, x, z]
    assert variables_in(const(1)) == []


def test_statements_are_found_without_entering_expressions():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            if A[i] > 0:
                B[i] = A[i] + A[7 - i]
            else:
                B[i] = 0

    loop = func.body
    seen: list[str] = []
    ir.any_statement(loop, lambda node: bool(seen.append(type(node).__name__)))
    assert seen == ["For", "IfThenElse", "BufferStore", "BufferStore"]
    met: list[ir.Node] = []
    assert ir.any_statement(loop, lambda node: bool(met.append(node)) or isinstance(node, ir.IfThenElse))
    assert names(met) == ["For", "IfThenElse"]  # the first that passes is the last that is asked
    stores = ir.collect_statements(loop, ir.BufferStore)
    assert len(stores) == 2
    assert ir.collect(loop, ir.BufferStore) == stores
    both = ir.collect(loop, ir.BufferLoad, ir.BufferStore)
    assert names(both) == ["BufferLoad", "BufferStore", "BufferLoad", "BufferLoad", "BufferStore"]
