"""The matrices of winograd, exactly; how they are multiplied with; and the measured error beside its bound."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.ir import Add, Expr, FloatImm, Mul, Sub, Var
from loopwright.schedule.winograd import (
    amplification,
    check,
    direct_factor,
    error_bound,
    error_factor,
    safe_range,
    transforms,
)
from loopwright.schedule.winograd.linear_forms import rows_of
from loopwright.schedule.winograd.matrices import MOST_POINTS

ALL = [(m, r) for m in range(1, MOST_POINTS) for r in range(1, MOST_POINTS) if 2 <= m + r - 1 <= MOST_POINTS]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("tile", "window"), ALL)
def test_every_filter_is_proved(tile: int, window: int) -> None:
    made = transforms(tile, window)
    assert check(made) is None
    assert len(made.data) == len(made.data[0]) == len(made.weight) == len(made.result[0]) == made.size


def test_the_usual_matrices() -> None:
    made = transforms(2, 3)
    half = Fraction(1, 2)
    assert made.result == ((1, 1, 1, 0), (0, 1, -1, 1))
    assert made.weight == ((-1, 0, 0), (half, half, half), (half, -half, half), (0, 0, 1))
    assert made.data == ((-1, 0, 1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, -1, 0, 1))


@pytest.mark.parametrize("name", ["result", "weight", "data"])
def test_one_wrong_number_is_found(name: str) -> None:
    made = transforms(4, 3)
    matrix = [list(row) for row in getattr(made, name)]
    for row in range(len(matrix)):
        for column in range(len(matrix[0])):
            wrong = [list(numbers) for numbers in matrix]
            wrong[row][column] += Fraction(1, 3)
            told = check(made._replace(**{name: tuple(tuple(numbers) for numbers in wrong)}))
            assert told is not None and told.startswith("F(4, 3): y[")


def test_what_is_wrong_is_told() -> None:
    made = transforms(2, 3)
    wrong = made._replace(data=(*made.data[:3], (Fraction(0), Fraction(0), Fraction(0), Fraction(1))))
    assert check(wrong) == "F(2, 3): y[1] has 1 times g[2] d[1]"


@pytest.mark.parametrize(("tile", "window"), [(0, 3), (2, 0), (8, 4), (1, 1)])
def test_there_are_no_others(tile: int, window: int) -> None:
    with pytest.raises(ValueError, match=rf"F\({tile}, {window}\) needs {tile + window - 1} points"):
        transforms(tile, window)


# --- expressions --------------------------------------------------------------------------------------------------


def value_of(expr: Expr, values: dict[Var, Fraction]) -> Fraction:
    """The exact value of a sum of products."""
    if isinstance(expr, Var):
        return values[expr]
    if isinstance(expr, FloatImm):
        return Fraction(expr.value)
    assert isinstance(expr, (Add, Sub, Mul)), expr
    a, b = value_of(expr.a, values), value_of(expr.b, values)
    return a + b if isinstance(expr, Add) else a - b if isinstance(expr, Sub) else a * b


@pytest.mark.parametrize(("tile", "window"), ALL)
def test_expressions_are_the_matrix_times_the_values(tile: int, window: int) -> None:
    made = transforms(tile, window)
    for matrix in (made.result, made.weight, made.data):
        variables = [Var(f"d{k}", "float64") for k in range(len(matrix[0]))]
        numbers = {var: Fraction(3**k % 17 - 8) for k, var in enumerate(variables)}
        for row, expr in zip(matrix, rows_of(matrix, variables), strict=True):
            wanted = sum(a * numbers[var] for a, var in zip(row, variables, strict=True))
            found = value_of(expr, numbers)
            assert abs(found - wanted) <= Fraction(1, 2**40) * max(1, abs(wanted))
            if all(a.denominator & (a.denominator - 1) == 0 for a in row):
                assert found == wanted  # its constants are exact


def test_pairs_share_their_sums() -> None:
    variables = [Var(f"d{k}", "float32") for k in range(6)]
    rows = [str(row) for row in rows_of(transforms(4, 3).data, variables)]
    even, odd = "d4 - d2 * T.float32(2.25)", "(d3 - d1 * T.float32(2.25)) * T.float32(0.75)"
    assert rows[1] == f"{even} + {odd}" and rows[2] == f"{even} - {odd}"
    columns = [str(row) for row in rows_of(transforms(4, 3).result, variables)]
    assert columns[0] == "d0 + (d1 + d2) + (d3 + d4)"
    assert columns[1] == "(d1 - d2) * T.float32(0.75) + (d3 - d4) * T.float32(1.5)"


# --- rounding -----------------------------------------------------------------------------------------------------


def natively(tile: int, taps: int, places: int, dtype: str) -> object:
    """A convolution of any number of channels by winograd, compiled."""
    channels, size = te.var("channels"), places + taps - 1
    x = te.placeholder((1, channels, size, size), dtype, name="X")
    w = te.placeholder((2, channels, taps, taps), dtype, name="W")
    c, i, j = (te.reduce_axis((0, n), name) for n, name in ((channels, "c"), (taps, "i"), (taps, "j")))
    out = te.compute(
        (1, 2, places, places),
        lambda n, f, y, z: te.sum(x[n, c, y + i, z + j] * w[f, c, i, j], axis=[c, i, j]),
        name="O",
    )
    sch = tir.Schedule(te.create_prim_func([x, w, out]))
    sch.winograd("O", tile)
    assert sch.is_proved
    return lw.build(sch.mod, target="llvm -opt-level=0")  # optimizing loops over rows of matrices takes long


def exactly(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    rows, columns = (size - taps + 1 for size, taps in zip(x.shape[2:], w.shape[2:], strict=True))
    total = np.zeros((x.shape[0], w.shape[0], rows, columns), np.longdouble)
    for i in range(w.shape[2]):
        for j in range(w.shape[3]):
            part = x[:, :, i : i + rows, j : j + columns].astype(np.longdouble)
            total += np.einsum("nchw,fc->nfhw", part, w[:, :, i, j].astype(np.longdouble))
    return total


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("tile", "taps"), [(2, 3), (3, 3), (4, 3), (6, 3), (2, 5), (4, 5), (2, 7)])
def test_the_error_is_within_its_bound(tile: int, taps: int) -> None:
    places = 2 * tile + 1
    for dtype in ("float32", "float64"):
        run = natively(tile, taps, places, dtype)
        for channels in (1, 3, 64, 512):
            rng = np.random.default_rng(channels)
            x = rng.standard_normal((1, channels, places + taps - 1, places + taps - 1)).astype(dtype)
            w = rng.standard_normal((2, channels, taps, taps)).astype(dtype)
            got = np.zeros((1, 2, places, places), dtype)
            run(x, w, got)
            room = error_bound(x, w, tile, dtype)
            assert (np.abs(got - exactly(x, w)) <= room).all()
            factor = error_factor(tile, (taps, taps), channels, dtype)
            assert (room <= factor * np.abs(x).max() * np.abs(w).max() * (1 + 1e-6)).all()


def test_the_bound_of_one_dimension_and_of_three() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 5, 9)), rng.standard_normal((3, 5, 3))
    assert error_bound(x, w, 4).shape == (2, 3, 7)
    x, w = rng.standard_normal((1, 2, 5, 6, 7)), rng.standard_normal((2, 2, 3, 3, 2))
    assert error_bound(x, w, 2).shape == (1, 2, 3, 4, 6)


def test_all_the_same_numbers_meet_the_factor() -> None:
    """Where all magnitudes are the largest, the bound of a whole tile's worst result is the factor itself."""
    x, w = np.ones((1, 3, 6, 6)), np.ones((1, 3, 3, 3))
    assert error_bound(x, w, 4).max() == pytest.approx(error_factor(4, (3, 3), 3))


def test_larger_tiles_round_more() -> None:
    factors = [amplification(tile, (3, 3)) for tile in (2, 4, 6)]
    assert factors == sorted(factors) and factors[0] == 64
    assert error_factor(2, (3, 3), 512) < direct_factor((3, 3), 512)  # fewer numbers are added up one after the other


# --- overflow -----------------------------------------------------------------------------------------------------


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("tile", "taps"), [(2, 3), (4, 3), (4, 5)])
def test_no_step_overflows_within_the_safe_range(tile: int, taps: int) -> None:
    run = natively(tile, taps, tile, "float32")
    size = tile + taps - 1
    for channels in (1, 3):
        limits = safe_range(tile, (taps, taps), channels)
        for seed in range(20):
            rng = np.random.default_rng(seed)
            signs = rng.choice([-1.0, 1.0], (1, channels, size, size))
            # The signs of a row of the data's matrix, in both dimensions: one transformed number is the largest.
            row = np.sign([float(number) for number in transforms(tile, taps).data[seed % size]])
            signs = np.where(np.outer(row, row) == 0, signs, np.outer(row, row))
            x = (signs * limits.data).astype("float32")
            weight = limits.product / limits.data
            w = (rng.choice([-1.0, 1.0], (2, channels, taps, taps)) * weight).astype("float32")
            got = np.zeros((1, 2, tile, tile), "float32")
            run(x, w, got)
            assert np.isfinite(got).all()


def test_beyond_it_winograd_overflows_where_the_direct_form_is_finite() -> None:
    limits = safe_range(4, (3, 3), 1)
    row = np.sign([float(number) for number in transforms(4, 3).data[0]])
    x = (np.outer(row, row) * limits.data * 4).astype("float32")[None, None]
    w = np.full((2, 1, 3, 3), 1e-3, "float32")
    got = np.zeros((1, 2, 4, 4), "float32")
    natively(4, 3, 4, "float32")(x, w, got)
    assert np.abs(exactly(x, w)).max() < 1e36 and not np.isfinite(got).all()
