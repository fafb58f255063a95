"""Transposes on a GPU: the tiles that are chosen, and that the result is right for all sizes, types and orders."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te, topi
from loopwright.autosched.gpu.rules import transpose
from tests.autosched.gpu.emulated import EMULATED, Emulated, Program, check

H200 = "nvidia/nvidia-h200"
RNG = np.random.default_rng(0)


def values(shape, dtype="float32"):
    return RNG.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)


def rule(args, target=EMULATED):
    return autosched.apply(args, target).explain()


MATRICES = [
    ((33, 65), (1, 0), "float32"),
    ((64, 31), (1, 0), "float16"),
    ((64, 130), (1, 0), "float16"),
    ((40, 50), (1, 0), "float64"),
    ((132, 130), (1, 0), "int8"),
    ((35, 36), (1, 0), "bool"),
]
ARRAYS = [
    ((3, 20, 17), (0, 2, 1), "int32"),
    ((5, 17, 40), (2, 0, 1), "float32"),
    ((17, 5, 40), (2, 1, 0), "uint8"),
    ((2, 20, 6, 7), (0, 2, 3, 1), "float16"),
    ((2, 6, 7, 32), (0, 3, 1, 2), "int64"),
]


@pytest.mark.parametrize("permutations", [MATRICES, ARRAYS], ids=["matrices", "arrays"])
def test_permutations(permutations):
    programs = []
    for shape, axes, dtype in permutations:
        A, a = te.placeholder(shape, dtype, name="A"), values(shape, dtype)
        programs.append(Program([A, topi.transpose(A, axes)], [a], [a.transpose(axes)]))
    for plan in check(*programs, orders=True).plans:
        assert ": transpose" in plan.explain() and "refused" not in plan.explain()


@pytest.mark.parametrize(
    ("shape", "dtype", "tile", "square"),
    [
        ((8192, 8192), "float32", "64 × 64", 4),
        ((8192, 8190), "float32", "64 × 64", None),
        ((65, 1 << 21), "float32", "64 × 64", None),
        ((4097, 3001), "float32", "64 × 64", None),
        ((512, 512), "float32", "32 × 32", None),
        ((8192, 8192), "float16", "128 × 64", 2),
        ((4097, 3001), "float16", "64 × 64", None),
        ((8192, 8192), "int8", "128 × 128", 4),
        ((8192, 8192), "float64", "32 × 32", None),
        ((1 << 20, 64), "float32", "64 × 64", 4),
    ],
)
def test_tiles(shape, dtype, tile, square):
    A = te.placeholder(shape, dtype, name="A")
    plan = rule([A, topi.transpose(A)], H200)
    assert f"tiles of {tile} in shared memory" in plan
    assert ("transposed in registers" in plan) == (square is not None)
    assert square is None or f"squares of {square} × {square}" in plan


def test_threads_of_a_warp_are_in_different_banks():
    sources = []
    for dtype in ("float32", "float16", "int8"):
        A = te.placeholder((256, 256), dtype, name="A")
        a = values((256, 256), dtype)
        sources.append(check(Program([A, topi.transpose(A)], [a], [a.T]), orders=True).source)
    assert "threadIdx_x * 33 + " in sources[0]
    assert "threadIdx_x * 130 + " in sources[1]  # 65 words
    assert "threadIdx_x * 516 + " in sources[2]  # 129 words
    assert "*(int8x4 *)" in sources[2]


def transposed(shape, dtype):
    """The last two axes change places."""
    A, a = te.placeholder(shape, dtype, name="A"), values(shape, dtype)
    axes = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    return Program([A, topi.transpose(A, axes)], [a], [a.transpose(axes)])


def test_squares_of_sixteen_bytes(monkeypatch):
    monkeypatch.setattr(transpose, "_are_few", lambda *_: False)
    shapes = ((256, 320), "float32"), ((324, 500), "int32"), ((2, 260, 196), "float32")
    made = check(*[transposed(shape, dtype) for shape, dtype in shapes], orders=True)
    assert all(["squares of 4 × 4" in plan.explain() for plan in made.plans])
    assert made.source.count("*(float4 *)&") >= 4
    assert "threadIdx_x * 260 + " in made.source  # 65 times 16 bytes


def test_stores_begin_at_sectors(monkeypatch):
    """Rows of the result begin anywhere within a sector: the tile of each is moved to where the next sector begins."""
    monkeypatch.setattr(transpose, "_are_few", lambda *_: False)
    shapes = ((67, 65), "float32"), ((129, 200), "int32"), ((193, 131), "float16"), ((2, 72, 64), "float32")
    made = check(*[transposed(shape, dtype) for shape, dtype in shapes], orders=True)
    for (shape, _), plan in zip(shapes, made.plans, strict=True):
        assert ("within sectors" in plan.explain()) == (shape[-2] % 8 != 0)
        assert any(["_s_" in word for word in str(plan.mod).split()]) == (shape[-2] % 8 != 0)


def test_all_threads_inside_load_without_guards():
    A = te.placeholder((100, 70), name="A")
    a = values((100, 70))
    source = check(Program([A, topi.transpose(A)], [a], [a.T]), orders=True).source
    assert source.count("} else {") >= 2


def test_element_wise_work_around_it():
    A, E = te.placeholder((40, 70), name="A"), te.placeholder((40, 70), name="E")
    C, D = te.placeholder((40,), name="C"), te.placeholder((70, 40), name="D")
    H = te.placeholder((64, 32), "float16", name="H")
    scaled = te.compute((70, 40), lambda i, j: A[j, i] * 2 + C[j] * D[i, j], name="scaled")
    both = te.compute((70, 40), lambda i, j: A[j, i] + E[j, i] * A[j, i], name="both")
    wider = te.compute((32, 64), lambda i, j: H[j, i].astype("float32") + 1, name="wider")
    a, e, c, d, h = values((40, 70)), values((40, 70)), values(40), values((70, 40)), values((64, 32), "float16")
    made = check(
        Program([A, C, D, scaled], [a, c, d], [a.T * 2 + c * d]),
        Program([A, E, both], [a, e], [a.T + e.T * a.T]),
        Program([H, wider], [h], [h.T.astype("float32") + np.float32(1)]),
        orders=True,
    )
    assert "v_i in A, E" in made.plans[1].explain()


def test_flat_operands_and_reshapes():
    F, A = te.placeholder((2800,), name="F"), te.placeholder((70, 40), name="A")
    flat = te.compute((70, 40), lambda i, j: F[j * 70 + i], name="flat")
    shaped = topi.transpose(topi.reshape(A, (35, 80)))
    f, a = values(2800), values((70, 40))
    made = check(
        Program([F, flat], [f], [f.reshape(40, 70).T]), Program([A, shaped], [a], [a.reshape(35, 80).T]), orders=True
    )
    assert all([": transpose" in plan.explain() for plan in made.plans])


def test_short_rows_are_element_wise():
    for shape, axes in (((2, 3, 40, 50), (0, 2, 3, 1)), ((1000, 4), (1, 0)), ((50, 1, 70), (1, 0, 2))):
        A = te.placeholder(shape, name="A")
        assert ": element-wise" in rule([A, topi.transpose(A, axes)])


def test_windows_of_one_operand_are_no_transpose():
    A = te.placeholder((70, 70), name="A")
    B = te.compute((69, 69), lambda i, j: A[j, i] + A[j + 1, i + 1], name="B")
    assert ": element-wise" in rule([A, B])


def test_open_sizes():
    n, m = te.var("n"), te.var("m")
    A, P = te.placeholder((n, m), name="A"), te.placeholder((n, 20), name="P")
    B = te.compute((m, n), lambda i, j: A[j, i] * 2, name="B")
    Q = te.compute((20, n), lambda i, j: P[j, i] * 2, name="Q")
    made = Emulated([A, B], [P, Q])
    assert all([": transpose" in plan.explain() for plan in made.plans])
    assert "32768" in made.library.get_source("host")  # blocks along y at most, where a dimension is cut in two
    for shape in ((1, 1), (33, 65), (64, 20), (0, 4)):
        a, p = values(shape), values((shape[0], 20))
        b, q = np.zeros(shape[::-1], "float32"), np.zeros((20, shape[0]), "float32")
        made.functions[0](a, b)
        made.functions[1](p, q)
        np.testing.assert_array_equal(b, a.T * 2)
        np.testing.assert_array_equal(q, p.T * 2)


@pytest.mark.parametrize(("dtype", "lanes"), [("float16", 2), ("int8", 4)])
def test_open_sizes_of_narrow_types_are_squares(dtype, lanes):
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), dtype, name="A")
    made = Emulated([A, topi.transpose(A)])
    assert f"squares of {lanes} × {lanes} transposed in registers" in made.plans[0].explain()
    for shape in ((1, 1), (64, 132), (65, 130), (130, 67), (0, 4)):
        a = values(shape, dtype)
        for start in (0, 1):  # the second one is not aligned
            memory = np.zeros(a.size + 1, dtype)[start : start + a.size].reshape(shape)
            memory[...] = a
            b = np.zeros(shape[::-1], dtype)
            made.functions[0](memory, b)
            np.testing.assert_array_equal(b, a.T)


def test_more_matrices_and_tiles_than_a_grid_has_room_for(monkeypatch):
    monkeypatch.setattr(transpose, "_BLOCKS_ACROSS", 2)
    b, n, m = te.var("b"), te.var("n"), te.var("m")
    A, M = te.placeholder((b, n, m), name="A"), te.placeholder((n, m), name="M")
    plan = autosched.apply([A, M, topi.transpose(A, (0, 2, 1)), topi.transpose(M)], EMULATED)
    module = lw.build(plan.mod, target=EMULATED)
    for shape in ((5, 3, 70), (1, 33, 400)):
        a, matrix = values(shape), values(shape[1:])
        c, d = np.zeros((shape[0], shape[2], shape[1]), "float32"), np.zeros(shape[:0:-1], "float32")
        module(a, matrix, c, d)
        np.testing.assert_array_equal(c, a.transpose(0, 2, 1))
        np.testing.assert_array_equal(d, matrix.T)
