from __future__ import annotations

import shutil
import subprocess

import pytest

import loopwright
from loopwright.runtime.c_header import c_header, element_type
from loopwright.runtime.description import Argument, FunctionDescription, ModuleDescription
from loopwright.runtime.dtype import DataType
from loopwright.script import tir as T

AWKWARD = ModuleDescription(
    (
        FunctionDescription(
            "odd */ name",
            "loopwright_odd____name",
            (
                Argument("int", "float32", ("n", "m + 1"), ("s", "1")),
                Argument("int", "float16", (), is_written=True),
                Argument("2nd", "e4m3_float8", ("4",)),
                Argument("x-y", "bfloat16"),
                Argument("p", "handle"),
                Argument("flag", "bool"),
                Argument("result", "uint8"),
            ),
            (Argument("n", "int64"), Argument("m", "int32"), Argument("s", "int64")),
            "float32",
        ),
        FunctionDescription("nothing", "loopwright_nothing", ()),
    ),
    version="1",
    triple="some-machine",
)


def test_awkward_names_and_types():
    text = c_header(AWKWARD, "my-lib 2")
    assert "#ifndef MY_LIB_2_H" in text
    assert (
        "int32_t loopwright_odd____name(const float *int_, uint16_t *int__1, const uint8_t *_2nd, float x_y, void *p, "
        "bool flag, uint8_t result_, int64_t n, int32_t m, int64_t s, double *result);" in text
    )
    assert "int32_t loopwright_nothing(void);" in text
    assert "odd * / name" in text
    assert "int: float32 (n, m + 1), strides (s, 1), read" in text


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("language", ["c", "c++"])
def test_compilers_take_it_as_it_is(tmp_path, language):
    (tmp_path / "a.h").write_text(c_header(AWKWARD))
    flags = ["-std=c99"] if language == "c" else []
    strict = ["cc", "-x", language, *flags, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
    if language == "c++" and shutil.which("c++") is None:
        pytest.skip("needs a C++ compiler")
    subprocess.run([*strict, tmp_path / "a.h"], check=True)


@pytest.mark.parametrize(
    ("dtype", "text"),
    [("int8", "int8_t"), ("uint64", "uint64_t"), ("bool", "bool"), ("float64", "double"), ("float16", "uint16_t"),
     ("bfloat16", "uint16_t"), ("e5m2_float8", "uint8_t"), ("float32x4", "float")],
)  # fmt: skip
def test_element_types(dtype, text):
    assert element_type(DataType(dtype)) == text


def test_every_module_has_a_header():
    @T.prim_func
    def main(A: T.Buffer((4,), "float32")):
        A[0] = T.float32(1)

    assert "int32_t loopwright_main(float *A);" in loopwright.build(main).get_source("h")
