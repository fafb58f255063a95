"""A library calls its own functions, whatever they are named and whatever else the process has loaded."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import loopwright as lw
from loopwright.runtime import load_module
from loopwright.script import from_source

TARGETS = ["c", "llvm"]
# Of libc, of the runtime, of C and its headers; and one of no one.
NAMES = (
    "plain stdout environ dlopen pthread_create typeof TVMFFIErrorSetRaised TVMFFIErrorSetRaisedFromCStr getaddrinfo "
    "set_error last_error loopwright_set_error snprintf mmap thread_local sigmoid signal errno lw_workspace_alloc"
).split()


def adding(name: str, amount: int) -> str:
    return f"""
    @T.prim_func
    def {name}(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i] + T.float32({amount})
"""


CALLER = """
    @T.prim_func
    def caller(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        M.own_callee(A.data, B.data)
"""


def module_of(*functions: str) -> lw.IRModule:
    return from_source("@I.ir_module\nclass M:" + "".join(functions))


def found_by(module, name: str) -> float:
    a, b = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    module[name](a, b)
    difference = b - a
    assert (difference == difference[0]).all()
    return float(difference[0])


@pytest.mark.one_in(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_a_function_may_have_any_name(name, target, tmp_path):
    built = lw.build(module_of(adding(name, 3)), target=target)
    assert found_by(built, name) == 3
    assert found_by(load_module(built.export_library(tmp_path / "library.so")), name) == 3


@pytest.mark.parametrize("target", TARGETS)
def test_a_library_calls_none_of_another_that_was_loaded_for_all(target, tmp_path):
    def exported(amount: int) -> str:
        built = lw.build(module_of(adding("own_callee", amount), CALLER), target=target)
        assert found_by(built, "caller") == amount
        return str(built.export_library(tmp_path / f"library{amount}.so"))

    ctypes.CDLL(exported(3), mode=ctypes.RTLD_GLOBAL)
    loaded = load_module(exported(7))
    assert found_by(loaded, "own_callee") == 7
    assert found_by(loaded, "caller") == 7


def test_the_functions_of_a_library_are_offered_to_others(tmp_path):
    built = lw.build(module_of(adding("offered_function", 2)), target="c")
    library = ctypes.CDLL(str(built.export_library(tmp_path / "library.so")))
    a, b = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    pointers = [array.ctypes.data_as(ctypes.POINTER(ctypes.c_float)) for array in (a, b)]
    assert library.offered_function(*pointers) == 0
    np.testing.assert_array_equal(b, a + 2)
