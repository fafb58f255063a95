from __future__ import annotations

from hypothesis import given, settings

from loopwright.arith import detect_linear_equation, interval_of, linear_coefficients
from loopwright.ir import Expr, Max, Min, Range, SizeVar, Var, const, decl_buffer
from tests.arith.integers import points, table
from tests.arith.test_simplify_random import INDEX, I, J, N

M = SizeVar("m")


def _texts(found: tuple[list[Expr], Expr] | None) -> tuple[list[str], str] | None:
    return None if found is None else ([repr(e) for e in found[0]], repr(found[1]))


def test_coefficients() -> None:
    assert _texts(linear_coefficients(I * 4 + J - 3 + N, [I, J])) == (["4", "1"], "n - 3")
    assert _texts(linear_coefficients(I * N + J, [I])) == (["n"], "j")
    assert _texts(linear_coefficients((I + 2) * N, [I])) == (["n"], "n * 2")
    assert _texts(linear_coefficients(N * 2, [I])) == (["0"], "n * 2")
    assert linear_coefficients(I * J, [I, J]) is None
    assert linear_coefficients(I // 4, [I]) is None
    assert linear_coefficients(decl_buffer((4,), "int32", "A")[I], [I]) is None
    assert [repr(e) for e in detect_linear_equation(I * 2 + 1, [I])] == ["2", "1"]
    assert detect_linear_equation(I * I, [I]) == []


def test_intervals() -> None:
    def of(e: Expr, domains: dict[Var, Range | tuple[Expr | int, Expr | int]]) -> tuple[str, str] | None:
        found = interval_of(e, domains)
        return None if found is None else (repr(found[0]), repr(found[1]))

    assert of(I * 4 + J, {J: Range(0, 4)}) == ("i * 4", "i * 4 + 3")
    assert of(N - I, {I: (0, 3)}) == ("n - 3", "n")
    assert of(I, {I: Range(0, N)}) == ("0", "n - 1")
    assert of(I * M, {I: Range(0, N)}) == ("0", "n * m - m")
    assert of(J - I, {I: Range(0, 8), J: Range(I, I + 3)}) == ("0", "2")  # the inner domain follows the outer variable
    assert of((I + M) // 4, {I: Range(0, 8)}) == ("m // 4", "(m + 3) // 4 + 1")
    assert of(I % 3, {I: Range(0, 8)}) == ("0", "2")
    assert of(Min(I, N), {I: Range(0, 8)}) == ("0", "T.min(n, 7)")
    assert of(Max(I, const(3)), {I: Range(0, 8)}) == ("3", "7")
    assert of(I * J, {I: Range(0, 8)}) is None  # the sign of j is not known
    assert of(Max(I * -715827883, I * 7), {I: Range(0, 5)}) is None  # the least of the first is beyond int32


@settings(max_examples=300, deadline=None)
@given(INDEX)
def test_intervals_contain_every_value(e: Expr) -> None:
    found = interval_of(e, {I: Range(0, 5), J: Range(I, I + N)})
    if found is None:
        return
    where = [point for point in points(range(5), range(9), range(5)) if point[0] <= point[1] < point[0] + point[2]]
    lows, highs = table(found[0], [I, J, N], where), table(found[1], [I, J, N], where)
    for low, value, high in zip(lows, table(e, [I, J, N], where), highs, strict=True):
        if low is not None and high is not None and value is not None:
            assert low <= value <= high
