from __future__ import annotations

import ctypes
import gc
import re
import sys

import numpy as np
import pytest

from loopwright.codegen.llvm.engine import compile_text
from loopwright.codegen.llvm.known_names import UnknownMachineName
from loopwright.codegen.llvm.load_object import (
    CodeNotForHost,
    MissingSymbols,
    SymbolNotDefined,
    load,
    load_object,
    process_address,
)
from loopwright.runtime.errors import InternalError
from loopwright.target import Target, describe, host_description

pytestmark = pytest.mark.optimized

HOST = Target("llvm")

ADD = """
define void @add(ptr noalias %a, ptr noalias %b, ptr noalias %c, i64 %n) {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %exit
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %pa = getelementptr float, ptr %a, i64 %i
  %pb = getelementptr float, ptr %b, i64 %i
  %pc = getelementptr float, ptr %c, i64 %i
  %x = load float, ptr %pa
  %y = load float, ptr %pb
  %z = fadd float %x, %y
  store float %z, ptr %pc
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
"""

CALLS_EXTERN = """
declare i64 @lw_test_extern(i64)
define i64 @twice(i64 %x) {
  %y = call i64 @lw_test_extern(i64 %x)
  %z = call i64 @lw_test_extern(i64 %y)
  ret i64 %z
}
"""


def run_add(address: int, n: int) -> None:
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address)
    a = np.arange(n, dtype="float32")
    b = np.full(n, 0.5, dtype="float32")
    c = np.zeros(n + 1, dtype="float32")
    function(a.ctypes.data, b.ctypes.data, c.ctypes.data, n)
    np.testing.assert_array_equal(c[:n], a + b)
    assert c[n] == 0


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_adds_two_vectors(opt_level):
    loaded = load(compile_text(ADD, HOST, opt_level))
    for n in (0, 1, 7, 8, 9, 63, 64, 65, 1009):
        run_add(loaded.address("add"), n)


def test_stages_are_timed():
    assert set(compile_text(ADD, HOST).timings) == {"parse", "optimize", "emit"}


def test_assembly_uses_vectors_of_the_described_width():
    register = {
        "x86_64": {128: "xmm", 256: "ymm", 512: "zmm"},
        "aarch64": {128: r"v\d+\.4s|\bq\d+"},
    }
    cpu = host_description()
    names = register.get(cpu.triple.partition("-")[0])
    if names is None:
        pytest.skip(f"no register names for {cpu.triple}")
    assert re.search(names[cpu.vector_bits], compile_text(ADD, HOST).asm())


@pytest.mark.parametrize(
    ("spec", "instruction"),
    [
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64", r"addps.*%xmm"),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=core-avx2", r"vaddps.*%ymm"),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids", r"vaddps.*%zmm"),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -vector-width=256", r"vaddps.*%ymm"),
        ("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1", r"fadd\s+v\d+\.4s"),
        ("llvm -mtriple=riscv64-linux-gnu -mattr=+d,+v -mabi=lp64d", r"vfadd\.vv"),
    ],
)
def test_cross_compiles_for(spec, instruction):
    asm = compile_text(ADD, Target(spec)).asm()
    assert re.search(instruction, asm)
    if "-vector-width=256" in spec:
        assert "zmm" not in asm


def test_optimized_text_and_assembly_leave_the_object_as_it_was():
    compiled = compile_text(ADD, HOST)
    before = compiled.object_bytes
    assert "x float>" in compiled.optimized_ll()
    assert "add:" in compiled.asm()
    assert compile_text(ADD, HOST).object_bytes == before == compiled.object_bytes


def test_float_addition_is_not_reassociated_or_contracted():
    text = """
    define float @f(float %a, float %b, float %c) {
      %m = fmul float %a, %b
      %s = fadd float %m, %c
      ret float %s
    }
    """
    assert "fma" not in compile_text(text, HOST).asm()


def test_externals_come_from_the_given_symbols():
    callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: 3 * x + 1)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    loaded = load(compile_text(CALLS_EXTERN, HOST), {"lw_test_extern": address})
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(loaded.address("twice"))(2) == 22


def test_missing_externals_are_named_before_linking():
    text = (
        CALLS_EXTERN + "declare void @lw_test_other()\ndefine void @g() {\n call void @lw_test_other()\n ret void\n}\n"
    )
    with pytest.raises(MissingSymbols, match="needs lw_test_extern, lw_test_other, which neither"):
        load(compile_text(text, HOST))


def test_externals_that_the_optimizer_introduces_come_from_the_c_library():
    text = """
    define void @zero(ptr %p, i64 %n) {
    entry:
      br label %loop
    loop:
      %i = phi i64 [ 0, %entry ], [ %next, %loop ]
      %q = getelementptr i8, ptr %p, i64 %i
      store i8 0, ptr %q
      %next = add i64 %i, 1
      %more = icmp ult i64 %next, %n
      br i1 %more, label %loop, label %exit
    exit:
      ret void
    }
    declare double @cos(double)
    define double @cosine(double %x) {
      %y = call double @cos(double %x)
      ret double %y
    }
    """
    compiled = compile_text(text, HOST)
    assert compiled.symbols.needed == {"memset", "cos"}
    loaded = load(compiled)
    data = np.ones(10, dtype="uint8")
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(loaded.address("zero"))(data.ctypes.data, 9)
    assert data.tolist() == [0] * 9 + [1]
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(loaded.address("cosine"))(0.0) == 1.0


def test_a_weak_external_may_be_missing():
    text = """
    declare extern_weak i64 @lw_test_weak()
    define i64 @f() {
      %has = icmp ne ptr @lw_test_weak, null
      br i1 %has, label %yes, label %no
    yes:
      %v = call i64 @lw_test_weak()
      ret i64 %v
    no:
      ret i64 -1
    }
    """
    compiled = compile_text(text, HOST)
    assert compiled.symbols.needed_weakly == {"lw_test_weak"}
    function = ctypes.CFUNCTYPE(ctypes.c_int64)
    loaded = load(compiled)
    assert function(loaded.address("f"))() == -1
    callback = function(lambda: 5)
    given = load(compiled, {"lw_test_weak": ctypes.cast(callback, ctypes.c_void_p).value})
    assert function(given.address("f"))() == 5


def test_constants_and_writable_data_are_placed():
    text = """
    @table = private constant [4 x i32] [i32 3, i32 1, i32 4, i32 1]
    @count = global i32 0
    define i32 @next() {
      %k = load i32, ptr @count
      %k1 = add i32 %k, 1
      store i32 %k1, ptr @count
      %p = getelementptr i32, ptr @table, i32 %k
      %v = load i32, ptr %p
      ret i32 %v
    }
    """
    loaded = load(compile_text(text, HOST))
    function = ctypes.CFUNCTYPE(ctypes.c_int32)(loaded.address("next"))
    assert [function() for _ in range(4)] == [3, 1, 4, 1]
    assert ctypes.c_int32.from_address(loaded.address("count")).value == 4


def test_the_same_object_loads_twice():
    compiled = compile_text(ADD, HOST)
    first, second = load(compiled), load_object(compiled.object_bytes)
    assert first.address("add") != second.address("add")
    run_add(first.address("add"), 100)
    run_add(second.address("add"), 100)


def test_code_outlives_everything_but_loaded():
    loaded = load(compile_text(ADD, HOST))
    for _ in range(3):  # a collection looks at all that the process holds
        load(compile_text(ADD, HOST))
        gc.collect()
    run_add(loaded.address("add"), 100)


def test_an_undefined_name_lists_the_defined_ones():
    loaded = load(compile_text(ADD, HOST))
    with pytest.raises(SymbolNotDefined, match="does not define 'sub'") as caught:
        loaded.address("sub")
    assert "it defines add" in str(caught.value)


def test_a_syntax_error_shows_the_line():
    text = "define i32 @f() {\n  %x = add i32 1, %y\n  ret i32 %x\n}\n"
    with pytest.raises(InternalError, match="use of undefined value '%y'") as caught:
        compile_text(text, HOST)
    assert "  > " + "  %x = add i32 1, %y" in str(caught.value)
    assert caught.value.fields["line"] == 2


def test_a_verifier_error_shows_the_line():
    text = """
    define void @f(i1 %c) {
      br i1 %c, label %a, label %b
    a:
      %x = add i32 1, 2
      br label %b
    b:
      %y = add i32 %x, 1
      ret void
    }
    """
    with pytest.raises(InternalError, match="does not dominate all uses") as caught:
        compile_text(text, HOST)
    assert caught.value.fields["line"] == 5


def test_code_for_another_instruction_set_is_not_loaded():
    other = (
        "aarch64-linux-gnu" if not host_description().triple.startswith(("aarch64", "arm64")) else "x86_64-linux-gnu"
    )
    compiled = compile_text(ADD, Target(f"llvm -mtriple={other}"))
    assert compiled.symbols.defined == {"add"}
    with pytest.raises(CodeNotForHost, match="cannot run here: this machine is"):
        load(compiled)


@pytest.mark.skipif(not host_description().triple.startswith("x86_64"), reason="names an x86 feature")
def test_code_with_instructions_the_host_lacks_is_not_loaded():
    assert "fma4" not in host_description().features
    with pytest.raises(CodeNotForHost, match="lacks fma4"):
        load(compile_text(ADD, Target("llvm -mcpu=x86-64 -mattr=+fma4")))


def test_a_baseline_build_runs_on_the_host():
    if describe("llvm").triple.startswith("x86_64"):
        loaded = load(compile_text(ADD, Target("llvm -mcpu=x86-64")))
        run_add(loaded.address("add"), 33)


def test_an_unknown_triple_is_refused():
    with pytest.raises(ValueError, match="LLVM has no backend for the triple 'pdp11-dec-unix'"):
        compile_text(ADD, Target("llvm -mtriple=pdp11-dec-unix"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc")
def test_process_address_finds_libc_and_nothing_else():
    assert process_address("memcpy")
    assert process_address("lw_no_such_function") is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-mtriple=x86_64-linux-gnu -mattr=+avx512nonsense", r"LLVM does not know the feature \+avx512nonsense"),
        ("-mtriple=riscv64-linux-gnu -mcpu=nonsense", "LLVM does not know the CPU nonsense"),
    ],
)
def test_names_that_llvm_would_ignore_are_refused(options, message, capfd):
    with pytest.raises(UnknownMachineName, match=message):
        compile_text(ADD, Target(f"llvm {options}"))
    assert capfd.readouterr().err == ""


def test_names_outside_our_tables_that_llvm_knows_are_taken():
    assert "add:" in compile_text(ADD, Target("llvm -mtriple=riscv64-linux-gnu -mcpu=sifive-u74 -mabi=lp64d")).asm()
