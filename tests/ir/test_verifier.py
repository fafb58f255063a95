"""The verifier: each rule broken once, and everything the pipeline makes is well formed."""

from __future__ import annotations

import pytest

from loopwright import ir, te
from loopwright.ir import const
from loopwright.ir.verifier import NotWellFormed, verify, verify_well_formed
from loopwright.script import from_source
from loopwright.script import ir as I
from loopwright.script import tir as T
from loopwright.transform.pipeline import stages
from tests.random_programs import random_function

SERIAL = ir.ForKind.SERIAL
A = ir.decl_buffer((8,), "float32", "A")
x, i, j, n = ir.Var("x"), ir.Var("i"), ir.Var("j"), ir.Var("n")
p = ir.Var("p", "bool")
STORE = ir.BufferStore(A, 1.0, [0])
REGION = ir.BufferRegion(A, [ir.Range(0, 8)])


def block(body: ir.Stmt = STORE, **options: object) -> ir.Block:
    return ir.Block([ir.IterVar((0, 8), "vi", 0)], [], [REGION], "B", body, **options)  # type: ignore[arg-type]


def axis_block(axis: ir.IterVar) -> ir.Block:
    return ir.Block([axis], [], [], "B", ir.BufferStore(A, 1.0, [axis.var]))


SHARED = ir.For(i, 0, 8, SERIAL, STORE)
HIDDEN = ir.Var("outside")
OTHER = ir.decl_buffer((8,), "float32", "Other")

BROKEN = {
    "undefined variable": (
        ir.BufferStore(A, 1.0, [x]),
        "variable x is used where it is not defined",
        "define it with a loop, a let or a parameter",
    ),
    "use after the loop": (
        ir.seq([ir.For(i, 0, 8, SERIAL, STORE), ir.BufferStore(A, 1.0, [i])]),
        "variable i is used where it is not defined",
        "define it with a loop",
    ),
    "let used after its body": (
        ir.seq([ir.LetStmt(x, const(1), STORE), ir.BufferStore(A, 1.0, [x])]),
        "variable x is used where it is not defined",
        "define it",
    ),
    "defined twice, one loop in another": (
        ir.For(i, 0, 8, SERIAL, ir.For(i, 0, 8, SERIAL, STORE)),
        "variable i is defined twice",
        "make a fresh variable for each definition",
    ),
    "defined twice, one loop after another": (
        ir.seq([SHARED, SHARED]),
        "variable i is defined twice",
        "make a fresh variable",
    ),
    "undeclared buffer": (
        ir.BufferStore(OTHER, 1.0, [0]),
        "buffer Other is used where it is not declared",
        "allocate it, or make it a parameter",
    ),
    "undeclared buffer that is read": (
        ir.BufferStore(A, ir.BufferLoad(OTHER, [0]), [0]),
        "buffer Other is used where it is not declared",
        "allocate it",
    ),
    "use after the allocation": (
        ir.seq([ir.Allocate(OTHER.data, "float32", [8], True, STORE), ir.BufferStore(OTHER, 1.0, [0])]),
        "buffer Other is used where it is not declared",
        "allocate it",
    ),
    "vector index that is not the last": (
        ir.BufferStore(ir.Buffer(A.data, "float32", (2, 4), name="V"), const(0, "float32x2"), [ir.Ramp(0, 1, 2), 0]),
        "V has a vector index that is not the last",
        "only the last index may be a vector",
    ),
    "float index": (
        ir.BufferStore(A, ir.BufferLoad(A, [const(1.0)]), [0]),
        "A is indexed by a value of type float32",
        "indices are integers",
    ),
    "loop bounds of another type": (
        ir.For(i, const(0), const(8, "int64"), SERIAL, STORE),
        "loop i counts in int32, but its bounds have types int32 and int64",
        "give the variable and its bounds one type",
    ),
    "condition that is no truth value": (
        ir.IfThenElse(const(1), STORE),
        "a condition has type int32",
        "compare it with something: conditions are bool",
    ),
    "while condition": (ir.While(const(1), STORE), "a condition has type int32", "compare it with something"),
    "vector condition": (ir.IfThenElse(const(True, "boolx4"), STORE), "a condition has type boolx4", "compare it"),
    "let of another type": (
        ir.LetStmt._make(x, const(1.0), STORE),
        "let x has type int32, its value float32",
        "cast the value",
    ),
    "let expression of another type": (
        ir.BufferStore(A, ir.Let._make(x, const(1.0), ir.Cast("float32", x)), [0]),
        "let x has type int32, its value float32",
        "cast the value",
    ),
    "short sequence": (ir.SeqStmt([STORE]), "a sequence holds fewer than two statements", "use seq(...)"),
    "block with too few values": (
        ir.BlockRealize._make([], True, block()),
        "block B has 1 iteration variables, but 0 values are given",
        "bind each iteration variable once",
    ),
    "block with too many values": (
        ir.BlockRealize._make([const(0), const(0)], True, block()),
        "block B has 1 iteration variables, but 2 values are given",
        "bind each",
    ),
    "block value of another type": (
        ir.BlockRealize([const(0, "int64")], True, block()),
        "block B: iteration variable vi has type int32, its value int64",
        "cast the value",
    ),
    "block predicate": (ir.BlockRealize([const(0)], const(1), block()), "a condition has type int32", "compare it"),
    "block that uses a loop variable from outside": (
        ir.For(HIDDEN, 0, 8, SERIAL, ir.BlockRealize([HIDDEN], True, block(ir.BufferStore(A, 1.0, [HIDDEN])))),
        "a block uses the loop variable outside of a loop outside it",
        "bind it to an iteration variable of the block: v = T.axis.opaque(n, i)",
    ),
    "block buffer used outside": (
        ir.seq([ir.BlockRealize([const(0)], True, block(alloc_buffers=[OTHER])), ir.BufferStore(OTHER, 1.0, [0])]),
        "buffer Other is used where it is not declared",
        "allocate it",
    ),
    "axis domain that uses nothing defined": (
        ir.BlockRealize([const(0)], True, axis_block(ir.IterVar(ir.Range(n), "vi", 0))),
        "variable n is used where it is not defined",
        "define it",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_every_rule_is_checked(case):
    body, problem, hint = BROKEN[case]
    func = ir.PrimFunc([A], body, attrs={"global_symbol": "f"})
    with pytest.raises(NotWellFormed) as caught:
        verify(func)
    text = str(caught.value)
    assert f"f is not well formed: {problem} [LW0511]" in text
    assert f"hint: {hint}" in text
    assert "call: verify(func) at test_verifier.py" in text
    assert verify_well_formed(func, assert_mode=False) is False
    with pytest.raises(ValueError, match="not well formed"):
        verify_well_formed(func)


def test_tensor_expressions_have_no_place_in_a_function():
    placeholder = te.placeholder((8,), name="P")
    k = te.reduce_axis((0, 8), "k")
    for value, problem in (
        (placeholder[0], "tensor P is read in a function"),
        (te.sum(placeholder[k], axis=k), "a te reduction stands in a function"),
    ):
        with pytest.raises(NotWellFormed, match=problem) as caught:
            verify(ir.PrimFunc([A], ir.BufferStore(A, value, [0])))
        assert "hint: make the function with te.create_prim_func" in str(caught.value)


def test_the_place_is_shown():
    func = ir.PrimFunc([A], ir.For(i, 0, 8, SERIAL, ir.BufferStore(A, ir.BufferLoad(A, [x]), [i])))
    with pytest.raises(NotWellFormed) as caught:
        verify(func)
    assert "A[i] = A[x]" in str(caught.value)


# --- what is right ---


def test_what_programs_may_do():
    good = [
        ir.LetStmt(x, const(1), ir.BufferStore(A, 1.0, [x])),
        ir.IfThenElse(p, STORE, STORE),
        ir.Allocate(OTHER.data, "float32", [8], True, ir.BufferStore(OTHER, 1.0, [0])),
        ir.BlockRealize([const(0)], True, block(alloc_buffers=[OTHER], init=STORE)),
        ir.BufferStore(ir.Buffer(A.data, "float32", (2, 4), name="view"), 1.0, [0, 0]),  # memory that exists
        ir.For(n, 0, 8, SERIAL, ir.BufferStore(A, 1.0, [n])),
    ]
    for body in good:
        verify(ir.PrimFunc([A, p], body))


def test_one_let_expression_may_stand_in_two_places():
    let = ir.Let(x, const(2), ir.Cast("float32", x))
    verify(ir.PrimFunc([A], ir.BufferStore(A, let + let, [0])))


def test_symbols_of_shapes_come_with_the_buffers():
    m, stride, offset = ir.Var("m"), ir.Var("s"), ir.Var("o")
    B = ir.decl_buffer((m,), name="B", strides=[stride], elem_offset=offset)
    verify(ir.PrimFunc([B], ir.For(i, 0, m, SERIAL, ir.BufferStore(B, (stride + offset).astype("float32"), [i]))))


# --- modules ---


def module_calling(*args: object, name: str = "helper") -> ir.IRModule:
    helper = ir.PrimFunc([A, n], ir.BufferStore(A, 1.0, [n]))
    B = ir.decl_buffer((8,), name="B")
    given = [B.data if arg is A else arg for arg in args]
    main = ir.PrimFunc([B], ir.Evaluate(ir.Call("void", ir.GlobalVar(name), given)))
    return ir.IRModule({"helper": helper, "main": main})


def test_calls_within_a_module_are_checked():
    verify(module_calling(A, 3))
    with pytest.raises(NotWellFormed, match="it calls nobody, which is no function of the module") as caught:
        verify(module_calling(A, 3, name="nobody"))
    assert "hint: the module has helper, main" in str(caught.value)
    with pytest.raises(NotWellFormed, match="it calls helper with 1 arguments, expected 2") as caught:
        verify(module_calling(A))
    assert "hint: its parameters are (A_handle, n)" in str(caught.value)
    with pytest.raises(NotWellFormed, match="it calls helper with int32 for A, expected handle") as caught:
        verify(module_calling(1, 3))
    assert "hint: pass the memory of a buffer: A.data" in str(caught.value)
    with pytest.raises(NotWellFormed, match="it calls helper with float32 for n, expected int32"):
        verify(module_calling(A, 3.0))


def test_a_function_by_itself_may_call_what_is_not_there_yet():
    verify(module_calling(A, 3)["main"])


# --- what the pipeline makes ---


@I.ir_module
class Blocks:
    @T.prim_func
    def gemm(X: T.Buffer((16, 16), "float32"), Y: T.Buffer((16, 16), "float32"), Z: T.Buffer((16, 16), "float32")):
        C = T.alloc_buffer((16, 16), "float32")
        for i0, j0, k0 in T.grid(16, 16, 16):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i0, j0, k0])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + X[vi, vk] * Y[vk, vj]
        for i0 in T.parallel(16):
            for j0 in T.vectorized(16):
                with T.block("Z"):
                    vi, vj = T.axis.remap("SS", [i0, j0])
                    Z[vi, vj] = T.exp(C[vi, vj])


def test_every_stage_of_lowering_is_well_formed():
    for function in (Blocks["gemm"], *(random_function(seed) for seed in range(25))):
        for name, stage in stages(function, "llvm"):
            try:
                verify(stage)
            except NotWellFormed as error:
                raise AssertionError(f"after {name}: {error}") from error


# --- parts that are known from another version --------------------------------------------------------------------


def nests() -> tuple[ir.Buffer, ir.Buffer, list[ir.Stmt]]:
    A, B = ir.decl_buffer((4,), "float32", "A"), ir.decl_buffer((4,), "float32", "B")
    made: list[ir.Stmt] = []
    for number in range(3):
        i = ir.Var(f"i{number}", "int32")
        body = ir.BufferStore(B, ir.BufferLoad(A, [i]) + ir.const(number, "float32"), [i])
        made.append(ir.For(i, ir.const(0), ir.const(4), ir.ForKind.SERIAL, body))
    return A, B, made


def function_of(buffers: list[ir.Buffer], body: ir.Stmt) -> ir.PrimFunc:
    params = [ir.Var(f"{buffer.name}_handle", "handle") for buffer in buffers]
    return ir.PrimFunc(params, body, buffer_map=dict(zip(params, buffers, strict=True)))


def test_a_nest_that_was_right_elsewhere_is_refused_where_its_memory_is_not():
    A, B, parts = nests()
    verify(function_of([A, B], ir.seq(parts)))
    with pytest.raises(NotWellFormed, match="buffer A is used where it is not declared"):
        verify(function_of([B], ir.seq(parts)))
    verify(function_of([B, A], ir.seq([parts[2], parts[0]])))


def test_a_nest_that_was_right_once_is_refused_twice():
    A, B, parts = nests()
    verify(function_of([A, B], ir.seq(parts)))
    with pytest.raises(NotWellFormed, match="variable i1 is defined twice"):
        verify(function_of([A, B], ir.seq([*parts, parts[1]])))


def test_a_nest_in_a_loop_that_counts_with_its_own_variable():
    A, B, parts = nests()
    verify(function_of([A, B], ir.seq(parts)))
    first = parts[0]
    assert isinstance(first, ir.For)
    with pytest.raises(NotWellFormed, match="variable i0 is defined twice"):
        verify(function_of([A, B], first.with_(body=ir.seq(parts))))


def test_the_symbols_of_a_match_live_in_its_block():
    @T.prim_func
    def matched(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                s = T.int32()
                row = T.match_buffer(A[vi, 0:8], (8,), strides=(s,))
                B[vi] = row[0] + T.Cast("float32", s)

    verify(matched)
    symbol = next(var for var in ir.variables_in(matched.body) if var.name == "s")
    after = ir.Evaluate(symbol + 1)
    with pytest.raises(NotWellFormed, match="variable s is used where it is not defined"):
        verify(matched.with_(body=ir.seq([matched.body, after])))


@pytest.mark.parametrize("between", ["p", "q"])
def test_a_buffer_at_an_address_made_of_a_number(between):
    text = f"""
@T.prim_func
def main(A: T.Buffer((16,), "int32")):
    p: T.handle("int32") = T.reinterpret("handle", T.uint64(8))
    q: T.handle("int32") = p
    X = T.decl_buffer((4,), "int32", data={between})
    X[0] = 3
"""
    with pytest.raises(NotWellFormed, match=rf"X is at an address that is made of a number \({between}\)"):
        verify(from_source(text))
