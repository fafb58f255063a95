"""call_extern: C functions by registered address, from a loaded library, linked into an export; and missing ones."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import loopwright
from loopwright import nd
from loopwright.codegen.llvm.load_object import MissingSymbols
from loopwright.runtime import load_extern_library, load_module, load_static_library, register_extern
from loopwright.runtime.externs import BadExtern
from loopwright.runtime.load import LibraryNotLoadable
from loopwright.script import tir as T

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def calling(symbol: str) -> loopwright.ir.PrimFunc:
    @T.prim_func
    def main(A: T.Buffer((3,), "float32")):
        for i in range(3):
            A[i] = T.call_extern("float32", symbol, A[i], i)

    return main


def add(x: float, i: int) -> float:
    return x + 10 * i


ADD = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float, ctypes.c_int32)(add)


def check(function: object) -> None:
    a = np.array([1, 2, 3], "float32")
    function(a)
    assert a.tolist() == [1, 12, 23]


def c_library(tmp_path, name: str):
    source = tmp_path / f"{name}.c"
    source.write_text(f"#include <stdint.h>\nfloat {name}(float x, int32_t i) {{ return x + 10 * i; }}\n")
    return source


def test_functions_of_the_c_library_are_there():
    @T.prim_func
    def main(A: T.Buffer((1,), "float64")):
        A[0] = T.call_extern("float64", "scalbn", A[0], 3)

    a = np.array([3.0])
    loopwright.build(main)(a)
    assert a[0] == 24


@pytest.mark.parametrize("form", ["ctypes function", "address"])
def test_a_registered_function(form):
    address = ctypes.cast(ADD, ctypes.c_void_p).value
    register_extern("test_add_registered", ADD if form == "ctypes function" else address)
    check(loopwright.build(calling("test_add_registered")))


def test_buffers_pass_as_pointers():
    seen = []

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_float), ctypes.c_int64)
    def look(pointer, count):
        seen.extend(pointer[k] for k in range(count))
        return 0

    register_extern("test_look", look)

    @T.prim_func
    def main(A: T.Buffer((3,), "float32")):
        T.evaluate(T.call_extern("int32", "test_look", A.data, T.int64(3)))

    loopwright.build(main)(np.array([4, 5, 6], "float32"))
    assert seen == [4, 5, 6]


def test_a_missing_symbol_is_named_before_anything_is_linked():
    module = loopwright.build(calling("test_nowhere_a"))
    for call in (module, module["main"]):
        with pytest.raises(MissingSymbols, match="the compiled code needs test_nowhere_a, which neither"):
            call(nd.empty((3,)))
    register_extern("test_nowhere_a", ADD)
    check(module)  # found now; no need to build again


@pytest.mark.parametrize("value", [print, "text", 0, -5, None])
def test_what_is_no_c_function(value):
    with pytest.raises(BadExtern, match=r"register_extern\('f'\)"):
        register_extern("f", value)


def test_a_library_that_cannot_be_loaded():
    with pytest.raises(BadExtern, match="could not be loaded"):
        load_extern_library("/nowhere/libnothing.so")


@needs_cc
def test_a_loaded_library_serves_this_process_and_exported_modules(tmp_path):
    source = c_library(tmp_path, "test_add_loaded")
    library = tmp_path / "libadd.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    module = loopwright.build(calling("test_add_loaded"))
    exported = module.export_library(tmp_path / "module.so")
    with pytest.raises(LibraryNotLoadable, match="nothing defines test_add_loaded, which it needs"):
        load_module(exported)
    load_extern_library(library)
    check(module)
    check(load_module(exported))


@needs_cc
def test_a_function_linked_into_the_export(tmp_path):
    source = c_library(tmp_path, "test_add_linked")
    module = loopwright.build(calling("test_add_linked"))
    check(load_module(module.export_library(tmp_path / "with_source.so", addons=[str(source)])))
    subprocess.run(["cc", "-c", "-fPIC", "-o", tmp_path / "add.o", source], check=True)
    module.import_module(load_static_library(tmp_path / "add.o", ["test_add_linked"]))
    check(load_module(module.export_library(tmp_path / "with_import.so")))
    check(load_module(module.export_library(tmp_path / "with_import.tar")))
