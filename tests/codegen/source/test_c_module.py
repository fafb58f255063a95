"""Modules for target "c": built, called, refused; the messages are those of native code."""

from __future__ import annotations

import stat
from shutil import which

import numpy as np
import pytest

import loopwright as lw
from loopwright.codegen.llvm.load_object import CodeNotForHost, MissingSymbols
from loopwright.codegen.source.c.errors import CompilerFailed, NoCCompiler
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.module import MissingSource
from loopwright.script import tir as T
from tests.transform.before_after import arguments
from tests.transform.test_pipeline import PROGRAMS

pytestmark = pytest.mark.skipif(not (which("cc") or which("gcc") or which("clang")), reason="there is no C compiler")


@T.prim_func
def add(A: T.Buffer((4, 8)), B: T.Buffer((4, 8)), n: T.int8):
    for i, j in T.grid(4, 8):
        B[i, j] = A[i, j] + T.Cast("float32", n)


def test_build_and_call():
    module = lw.build(add, target="c")
    assert module.type_key == "c"
    assert module.format == "c"
    assert module.get_source() == module.get_source("c")
    assert "int32_t add(const float *restrict A" in module.get_source("c")
    assert "int32_t add(const float *A, float *B, int8_t n);" in module.get_source("h")
    with pytest.raises(MissingSource, match="it can show c, h"):
        module.get_source("asm")
    assert "C compiler" not in module.timings
    a, b = np.ones((4, 8), "float32"), np.zeros((4, 8), "float32")
    module["add"](a, b, -3)
    assert (b == -2).all()
    assert module.timings["C compiler"] > 0


@pytest.mark.parametrize(
    "arguments",
    [
        (np.ones((4, 8), "float32"), np.zeros((4, 7), "float32"), 1),
        (np.ones((4, 8), "float64"), np.zeros((4, 8), "float32"), 1),
        (np.ones((4, 8, 1), "float32"), np.zeros((4, 8), "float32"), 1),
        (np.ones((8, 4), "float32").T, np.zeros((4, 8), "float32"), 1),
        (np.ones((4, 8), "float32"), np.zeros((4, 8), "float32"), 200),
        (np.ones((4, 8), "float32"), np.zeros((4, 8), "float32")),
        (1, 2, 3),
    ],
    ids=["shape", "dtype", "rank", "strides", "range", "count", "kind"],
)
def test_the_messages_are_those_of_native_code(arguments):
    problems = []
    for target in ("c", "llvm"):
        with pytest.raises(LoopwrightError) as problem:
            lw.build(add, target=target)(*arguments)
        problems.append((type(problem.value), str(problem.value).splitlines()[0]))
    assert problems[0] == problems[1]


@T.prim_func
def results(n: T.int32, x: T.float32, h: T.float16, b: T.bool, s: T.int8, u: T.uint16):
    if b:
        T.evaluate(T.ret(T.Cast("float32", n) * x + T.Cast("float32", h) + T.Cast("float32", s) + T.Cast("float32", u)))
    T.evaluate(T.ret(T.float32(-1)))


@pytest.mark.parametrize("b", [True, False])
def test_scalars_of_all_kinds_in_and_out(b):
    arguments = (3, 2.5, 0.5, b, -7, 65535)
    assert lw.build(results, target="c")(*arguments) == lw.build(results)(*arguments)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "uint64", "float16", "bfloat16", "float64"])
def test_results_of_each_type(dtype):
    @T.prim_func
    def one(A: T.Buffer((1,), dtype)):
        T.evaluate(T.ret(A[0]))

    array = np.array([1], lw.DataType(dtype).numpy())
    got = lw.build(one, target="c")(lw.nd.array(array))
    assert got == 1
    assert type(got) is type(lw.build(one)(lw.nd.array(array)))


def test_a_result_that_is_too_large():
    @T.prim_func
    def one(A: T.Buffer((1,), "uint64")):
        T.evaluate(T.ret(A[0]))

    with pytest.raises(LoopwrightError, match=r"the result is 2\^63 or more"):
        lw.build(one, target="c")(np.array([2**63], "uint64"))


def test_asserts_and_memory_are_errors_of_their_own():
    @T.prim_func
    def checked(A: T.Buffer((4,), "int32"), n: T.int64):
        with T.Assert(n > 3, "n is small"):
            C = T.allocate([n], "int32", "global")
            C_1 = T.Buffer((n,), "int32", data=C)
            C_1[0] = 7
            A[0] = C_1[0]

    module = lw.build(checked, target="c")
    a = np.zeros(4, "int32")
    module(a, 5)
    assert a[0] == 7
    with pytest.raises(LoopwrightError, match="assertion failed: n is small") as problem:
        module(a, 3)
    assert type(problem.value).__name__ == "AssertionFailed"
    with pytest.raises(LoopwrightError, match="no memory for the intermediate buffer C") as problem:
        module(a, 2**62)
    assert type(problem.value).__name__ == "WorkspaceExhausted"


def test_without_a_compiler_the_source_can_be_read(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    module = lw.build(add, target="c")
    assert "int32_t add(" in module.get_source("c")
    with pytest.raises(NoCCompiler, match=r"looked for no-such-compiler .CC of the environment"):
        module(np.ones((4, 8), "float32"), np.zeros((4, 8), "float32"), 1)
    monkeypatch.setenv("CC", "")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NoCCompiler, match="looked for cc, gcc, clang, CC of the environment") as problem:
        module(np.ones((4, 8), "float32"), np.zeros((4, 8), "float32"), 1)
    assert "install gcc or clang" in str(problem.value)


def test_a_compiler_that_fails(monkeypatch, tmp_path):
    script = tmp_path / "badcc"
    script.write_text("#!/bin/sh\necho no licence >&2\nexit 1\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CC", str(script))
    with pytest.raises(CompilerFailed, match="badcc failed: no licence"):
        lw.build(add, target="c")(np.ones((4, 8), "float32"), np.zeros((4, 8), "float32"), 1)


def test_a_library_is_compiled_once(monkeypatch, tmp_path):
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path))
    arguments = np.ones((4, 8), "float32"), np.zeros((4, 8), "float32"), 1
    lw.build(add, target="c")(*arguments)
    (library,) = tmp_path.glob("c-*.so")
    made = library.stat().st_mtime_ns
    lw.build(add, target="c")(*arguments)
    assert library.stat().st_mtime_ns == made
    damaged = tmp_path / "damaged"
    damaged.write_bytes(library.read_bytes()[:100])  # a disk that was full
    damaged.replace(library)  # a new file: the old one is mapped into this process
    lw.build(add, target="c")(*arguments)
    assert len(library.read_bytes()) > 1000


def test_code_for_another_machine_is_not_called():
    module = lw.build(add, target="c -mtriple=arm-linux-gnueabihf")
    assert "int64_t" not in module.get_source("c")
    with pytest.raises(CodeNotForHost, match="cannot run here"):
        module(np.ones((4, 8), "float32"), np.zeros((4, 8), "float32"), 1)


def test_a_function_that_nobody_has():
    @T.prim_func
    def f(A: T.Buffer((4,))):
        A[0] = T.call_extern("float32", "a_c_function_that_is_nowhere")

    with pytest.raises(MissingSymbols, match="needs a_c_function_that_is_nowhere"):
        lw.build(f, target="c")(np.zeros(4, "float32"))


def test_functions_of_one_module():
    @T.prim_func
    def first(A: T.Buffer((2,))):
        T.func_attr({"global_symbol": "first"})
        A[0] = 1.0

    @T.prim_func
    def second(A: T.Buffer((2,))):
        T.func_attr({"global_symbol": "second"})
        A[1] = 2.0

    module = lw.build([first, second], target="c")
    a = np.zeros(2, "float32")
    module["second"](a)
    module["first"](a)
    assert a.tolist() == [1, 2]
    assert "int32_t first(" in module.get_source("h")
    assert "int32_t second(" in module.get_source("h")


def test_constants_of_one_name_in_two_functions():
    @T.prim_func
    def first(A: T.Buffer((2,))):
        T.func_attr({"global_symbol": "first"})
        K = T.allocate_const([1.0, 2.0], "float32", [2])
        Kb = T.Buffer((2,), data=K)
        for i in range(2):
            A[i] = Kb[i]

    @T.prim_func
    def second(A: T.Buffer((2,))):
        T.func_attr({"global_symbol": "second"})
        K = T.allocate_const([5.0, 6.0], "float32", [2])
        Kb = T.Buffer((2,), data=K)
        for i in range(2):
            A[i] = Kb[i]

    module = lw.build([first, second], target="c")
    a, b = np.zeros(2, "float32"), np.zeros(2, "float32")
    module["first"](a)
    module["second"](b)
    assert a.tolist() == [1, 2] and b.tolist() == [5, 6]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("func", PROGRAMS, ids=lambda func: func.name)
def test_scheduled_programs_give_the_bits_of_native_code(func):
    given = [arguments(func), arguments(func)]
    lw.build(func, target="c")(*given[0])
    lw.build(func, target="llvm")(*given[1])
    for a, b in zip(*given, strict=True):
        np.testing.assert_array_equal(a, b)
