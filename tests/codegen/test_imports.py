"""The pragma import_llvm: LLVM code of the user's own, whose functions call_extern finds."""

import llvmlite.binding as llvm
import numpy as np
import pytest

import loopwright
from loopwright import te, tir
from loopwright.codegen.build_key import build_key
from loopwright.codegen.llvm.imports import CannotImport
from loopwright.ir.annotations import IMPORTS
from loopwright.script import tir as T
from loopwright.target import Target

TWICE = """
define float @twice(float %x) #0 {
  %y = fadd float %x, %x
  ret float %y
}
attributes #0 = { noinline nounwind optnone }
"""


def schedule(*imports, result="float32", name="twice"):
    A = te.placeholder((4, 2), name="A")
    B = te.compute((4, 2), lambda i, j: tir.call_extern(result, name, A[i, j]).astype("float32"), name="B")
    s = te.create_schedule(B.op)
    for axis, text in zip(B.op.axis, imports, strict=False):
        s[B].pragma(axis, "import_llvm", text)
    return s, [A, B]


def run(s, args):
    built = loopwright.build(s, args)
    a, b = np.arange(8, dtype="float32").reshape(4, 2), np.zeros((4, 2), "float32")
    built(a, b)
    np.testing.assert_array_equal(b, 2 * a)
    return built


@pytest.mark.optimized
def test_an_imported_function_is_the_modules_own():
    built = run(*schedule(TWICE))
    assert "define internal float @twice" in built.get_source("llvm")
    assert "call float @twice" not in built.get_source("ll")  # inlined, whatever the text asks of a debugger


def test_lowering_keeps_the_text_when_the_loop_goes():
    @T.prim_func
    def once(A: T.Buffer((1,), "float32")):
        for i in T.serial(1, annotations={"pragma_import_llvm": TWICE}):
            with T.attr(0, "pragma_import_llvm", TWICE):
                A[i] = T.call_extern("float32", "twice", A[i])

    ((_, lowered),) = loopwright.lower(once).functions_items()
    assert list(lowered.attrs[IMPORTS]) == [TWICE] and "pragma" not in str(lowered)


def test_two_pragmas_may_define_a_function_alike_only():
    more = TWICE.replace("#0", "#1").replace("attributes", "@unused = global i32 3\nattributes")
    run(*schedule(TWICE, more))
    with pytest.raises(CannotImport, match="twice is defined twice, and not alike"):
        loopwright.build(*schedule(TWICE, TWICE.replace("fadd", "fsub")))


def test_flags_that_exclude_one_another():
    first, second = ['!llvm.module.flags = !{!0}\n!0 = !{i32 1, !"mode", i32 ' + value + "}" for value in "12"]
    with pytest.raises(CannotImport, match="LLVM cannot link the code"):
        loopwright.build(*schedule(TWICE + first, second))


def test_files_are_read_when_built(tmp_path):
    module = llvm.parse_assembly(TWICE)
    (tmp_path / "f.ll").write_text(TWICE)
    (tmp_path / "f.bc").write_bytes(module.as_bitcode())
    run(*schedule(str(tmp_path / "f.ll")))
    run(*schedule(str(tmp_path / "f.bc")))


def test_the_key_of_a_build_knows_what_a_file_holds(tmp_path):
    file = tmp_path / "f.ll"
    named = tir.StringImm(str(file))

    def key(content):
        file.write_text(content)
        program = tir.PrimFunc([], tir.AttrStmt(tir.const(0), "pragma_import_llvm", named, tir.Evaluate(0)))
        return build_key(loopwright.IRModule.from_expr(program), Target("llvm"), lambda name: None)

    assert key(TWICE) == key(TWICE) != key(TWICE + ";")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not LLVM", r"LLVM \d+ does not read the code: expected top-level entity"),
        ("define float @twice(float %x) {\n  ret i32 0\n}", "does not read the code: value doesn't match"),
        ("/nowhere/twice.ll", "the file /nowhere/twice.ll cannot be read"),
        (TWICE.replace("float", "double"), r"twice is defined as double \(double\), and call_extern calls it as float"),
        ('target triple = "riscv64-unknown-linux-gnu"' + TWICE, "the code is for riscv64"),
        (TWICE + "define void @__tvm_ffi_main() {\n  ret void\n}", "__tvm_ffi_main is also a name"),
        (TWICE + "@llvm.global_ctors = appending global [0 x { i32, ptr, ptr }] []", "has constructors"),
        (3, "3 is no text"),
    ],
)
def test_what_cannot_be_imported_says_why(text, message):
    with pytest.raises(CannotImport, match=message):
        loopwright.build(*schedule(text))


def test_c_source_has_no_place_for_it():
    with pytest.raises(NotImplementedError, match="the pragma import_llvm for C source is not built yet"):
        loopwright.build(*schedule(TWICE), target="c")
