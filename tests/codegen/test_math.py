"""The float32 functions: their stated error bounds on a sweep of bit patterns, and their values at the edges."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from loopwright import ir
from loopwright.codegen.math import expand, has_body
from loopwright.codegen.math.table import BODIES
from loopwright.ir import intrinsics
from loopwright.runtime.dtype import DataType
from loopwright.target import Target, describe
from tools.sweep_math import EXACT, OF_TWO, STATED, all_patterns, function, kernel, ulp_errors

pytestmark = pytest.mark.optimized

INF, NAN = float("inf"), float("nan")
ONE_ARGUMENT = [name for name, dtype in STATED if dtype == "float32" and name not in OF_TWO]
# Where a body changes its formula, or a result becomes denormal, infinite or 1: neighbours of these are tried as well.
EDGES = np.array(
    [
        0.25,
        0.5,
        2**-0.5,
        0.75,
        1,
        1.125,
        2**0.5,
        1.5,
        2,
        np.pi / 2,
        np.pi,
        4,
        9.01,
        38.53,
        44.85,
        65536,
        87.33,
        88.72,
        89.41,
        103.97,
        2**30,
    ]
    + [126, 128, 149, 150, 2.0**-126, 2.0**-12, 1e-45, 0, 3.4e38],
    np.float32,
)


def sample(step: int) -> np.ndarray:
    """Every step-th float32, and all around the edges, both signs."""
    around = np.add.outer(EDGES.view(np.int32), np.arange(-500, 500, dtype=np.int32)).ravel().view(np.float32)
    return np.concatenate([*all_patterns(step), around, -around, EDGES, -EDGES])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ONE_ARGUMENT)
def test_error_is_within_the_stated_bound(name):
    x = sample(step=1009 if name in ("exp", "log") else 3001)
    with np.errstate(all="ignore"):
        errors = ulp_errors(function(name, "float32")(x), EXACT[name](x.astype(np.float64)))
    at = int(np.argmax(errors))
    assert errors[at] <= STATED[name, "float32"], f"{name}({x[at]!r}) is off by {errors[at]} ulp"


def test_the_page_states_the_bounds_that_are_tested():
    page = (pathlib.Path(__file__).parents[2] / "docs" / "math.md").read_text()
    for (name, dtype), bound in STATED.items():
        assert f"| {name} | {dtype} | {bound} |" in page


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "name, values",
    [
        ("exp", [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (88.8, INF), (-104.0, 0.0), (-103.0, 2.0**-149)]),
        ("exp2", [(10.0, 1024.0), (-149.0, 2.0**-149), (-151.0, 0.0), (127.0, 2.0**127), (128.0, INF), (-INF, 0.0)]),
        ("exp10", [(0.0, 1.0), (39.0, INF), (-46.0, 0.0), (INF, INF), (-INF, 0.0)]),
        ("log", [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (-INF, NAN)]),
        ("log2", [(1.0, 0.0), (1024.0, 10.0), (2.0**-149, -149.0), (0.0, -INF), (-1e-45, NAN), (INF, INF)]),
        ("log10", [(1.0, 0.0), (1000.0, 3.0), (0.0, -INF), (INF, INF)]),
        ("log1p", [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (-1.5, NAN), (INF, INF), (1e-45, 1e-45)]),
        ("sigmoid", [(0.0, 0.5), (INF, 1.0), (-INF, 0.0), (100.0, 1.0)]),
        ("tanh", [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (20.0, 1.0), (-1e-45, -1e-45)]),
        ("sinh", [(-0.0, -0.0), (INF, INF), (-INF, -INF), (1e-45, 1e-45), (-90.0, -INF)]),
        ("cosh", [(0.0, 1.0), (INF, INF), (-INF, INF), (90.0, INF)]),
        ("asinh", [(-0.0, -0.0), (INF, INF), (-INF, -INF), (1e-45, 1e-45)]),
        ("acosh", [(1.0, 0.0), (0.5, NAN), (-3.0, NAN), (-INF, NAN), (INF, INF)]),
        ("atanh", [(-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (INF, NAN)]),
        ("erf", [(-0.0, -0.0), (5.0, 1.0), (INF, 1.0), (-INF, -1.0)]),
        ("sin", [(-0.0, -0.0), (INF, NAN), (-INF, NAN), (1e-45, 1e-45)]),
        ("cos", [(0.0, 1.0), (-0.0, 1.0), (INF, NAN)]),
        ("tan", [(-0.0, -0.0), (INF, NAN), (1e-45, 1e-45)]),
        ("asin", [(-0.0, -0.0), (1.5, NAN), (-INF, NAN), (1.0, np.float32(np.pi / 2))]),
        ("acos", [(1.0, 0.0), (-1.0, np.float32(np.pi)), (1.5, NAN), (-INF, NAN)]),
        ("atan", [(-0.0, -0.0), (INF, np.float32(np.pi / 2)), (-INF, np.float32(-np.pi / 2))]),
    ],
)
def test_values_at_the_edges(name, values):
    x, want = np.array([*values, (NAN, NAN)], np.float32).T
    got = function(name, "float32", lanes=4)(x)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[:-1]) & ~np.isnan(want[:-1]), np.signbit(want[:-1]))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ONE_ARGUMENT)
def test_a_value_does_not_depend_on_its_neighbours_or_the_lane_count(name):
    x = np.random.default_rng(7).integers(0, 1 << 32, 5000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x[::3] = np.linspace(-20, 20, len(x[::3]), dtype=np.float32)  # not all of them huge or tiny
    reference = function(name, "float32", lanes=1)(x)
    for lanes in (2, 8, 16):
        got = function(name, "float32", lanes=lanes)(x)
        np.testing.assert_array_equal(got, reference)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(reference), strict=True)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("x", [2.0**16 * 1.5707964, 1.0e7, 5.3e9, 16367173.0 * 2.0**72, 3.4028235e38])
def test_sin_of_huge_arguments(x):
    # 16367173 · 2^72 is, among all float32, nearly the closest to a multiple of π/2.
    got = [function(name, "float32", lanes=4)(np.full(4, x, np.float32))[0] for name in ("sin", "cos", "tan")]
    wide = np.float64(np.float32(x))
    np.testing.assert_allclose(got, [np.sin(wide), np.cos(wide), np.tan(wide)], rtol=3e-7)


def test_intrinsics_use_the_bodies():
    x = np.linspace(-5, 5, 1000, dtype=np.float32)
    called = kernel(intrinsics.exp, ["float32"], "float32", lanes=8)(x)
    np.testing.assert_array_equal(called, kernel(BODIES["exp", "float32"], ["float32"], "float32", lanes=8)(x))


@pytest.mark.parametrize(
    "cpu, lanes, chosen",
    [
        ("sapphirerapids", 16, True),
        ("sapphirerapids", 64, True),
        ("sapphirerapids", 8, True),
        ("sapphirerapids", 1, False),
        ("sapphirerapids", 48, False),
        ("knl", 16, True),
        ("knl", 8, False),  # no instructions of AVX-512 for short vectors
        ("haswell", 8, False),
    ],
)
def test_bodies_for_avx512_are_chosen_by_features_and_lanes(cpu, lanes, chosen):
    x = ir.Var("x", DataType("float32").with_lanes(lanes))
    target = describe(Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}"))
    assert ("avx512" in str(expand("log", [x], x.dtype, x.dtype, target))) is chosen
    assert "avx512" not in str(expand("log", [x], x.dtype, x.dtype))
    assert "avx512" not in str(expand("erf", [x], x.dtype, x.dtype, target))


def test_vectors_longer_than_a_target_wants_are_left_to_plain_arithmetic():
    x = ir.Var("x", "float32x16")
    target = describe(Target("llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -vector-width=256"))
    assert "avx512" not in str(expand("log", [x], x.dtype, x.dtype, target))


def test_results_stay_within_the_range_of_the_function():
    x = sample(step=10007)
    for name in ("erf", "tanh", "sigmoid"):
        y = function(name, "float32")(x)
        assert np.all(np.abs(y[~np.isnan(x)]) <= 1), name


def test_bodies_are_plain_arithmetic():
    """What every backend must know, and nothing more."""
    allowed = {"fma", "abs", "copysign", "sqrt", "nearbyint", "trunc", "reinterpret", "if_then_else", "likely"}
    allowed |= {"shift_left", "shift_right", "bitwise_and", "bitwise_or", "bitwise_xor"}
    for (name, element), body in BODIES.items():
        bits = {"bfloat16": "uint16", "float16": "uint16"}.get(element, "uint8")
        given = DataType(bits if name == "decode" else "float32" if name == "encode" else element).with_lanes(4)
        args = [ir.Var("a", given), ir.Var("b", given)][: 2 if name in (*OF_TWO, "nextafter") else 1]
        used: set[str] = set()
        ir.pre_order_visit(
            body(*args), lambda node, used=used: used.add(node.op.name[4:]) if isinstance(node, ir.Call) else None
        )
        # Within its own body, a function's name means the C library's: large arguments are left to it.
        own = {name} if name == "fmod" or (name in ("sin", "cos", "tan") and element == "float64") else set()
        assert used <= allowed | own, (name, used - allowed)


def test_table_answers_by_element_type():
    assert has_body("exp", DataType("float32x8"))
    assert not has_body("exp", DataType("float16"))
    x = ir.Var("x", "float32x8")
    assert expand("exp", [x], x.dtype, x.dtype).dtype == "float32x8"
    bits = ir.Var("bits", "uint8x4")
    assert expand("decode", [bits], DataType("e4m3_float8x4"), DataType("float32x4")).dtype == "float32x4"
    assert expand("encode", [x], x.dtype, DataType("bfloat16x8")).dtype == "uint16x8"
