from __future__ import annotations

import pytest

import loopwright as lw
from loopwright import driver, support, te
from loopwright.compat import ffi_base
from loopwright.driver import build_module
from loopwright.ir import decl_buffer


def test_build_and_lower_are_the_same_everywhere():
    assert driver.build is lw.build is build_module.build
    assert driver.lower is lw.lower is build_module.lower
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        driver.nonsense


def test_get_binds():
    n = te.var("n")
    A, B = te.placeholder((n, 3), "float16", name="A"), te.placeholder((4,), name="B")
    mine = decl_buffer((4,), "float32", "mine")
    bound, parameters = build_module.get_binds([A, n, B, mine], binds={B: mine})
    assert parameters[1] is n and parameters[2] is parameters[3] is mine
    buffer = parameters[0]
    assert bound == {A: buffer, B: mine}
    assert (buffer.name, str(buffer.dtype), buffer.shape[0]) == ("A", "float16", n)
    assert build_module.get_binds([]) == ({}, [])
    with pytest.raises(build_module.BadParameter, match="argument number 2 is an int, which cannot be a parameter"):
        build_module.get_binds([A, 3])


def test_a_te_schedule_as_a_module():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1, name="B")
    s = te.create_schedule(B.op)
    s[B].split(B.op.axis[0], factor=2)
    module = build_module.schedule_to_module(s, [A, B], "plus_one")
    assert "for i_outer, i_inner in T.grid(2, 2)" in module["plus_one"].script()


def test_what_is_built_in(capsys):
    info = support.libinfo()
    assert info["USE_LLVM"] == "ON" and info["USE_CUDA"] == "OFF"
    assert int(info["LLVM_VERSION"].split(".")[0]) >= 14
    support.describe()
    assert "USE_LLVM: ON" in capsys.readouterr().out


def test_the_peers_base():
    assert isinstance("a", ffi_base.string_types) and isinstance(1, ffi_base.integer_types)
    assert isinstance(1.5, ffi_base.numeric_types) and not isinstance("a", ffi_base.numeric_types)
    assert ffi_base.py_str(b"abc") == "abc"
    assert ffi_base.DataTypeCode.FLOAT == lw.DataType("float32").type_code
    assert all([path.endswith("include") for path in ffi_base.find_include_path()])
    assert all([path.endswith((".so", ".dylib")) for path in ffi_base.find_lib_path()])
