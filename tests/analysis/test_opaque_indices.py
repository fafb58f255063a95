"""Opaque indices: which accesses without an affine index are proved to stay inside, and which are left to run time."""

from __future__ import annotations

import pytest

from loopwright.analysis.accesses import accesses_of
from loopwright.analysis.bounds import check_bounds_in
from loopwright.analysis.polynomials import Atom, Poly, interval, just, number
from loopwright.script import from_source

HEADER = """
@T.prim_func
def f(A: T.Buffer(({size},), "float32"), I: T.Buffer((64,), "{dtype}"), {scalars}a: T.handle, b: T.handle):
    n, m = T.int32(), T.int32()
    X = T.match_buffer(a, (n, m), "float32")
    Y = T.match_buffer(b, (n * m,), "float32")
"""


def unproved(body: str, size: int | str = 10, dtype: str = "int32", scalars: str = "") -> list[str]:
    """The accesses of a program that are not proved, as text."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    function = from_source(HEADER.format(size=size, dtype=dtype, scalars=scalars) + lines)
    found = check_bounds_in(accesses_of(function))
    return [f"{item.access.buffer.name}{list(item.access.node.indices)}".replace("I_1", "I") for item in found]


PROVED = {
    "a square": ("for i, j in T.grid(4, 4):\n    A[i * i + j] = T.float32(0)", 13),
    "a product of three": ("for i, j, k in T.grid(3, 3, 3):\n    A[i * j * k] = T.float32(0)", 9),
    "a shift": ("for i in range(8):\n    A[(i << 1) >> 1] = T.float32(0)", 8),
    "a mask": ("for i in range(64):\n    A[I[i] & 7] = T.float32(0)", 8),
    "a remainder of data": ("for i in range(64):\n    A[I[i] % 8] = T.float32(0)", 8),
    "data clamped": ("for i in range(64):\n    A[T.max(T.min(I[i], 9), 0)] = T.float32(0)", 10),
    "data under a condition": (
        "for i in range(64):\n    if 0 <= I[i] and I[i] < 10:\n        A[I[i]] = T.float32(0)",
        10,
    ),
    "a guarded load": (
        "for i in range(64):\n    A[0] = T.if_then_else(I[i] >= 0 and I[i] < 10, A[I[i]], T.float32(0))",
        10,
    ),
    "a let under a condition": (
        "for i in range(64):\n    k: T.int32 = T.Select(I[i] < 0, I[i] + 10, I[i])\n    if k >= 0 and k < 10:\n"
        "        A[k] = T.float32(0)",
        10,
    ),
    "flat index of two open sizes": ("for i, j in T.grid(n, m):\n    Y[i * m + j] = X[i, j]", 10),
    "quotient and remainder by an open size": (
        "for k in range(n * m):\n    X[k // m, k % m] = Y[k]",
        10,
    ),
    "quotient of a sum by an open size": ("for i, j in T.grid(n, m):\n    X[(i * m + j) // m, j] = T.float32(0)", 10),
    "either of two": ("for i in range(64):\n    A[T.Select(I[i] > 3, 1, 2)] = T.float32(0)", 10),
}


@pytest.mark.parametrize("name", PROVED)
def test_proved(name):
    body, size = PROVED[name]
    assert unproved(body, size) == []


@pytest.mark.parametrize(("dtype", "size", "count"), [("uint8", 256, 0), ("uint8", 255, 1), ("bool", 2, 0)])
def test_types_have_bounds(dtype, size, count):
    index = "T.Cast('int32', I[i])"
    assert len(unproved(f"for i in range(64):\n    A[{index}] = T.float32(0)", size, dtype)) == count


UNPROVED = {
    "a square that leaves": ("for i, j in T.grid(4, 4):\n    A[i * i + j] = T.float32(0)", 12, "A[i * i + j]"),
    "data": ("for i in range(64):\n    A[I[i]] = T.float32(0)", 10, "A[I[i]]"),
    "data of one side": ("for i in range(64):\n    if I[i] < 10:\n        A[I[i]] = T.float32(0)", 10, "A[I[i]]"),
    "a condition on other data": (
        "for i in range(63):\n    if 0 <= I[i] and I[i] < 10:\n        A[I[i + 1]] = T.float32(0)",
        10,
        "A[I[i + 1]]",
    ),
    "data that changes after the condition": (
        "for i in range(63):\n    if 0 <= I[i] and I[i] < 10:\n        I[i] = 99\n        A[I[i]] = T.float32(0)",
        10,
        "A[I[i]]",
    ),
    # 2 * I[i] may wrap around to something negative, which is less than 10.
    "data that wraps": (
        "for i in range(64):\n    if I[i] >= 0 and I[i] * 2 < 10:\n        A[I[i] * 2] = T.float32(0)",
        10,
        "A[I[i] * 2]",
    ),
    "a quotient by an open size": ("for i in range(64):\n    A[i // n] = T.float32(0)", 10, "A[i // n]"),
    "a select without its condition": (
        "for i in range(64):\n    A[T.Select(i < 10, i, 9)] = T.float32(0)",
        10,
        "A[T.Select(i < 10, i, 9)]",
    ),
    "a xor": ("for i in range(64):\n    A[i ^ 1] = T.float32(0)", 64, "A[T.bitwise_xor(i, 1)]"),
    "a loop of data": ("for i in range(I[0]):\n    A[i] = T.float32(0)", 10, "A[i]"),
    "a while loop": (
        "k = T.alloc_buffer((1,), 'int32')\nk[0] = 0\n"
        "while k[0] < 20:\n    A[k[0]] = T.float32(0)\n    k[0] = k[0] + 1",
        10,
        "A[k[0]]",
    ),
}


@pytest.mark.parametrize("name", UNPROVED)
def test_unproved(name):
    body, size, text = UNPROVED[name]
    assert unproved(body, size) == [text]


def test_a_scalar_is_checked_unless_a_condition_bounds_it():
    plain = "for i in range(4):\n    A[i + k] = T.float32(0)"
    assert unproved(plain, scalars="k: T.int32, ") == ["A[i + k]"]
    guarded = "if k >= 0 and k <= 6:\n    for i in range(4):\n        A[i + k] = T.float32(0)"
    assert unproved(guarded, scalars="k: T.int32, ") == []


def test_a_store_under_a_condition_on_data():
    assert unproved("for i in range(10):\n    if I[i] > 3:\n        A[i] = T.float32(0)") == []
    assert unproved("for i in range(10):\n    if I[i] > 3:\n        A[i + 1] = T.float32(0)") == ["A[i + 1]"]


def test_deep_expressions_are_looked_into_once():
    doubled = "k: T.int32 = I[0]\n" + "\n".join(f"k_{x + 1}: T.int32 = k_{x} + k_{x}" for x in range(40))
    body = doubled.replace("k: T", "k_0: T", 1) + "\nA[k_40 % 10] = T.float32(0)"
    assert unproved(body) == []


# --- polynomials --------------------------------------------------------------------------------------------------


def test_polynomials_multiply_out():
    x, y = Atom("variable", 0, 3), Atom("variable", -2, 5)
    product = just(x).plus(number(1)).times(just(y).plus(just(x), -1))
    assert product is not None
    assert product.key == just(x).times(just(y)).plus(just(x).times(just(x)), -1).plus(just(y)).plus(just(x), -1).key
    assert interval(just(x).times(just(y))) == (-6, 15)
    assert interval(Poly({(x, x): -2, (): 7})) == (-11, 7)
    assert just(x).plus(just(x), -1).const == 0


def test_replacing_an_atom():
    x, y = Atom("variable", 0, 3), Atom("variable", 0, None)
    square = just(x).times(just(x)).plus(just(y))
    assert square.replaced(x, just(y).plus(number(2))).key == Poly({(y, y): 1, (y,): 5, (): 4}).key
    assert interval(square) == (0, None)
