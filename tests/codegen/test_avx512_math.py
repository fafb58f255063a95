"""Functions made of instructions of AVX-512, on any machine: C functions do what those are documented to do.

The code is that for a CPU with AVX-512, as it is before LLVM sees it: the rest of it is arithmetic as IEEE 754 has it,
the same on this machine. Where the instructions exist, they are tried too.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loopwright.codegen.describe_module import describe_module
from loopwright.codegen.llvm.emit_module import emit_module
from loopwright.codegen.llvm.engine import compile_text
from loopwright.codegen.llvm.native_module import native_module
from loopwright.codegen.math.avx512 import has_avx512
from loopwright.codegen.math.table import BODIES_AVX512
from loopwright.codegen.with_symbols import with_symbols
from loopwright.ir import intrinsics
from loopwright.runtime import register_extern
from loopwright.runtime.dtype import DataType
from loopwright.target import Target, describe
from loopwright.transform import lower
from tools.sweep_math import kernel, on_arrays, program

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

AVX512 = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512")
INF, NAN = float("inf"), float("nan")
EDGES = [0.0, 2**-0.5, 0.75, 2**0.5, 1.5, 6.0, 87.33, 88.72, 103.97, 104.0, 708.4, 709.78, 745.13, 746.0]
BITS: dict[str, Any] = {"float32": np.uint32, "float64": np.uint64}

# What each instruction does in a lane: VGETEXP, VGETMANT (imm8: interval, sign) and VSCALEF, in float and in double.
# The lanes of `out` that are off keep what they have.
INSTRUCTIONS = r"""
#include <stdint.h>
#include <string.h>
#include <tgmath.h>

static T FUNCTION(getexp_of)(T x) {
    return isnan(x) ? x + x : x == 0 ? (T)-INFINITY : isinf(x) ? (T)INFINITY : (T)ilogb(x);
}

static T FUNCTION(getmant_of)(T x, int control) {
    const int interval = control & 3, drops_sign = control & 4, refuses_sign = control & 8;
    if (isnan(x)) return x + x;
    if (x < 0 && refuses_sign) return copysign((T)NAN, (T)-1);  /* -0 is not refused, -infinity is */
    const T sign = signbit(x) && !drops_sign ? -1 : 1;
    if (x == 0 || isinf(x)) return sign;
    const int e = ilogb(x);
    const T m = fabs(scalbn(x, -e));  /* in [1, 2); the others are [1/2, 2), [1/2, 1) and [3/4, 3/2) */
    const int halved = interval == 1 ? e & 1 : interval == 2 ? 1 : interval == 3 ? m >= (T)1.5 : 0;
    return sign * (halved ? m / 2 : m);
}

static T FUNCTION(scalef_of)(T x, T n) {
    BITS bits;
    memcpy(&bits, &x, sizeof x);
    const int quiet = isnan(x) && bits >> (DIGITS - 1) & 1;
    if (isinf(n) && quiet) return n > 0 ? (T)INFINITY : 0;
    if (isnan(x)) return x + x;
    if (isnan(n)) return n + n;
    if (isinf(n) && (n > 0 ? x == 0 : isinf(x))) return copysign((T)NAN, (T)-1);
    return scalbn(x, (int)fmax(fmin(floor(n), (T)9999), (T)-9999));
}

void FUNCTION(getexp)(T *out, const T *x, int mask, int lanes) {
    for (int k = 0; k < lanes; k++) if (mask >> k & 1) out[k] = FUNCTION(getexp_of)(x[k]);
}

void FUNCTION(getmant)(T *out, const T *x, int control, int mask, int lanes) {
    for (int k = 0; k < lanes; k++) if (mask >> k & 1) out[k] = FUNCTION(getmant_of)(x[k], control);
}

void FUNCTION(scalef)(T *out, const T *x, const T *n, int mask, int lanes) {
    for (int k = 0; k < lanes; k++) if (mask >> k & 1) out[k] = FUNCTION(scalef_of)(x[k], n[k]);
}
"""
IN_BOTH_TYPES = r"""
#define T float
#define BITS uint32_t
#define DIGITS 23
#define FUNCTION(name) avx512_##name##_float
#include "instructions.c"
#undef T
#undef BITS
#undef DIGITS
#undef FUNCTION
#define T double
#define BITS uint64_t
#define DIGITS 52
#define FUNCTION(name) avx512_##name##_double
#include "instructions.c"
"""
DECLARED = re.compile(r"declare (<(\d+) x (\w+)>) @llvm\.x86\.avx512\.mask\.(\w+)\.p[sd]\.\d+\((.*)\)")


@functools.cache
def instructions() -> ctypes.CDLL:
    """The C functions, known to code that calls them by name."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "instructions.c").write_text(INSTRUCTIONS)
        source, library = Path(folder, "both.c"), Path(folder, "both.so")
        source.write_text(IN_BOTH_TYPES)
        subprocess.run(["cc", "-O1", "-fPIC", "-shared", source, "-lm", "-o", library], check=True)
        loaded = ctypes.CDLL(str(library))
    for name, element in itertools.product(("getexp", "getmant", "scalef"), ("float", "double")):
        function = f"avx512_{name}_{element}"
        register_extern(function, ctypes.cast(loaded[function], ctypes.c_void_p).value)
    return loaded


def emulated(declared: re.Match[str]) -> str:
    """The intrinsic as a function of the same type that calls one in C."""
    vector, lanes, element, name, types = declared.groups()
    params = types.split(", ")
    *given, kept, mask = range(len(params) - (params[-1] == "i32"))  # the last one of 512 bits is the rounding
    lines, args = [f"%out = alloca {vector}", f"store {vector} %p{kept}, ptr %out"], ["ptr %out"]
    for k in given:
        if params[k] == vector:
            lines += [f"%v{k} = alloca {vector}", f"store {vector} %p{k}, ptr %v{k}"]
        args.append(f"ptr %v{k}" if params[k] == vector else f"{params[k]} %p{k}")
    args += ["i32 %mask", f"i32 {lanes}"]
    function = f"@avx512_{name}_{element}"
    lines += [f"%mask = zext {params[mask]} %p{mask} to i32", f"call void {function}({', '.join(args)})"]
    lines += [f"%result = load {vector}, ptr %out", f"ret {vector} %result"]
    signature = ", ".join(f"{kind} %p{k}" for k, kind in enumerate(params))
    head = declared[0].split("(")[0].replace("declare", "define internal")
    declaration = f"declare void {function}({', '.join(arg.split()[0] for arg in args)})"
    return "\n  ".join([f"{declaration}\n{head}({signature}) {{", *lines]) + "\n}"


def emulation(name: str, dtype: str, lanes: int) -> Callable[..., np.ndarray]:
    """The function `name` on arrays, as a CPU with AVX-512 computes it in vectors of `lanes`."""
    instructions()
    host, sources = describe(Target("llvm")), [dtype] * (2 if name == "pow" else 1)
    module = with_symbols(lower(program(getattr(intrinsics, name), sources, dtype, lanes), AVX512))
    description = describe_module(module, host)
    text = emit_module(module, describe(AVX512), description)
    calls = [line for line in text.splitlines() if "= call" in line and "@llvm.x86." in line]
    assert calls and all([line.endswith("i32 4)") for line in calls if ".512(" in line])  # as usual rounded
    text = DECLARED.sub(emulated, text).replace("@llvm.x86.", "@emulated.")
    return on_arrays(native_module(compile_text(text, host), description, needs_amx=False), dtype)


def sample(dtype: str, count: int) -> np.ndarray:
    """Every exponent and its neighbours, the ends of the functions' ranges, what is near 1, and any bits."""
    info, bits = np.finfo(dtype), BITS[dtype]
    rng = np.random.default_rng(count)
    powers = np.ldexp(np.ones(1, dtype), np.arange(info.minexp - info.nmant, info.maxexp)).astype(dtype)
    edges = np.concatenate([powers, np.array(EDGES, dtype), np.array([info.max])]).view(bits)
    around = np.add.outer(edges, np.arange(-3, 4).astype(bits)).ravel().view(dtype)
    inside = rng.uniform(-110, 110, count // 2) if dtype == "float32" else rng.uniform(-760, 760, count // 2)
    return np.concatenate(
        [around, -around, np.array([INF, -INF, NAN, -NAN], dtype), inside.astype(dtype), rng.normal(size=count // 2)]
        + [rng.integers(0, np.iinfo(bits).max, count, dtype=bits, endpoint=True).view(dtype)],
        dtype=dtype,
    )


def arguments(name: str, dtype: str) -> list[np.ndarray]:
    """What the function is tried on; a power, on every pair of special values too."""
    x = sample(dtype, 2000)
    if name != "pow":
        return [x]
    y = np.random.default_rng(5).permutation(x)
    special = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 1e-40, 1e30, 2.0**23 + 1, 2.0**52 + 1, 2.0**53, INF, NAN], dtype)
    pairs = np.meshgrid(*[np.concatenate([special, -special])] * 2)
    return [np.concatenate([array, pair.ravel()]) for array, pair in zip((x, y), pairs)]


@functools.cache
def plain_values(name: str, dtype: str) -> np.ndarray:
    """What the function is of them, computed one by one: such code has none of the instructions."""
    arrays = arguments(name, dtype)
    return kernel(getattr(intrinsics, name), [dtype] * len(arrays), dtype, lanes=1)(*arrays)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("bits", [512, 128, 1024, 256])
@pytest.mark.parametrize(("name", "dtype"), BODIES_AVX512)
def test_the_values_are_those_of_plain_arithmetic(name: str, dtype: str, bits: int) -> None:
    lanes, arrays = bits // np.finfo(dtype).bits, arguments(name, dtype)
    tried = [emulation(name, dtype, lanes)]
    if has_avx512(DataType(dtype).with_lanes(lanes), describe(Target("llvm"))):
        tried.append(kernel(getattr(intrinsics, name), [dtype] * len(arrays), dtype, lanes))
    plain = plain_values(name, dtype)
    for function in tried:
        values = function(*arrays)
        np.testing.assert_array_equal(values, plain)
        numbers = ~np.isnan(plain)  # all NaNs are one value: which operand's sign one has, LLVM decides
        np.testing.assert_array_equal(np.signbit(values)[numbers], np.signbit(plain)[numbers])
