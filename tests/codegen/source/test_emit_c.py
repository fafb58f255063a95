"""emit_c: what the C looks like, and that compilers with all warnings accept it."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from loopwright import ir
from loopwright.codegen.source import emit_c
from loopwright.codegen.source.c.errors import ResultsDiffer
from loopwright.ir import intrinsics
from loopwright.runtime.errors import NotBuilt
from loopwright.script import tir as T
from loopwright.target import Target
from loopwright.transform import lower

PLAIN = Target("c -mtriple=x86_64-linux-gnu -mcpu=x86-64")
SMALL = Target("c -mtriple=arm-linux-gnueabihf")
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
FLAGS = "-Wall -Wextra -Werror -std=c99 -pedantic -O2 -ffp-contract=off -c -x c - -o /dev/null".split()


def source_of(*functions: ir.PrimFunc, target: Target = PLAIN):
    module = ir.IRModule()
    for function in functions:
        module.update(ir.IRModule.from_expr(function))
    source = emit_c(lower(module, target))
    for compiler in COMPILERS:
        done = subprocess.run([compiler, *FLAGS], input=source.code, text=True, capture_output=True, check=False)
        assert done.returncode == 0, f"{done.stderr}\n{source.code}"
    return source


def body_of(code: str, name: str) -> str:
    """The text of one function."""
    found = re.search(rf"^int32_t {name}\(.*?^}}", code, re.DOTALL | re.MULTILINE)
    assert found, code
    return found[0]


@T.prim_func
def scale(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 4), "float32")
    B = T.match_buffer(b, (n, 4), "float32")
    for i, j in T.grid(n, 4):
        B[i, j] = A[i, j] * 2.0


def test_a_function_reads_like_the_program():
    assert body_of(source_of(scale).code, "scale") == (
        "int32_t scale(const float *restrict A, float *restrict B, int32_t n) {\n"
        "    const int64_t i_end = (int64_t)n;\n"
        "    for (int64_t i = 0; i < i_end; ++i) {\n"
        "        for (int64_t j = 0; j < 4; ++j) {\n"
        "            B[i * 4 + j] = A[i * 4 + j] * 2.0f;\n"
        "        }\n"
        "    }\n"
        "    return 0;\n"
        "}"
    )


def test_indices_have_the_width_of_the_target():
    code = source_of(scale, target=SMALL).code
    assert "int64_t" not in body_of(code, "scale")
    assert "for (int32_t i = 0; i < n; ++i)" in code


def test_the_header_says_what_arguments_are():
    header = source_of(scale).header
    assert (
        "/* scale\n"
        " *\n"
        " *   A   float32[n, 4]   read\n"
        " *   B   float32[n, 4]   written\n"
        " *   n   int32           the length of axis 0 of A\n"
        " */\n"
        "int32_t scale(const float *A, float *B, int32_t n);"
    ) in header
    assert header.startswith("#ifndef SCALE_H\n#define SCALE_H\n")
    assert "a code that scale_message explains." in header


@pytest.mark.skipif(not shutil.which("g++"), reason="there is no C++ compiler here")
def test_the_header_is_also_c_plus_plus(tmp_path):
    (tmp_path / "scale.h").write_text(source_of(scale).header)
    command = ["g++", "-Wall", "-Wextra", "-Werror", "-pedantic", "-c", "-x", "c++", "-", "-o", "/dev/null"]
    program = '#include "scale.h"\nint main() { return scale(nullptr, nullptr, 0); }\n'
    done = subprocess.run([*command, "-I", str(tmp_path)], input=program, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_arithmetic_that_may_wrap_is_written_so():
    @T.prim_func
    def hash_of(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            B[i] = A[i] * 31 + i * 7

    body = body_of(source_of(hash_of).code, "hash_of")
    assert "B[i] = lw_add_i32(lw_mul_i32(A[i], 31), (int32_t)i * 7);" in body


def test_questions_with_one_answer_are_not_asked():
    """Compilers warn about them."""

    @T.prim_func
    def masks(A: T.Buffer((8,), "uint8"), B: T.Buffer((8,), "int32")):
        B[0] = T.if_then_else((A[0] & T.uint8(6)) == T.uint8(1), 1, 2)
        B[1] = T.if_then_else(T.Cast("int32", T.uint8(4) | A[0]) != 2, 3, 4)
        B[2] = T.if_then_else(T.Cast("int8", A[0] & T.uint8(128)) == T.int8(-128), 5, 6)
        B[3] = T.if_then_else(A[0] >= T.uint8(0), 7, 8)
        B[4] = T.Cast("int32", ~T.Cast("int32", A[0] < A[1]))
        for i in range(4):
            if i < 9:
                B[i] = B[i] + 1

    body = body_of(source_of(masks).code, "masks")
    assert body.count("false ? ") == 1
    assert body.count("true ? ") == 2
    assert "(int8_t)(uint8_t)(A[0] & 128) == -128" in body


def test_names_keep_out_of_the_way_of_c():
    exp, auto, x = ir.decl_buffer((4,), name="exp"), ir.decl_buffer((4,), name="auto"), ir.decl_buffer((4,), name="x y")
    i = ir.Var("i")
    value = ir.BufferLoad(exp, [i]) + ir.BufferLoad(auto, [i])
    loop = ir.For(i, 0, 4, ir.ForKind.SERIAL, ir.BufferStore(x, value, [i]))
    code = source_of(ir.PrimFunc([exp, auto, x], loop).with_attr("global_symbol", "main")).code
    parameters = "const float *restrict exp_1, const float *restrict auto_1, float *restrict x_y"
    assert f"int32_t loopwright_main({parameters})" in code


def test_loops_in_a_row_share_their_counter():
    @T.prim_func
    def twice(A: T.Buffer((4,))):
        for i in range(4):
            A[i] = 1.0
        for i in range(4):
            A[3 - i] = 2.0

    assert source_of(twice).code.count("for (int64_t i = 0; i < 4; ++i)") == 2


def test_shared_and_unused_values():
    A, B, i = ir.decl_buffer((4,), name="A"), ir.decl_buffer((4,), name="B"), ir.Var("i", "int64")
    shared = intrinsics.exp(ir.BufferLoad(A, [i]))
    unused, used = ir.Var("unused", "float32"), ir.Var("used", "float32")
    value = ir.Let(unused, shared, ir.Let(used, shared * shared, used + used))
    store = ir.BufferStore(B, value, [i])
    loop = ir.For(i, ir.const(0, "int64"), ir.const(4, "int64"), ir.ForKind.SERIAL, store)
    function = ir.PrimFunc([A, B], loop)
    body = body_of(emit_c(ir.IRModule({"f": function})).code, "f")
    assert body.count("lw_exp_f32") == 1
    assert "unused" not in body


def test_unrolled_loops_are_written_out_while_they_are_short():
    @T.prim_func
    def both(A: T.Buffer((200,))):
        for i in T.unroll(3):
            A[i] = 1.0
        for j in T.unroll(200):
            A[j] = 2.0

    body = body_of(source_of(both).code, "both")
    assert "    A[2] = 1.0f;\n" in body
    assert "for (int64_t j = 0; j < 200; ++j)" in body


def test_parallel_loops_are_said_to_run_in_order():
    @T.prim_func
    def parallel(A: T.Buffer((4,))):
        for i in T.parallel(4):
            A[i] = 1.0

    assert "Parallel loops run here one iteration after the other." in source_of(parallel).code
    assert "Parallel" not in source_of(scale).code


def test_asserts_return_a_code_with_a_message():
    @T.prim_func
    def checked(A: T.Buffer((4,), "int32"), n: T.int32):
        with T.Assert(n > 3, 'n is "small" */ 50% ??/'):
            A[0] = n

    source = source_of(checked)
    assert source.errors == {1: ("AssertionFailed", 'assertion failed: n is "small" */ 50% ??/')}
    assert 'case 1: return "assertion failed: n is \\"small\\" */ 50% \\?\\?/";' in source.code
    assert " *   1  assertion failed: n is" in source.header
    assert source.header.count("*/") == source.header.count("/*")


def test_large_memory_is_mallocs_and_freed_on_every_way_out():
    @T.prim_func
    def big(A: T.Buffer((5000,)), n: T.int32):
        C = T.alloc_buffer((5000,))
        for i in range(5000):
            C[i] = A[i] + 1.0
        with T.Assert(n > 0, "n"):
            for i in range(5000):
                A[i] = C[4999 - i]

    body = body_of(source_of(big).code, "big")
    assert "float *const C = (float *)lw_allocate(5000, sizeof *C);" in body
    assert body.count("free(C);") == 2
    assert source_of(big).errors[1] == ("WorkspaceExhausted", "no memory for the intermediate buffer C")


def test_calls_of_c_functions():
    @T.prim_func
    def calls(A: T.Buffer((8,)), out: T.Buffer((1,), "int32")):
        out[0] = T.call_extern("int32", "mine", A.data, "text é", T.int8(3)) + T.call_extern("int32", "other")
        for i in range(8):
            A[i] = T.call_pure_extern("float32", "cosf", A[i])

    code = source_of(calls).code
    assert "int32_t mine(void *, const char *, int8_t);" in code
    assert "int32_t other(void);" in code
    assert code.index("mine((void *)A") < code.index("other()")
    assert r'"text \303\251"' in code
    assert "float cosf" not in code


def test_functions_without_a_body_are_the_c_librarys():
    A, n, B = ir.decl_buffer((1,), "float64", "A"), ir.Var("n", "int64"), ir.decl_buffer((3,), "float64", "B")
    values = [intrinsics.fmod(A[0], A[0]), intrinsics.ldexp(A[0], n), intrinsics.sin(A[0])]
    stores = [ir.BufferStore(B, value, [k]) for k, value in enumerate(values)]
    code = source_of(ir.PrimFunc([A, n, B], ir.seq(stores)).with_attr("global_symbol", "f")).code
    body = body_of(code, "f")
    assert "B[0] = fmod(A[0], A[0]);" in body
    assert "B[1] = ldexp(A[0], (int32_t)n);" in body
    assert re.search(r"\bsin\(x\)", code)  # of large arguments, within a body


def test_addresses_and_hints():
    @T.prim_func
    def f(A: T.Buffer((8,)), B: T.Buffer((8,)), n: T.int32):
        T.evaluate(T.start_profile_intrinsic(1))
        T.evaluate(T.call_extern("int32", "mine", T.address_of(A[n + 1])))
        if T.isnullptr(B.data):
            A[0] = T.float32(1)
        T.evaluate(T.call_extern("int32", "other", T.reinterpret("handle", T.uint64(4096))))
        B[0] = T.undef(dtype="float32")
        T.evaluate(T.end_profile_intrinsic(1))

    code = source_of(f).code
    assert "&A[" in code and "mine((void *)" in code
    assert "if (B == NULL) {" in code and "#include <stddef.h>" in code
    assert re.search(r"other\(.*\(void \*\).*4096", code)
    assert "profile" not in code


def test_what_c_has_no_words_for():
    X, B = ir.decl_buffer((4,), "int16", "X"), ir.decl_buffer((1,), "int16", "B")
    product = intrinsics.call_intrin("int16", "tir.q_multiply_shift", X[0], X[1], ir.const(7), ir.const(0))
    narrow = ir.PrimFunc([X, B], ir.BufferStore(B, product, [0])).with_attr("global_symbol", "f")
    with pytest.raises(NotBuilt, match=r"tir\.q_multiply_shift on int16 in C is not built yet"):
        emit_c(lower(narrow, PLAIN))

    @T.prim_func
    def packed(n: T.int32):
        T.evaluate(T.call_packed("my.function", n))

    with pytest.raises(NotBuilt, match="calling a packed function from generated code") as caught:
        emit_c(lower(packed, PLAIN))
    assert caught.value.hint == "call_extern a C function instead"

    @T.prim_func
    def warps(A: T.Buffer((4,), "uint32")):
        A[0] = T.call_intrin("uint32", "tir.tvm_warp_activemask")

    with pytest.raises(NotBuilt, match=r"the intrinsic tir\.tvm_warp_activemask on the c target is not built yet"):
        emit_c(lower(warps, PLAIN))


def test_functions_call_each_other():
    @T.prim_func
    def square(x: T.float32):
        T.func_attr({"global_symbol": "square"})
        T.evaluate(T.ret(x * x))

    module = ir.IRModule.from_expr(square)
    A = ir.decl_buffer((1,), name="A")
    call = ir.Call(ir.DataType("float32"), module.get_global_var("square"), (ir.BufferLoad(A, [0]),))
    module["caller"] = ir.PrimFunc([A], ir.BufferStore(A, call, [0])).with_attr("global_symbol", "caller")
    code = emit_c(lower(module, PLAIN)).code
    assert "const int32_t status = square(A[0], &answer);" in code.replace("t, ", "A[0], ")


def test_constants_and_small_types():
    import numpy as np

    data, B = ir.Var("table", ir.PointerType(ir.PrimType("float16"))), ir.decl_buffer((3,), "float16", "B")
    table = ir.decl_buffer((3,), "float16", "table", data=data)
    i = ir.Var("i")
    loop = ir.For(i, 0, 3, ir.ForKind.SERIAL, ir.BufferStore(B, ir.BufferLoad(table, [i]) * 2, [i]))
    body = ir.AllocateConst(data, ir.DataType("float16"), (ir.const(3),), np.array([1, -2, 0.5], "float16"), loop)
    code = source_of(ir.PrimFunc([B], body).with_attr("global_symbol", "f")).code
    assert "static const uint16_t table[3] = {\n    0x3c00, 0xc000, 0x3800,\n};" in code
    assert "B[i] = lw_encode_f16(lw_decode_f16(table[i]) * 2.0f);" in code


def test_memory_used_as_two_types():
    data, A = ir.Var("memory", ir.PointerType(ir.PrimType("float32"))), ir.decl_buffer((4,), "int32", "A")
    floats = ir.decl_buffer((4,), "float32", "floats", data=data)
    ints = ir.decl_buffer((4,), "int32", "ints", data=data)
    body = ir.seq([ir.BufferStore(floats, ir.const(1.5), [0]), ir.BufferStore(A, ir.BufferLoad(ints, [0]), [0])])
    body = ir.Allocate(data, ir.DataType("float32"), (ir.const(4),), ir.const(True), body)
    code = source_of(ir.PrimFunc([A], body).with_attr("global_symbol", "f")).code
    assert "lw_store_float(memory, 0, 1.5f);" in code
    assert "A[0] = lw_load_int32(memory, 0);" in code


def test_results_of_two_types():
    @T.prim_func
    def two(n: T.int32):
        if n > 0:
            T.evaluate(T.ret(n))
        T.evaluate(T.ret(T.float32(0.5)))

    with pytest.raises(ResultsDiffer, match="two returns values of types int32 and float32, and in C a result has one"):
        emit_c(lower(two, PLAIN))


def test_deep_nesting_stays_flat_enough_for_every_compiler():
    A, B, i = ir.decl_buffer((4,), "int32", "A"), ir.decl_buffer((4,), "int32", "B"), ir.Var("i")
    expr: ir.Expr = ir.BufferLoad(A, [i])
    for level in range(1000):
        expr = ir.Sub(ir.const(level), ir.Max(expr, ir.const(1)))
    function = ir.PrimFunc([A, B], ir.For(i, 0, 4, ir.ForKind.SERIAL, ir.BufferStore(B, expr, [i])))
    code = source_of(function.with_attr("global_symbol", "f")).code
    depth = deepest = 0
    for letter in code:
        depth += (letter == "(") - (letter == ")")
        deepest = max(deepest, depth)
    assert deepest < 32
