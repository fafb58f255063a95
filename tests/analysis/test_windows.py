"""Buffers on the memory of others, ranges of pointers, and addresses of elements stay inside that memory."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright.analysis import check_program
from loopwright.analysis.bounds import OutOfBounds
from loopwright.analysis.windows import PointerOutOfRange, RegionNotInside, WindowTooLarge
from loopwright.runtime.call_errors import IndexOutOfRange
from loopwright.script import from_source
from loopwright.transform.errors import RegionDoesNotMatch
from tests.guarded_arrays import guarded, in_child

HEAD = """
@T.prim_func
def f(A: T.Buffer((8,)), I: T.Buffer((4,), "int32"), C: T.Buffer((8,)), a: T.handle, m: T.int32):
    n = T.int32()
    N = T.match_buffer(a, (n, 4))
"""


def program(body: str):
    return from_source(HEAD + "".join([f"    {line}\n" for line in body.split("\n")]))


TOO_LARGE = {
    "shape": ("B = T.decl_buffer((1000,), data=A.data)\nC[0] = B[900]", "buffer B reaches byte 3999 .* which has 32"),
    "never used": ("B = T.decl_buffer((9,), data=A.data)\nC[0] = B[0]", "buffer B reaches byte 35 .* which has 32"),
    "offset": ("B = T.decl_buffer((8,), data=A.data, elem_offset=1)\nC[0] = B[0]", "buffer B reaches byte 35"),
    "offset before": ("B = T.decl_buffer((8,), data=A.data, elem_offset=-1)\nC[0] = B[0]", "begins 4 bytes before"),
    "strides": ("B = T.decl_buffer((4,), data=A.data, strides=[3])\nC[0] = B[0]", "buffer B reaches byte 39"),
    "strides backwards": ("B = T.decl_buffer((4,), data=A.data, strides=[-1])\nC[0] = B[0]", "begins 12 bytes before"),
    "strides both ways": (
        "B = T.decl_buffer((2, 2), data=A.data, strides=[-9, 10])\nC[0] = B[0, 0]",
        "begins 36 bytes before the memory of A",
    ),
    "allocated with strides backwards": (
        "with T.block('b'):\n    T.reads()\n    T.writes(C[0])\n    L = T.alloc_buffer((4,), strides=[-1])\n"
        "    L[0] = 1.0\n    C[0] = L[0]",
        "buffer L begins 12 bytes before the memory of L",
    ),
    "wider elements": ("B = T.decl_buffer((5,), 'float64', data=A.data)\nC[0] = T.float32(B[0])", "reaches byte 39"),
    "vectors": ("B = T.decl_buffer((3,), 'float32x4', data=A.data)\nT.evaluate(B[0])", "reaches byte 47"),
    "not declared": ("B = T.Buffer((9,), data=A.data)\nC[0] = B[0]", "buffer B reaches byte 35"),
    "allocated": (
        "L = T.allocate([4], 'float32')\nB = T.decl_buffer((5,), data=L)\nB[0] = 1.0\nC[0] = B[0]",
        "buffer B reaches byte 19 of the memory of L, which has 16",
    ),
    "a block's": (
        "with T.block('b'):\n    T.reads()\n    T.writes(C[0])\n    L = T.alloc_buffer((4,))\n"
        "    B = T.decl_buffer((5,), data=L.data)\n    B[0] = 1.0\n    C[0] = B[0]",
        "buffer B reaches byte 19 of the memory of L, which has 16",
    ),
    "a pointer with a name": (
        "with T.LetStmt(T.address_of(A[4])) as p:\n    B = T.decl_buffer((5,), data=p)\n    C[0] = B[0]",
        "buffer B reaches byte 35",
    ),
    "in a loop": (
        "for i in range(3):\n    B = T.decl_buffer((4,), data=A.data, elem_offset=i * 4)\n    C[i] = B[0]",
        "buffer B reaches byte 47 of the memory of A, which has 32",
    ),
    "sizes": ("B = T.decl_buffer((n * 4 + 1,), data=N.data)\nC[0] = B[0]", "buffer B reaches byte 3 .* which has 0"),
    "other sizes": (
        "B = T.decl_buffer((m,), data=N.data)\nC[0] = T.if_then_else(0 < m, B[0], 0.0)",
        "buffer B is not proved to stay inside the memory of N",
    ),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_buffer_beyond_its_memory_is_refused(name: str) -> None:
    body, message = TOO_LARGE[name]
    with pytest.raises(WindowTooLarge, match=message):
        check_program(program(body))


FITS = {
    "another shape": "B = T.decl_buffer((2, 4), data=A.data)\nC[0] = B[1, 3]",
    "a part": "B = T.decl_buffer((4,), data=A.data, elem_offset=4)\nC[0] = B[3]",
    "strides backwards": "B = T.decl_buffer((4,), data=A.data, strides=[-1], elem_offset=3)\nC[0] = B[3]",
    "narrower elements": "B = T.decl_buffer((32,), 'int8', data=A.data)\nC[0] = T.float32(B[31])",
    "strides": "B = T.decl_buffer((2, 3), data=A.data, strides=[4, 1])\nC[0] = B[1, 2]",
    "rows": "for i in range(2):\n    B = T.decl_buffer((4,), data=A.data, elem_offset=i * 4)\n    C[i] = B[3]",
    "sizes": "B = T.decl_buffer((n * 4,), data=N.data)\nfor i in range(n):\n    C[0] = B[i * 4 + 3]",
    "rows of sizes": "for i in range(n):\n    B = T.decl_buffer((4,), data=N.data, elem_offset=i * 4)\n    C[0] = B[3]",
    "under a condition": "if n >= 2:\n    B = T.decl_buffer((8,), data=N.data)\n    C[0] = B[7]",
    "nothing": "B = T.decl_buffer((0,), data=A.data)\nfor i in range(0):\n    C[0] = B[i]",
    "a pointer with a name": (
        "with T.LetStmt(T.address_of(A[4])) as p:\n    B = T.decl_buffer((4,), data=p)\n    C[0] = B[3]"
    ),
    "sizes that are related": (
        "assert m <= n * 4, 'too many'\nB = T.decl_buffer((m,), data=N.data)\nfor i in range(m):\n    C[0] = B[i]"
    ),
    "pointers": "T.evaluate(T.call_extern('int32', 'f', A.data, A.access_ptr('r'), N.access_ptr('rw')))",
    "a pointer under a condition": (
        "with T.LetStmt(I[0]) as k:\n    if 0 <= k and k < 8:\n"
        "        T.evaluate(T.call_extern('int32', 'f', A.access_ptr('r', offset=k, extent=1)))"
    ),
    "a row of a matched region": (
        "for i in range(4):\n    with T.block('b'):\n        v = T.axis.spatial(4, i)\n"
        "        T.reads(A[v * 2 : v * 2 + 2])\n        T.writes()\n"
        "        X = T.match_buffer(A[v * 2 : v * 2 + 2], (2,), offset_factor=1)\n"
        "        T.evaluate(T.call_extern('int32', 'f', X.access_ptr('r'), X.access_ptr('r', offset=1, extent=1)))"
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_what_fits_passes(name: str) -> None:
    check_program(program(FITS[name]))


def call(*arguments: str) -> str:
    return f"T.evaluate(T.call_extern('int32', 'f', {', '.join(arguments)}))"


POINTERS = {
    "A.access_ptr('r', offset=9)": (PointerOutOfRange, "reaches byte 35 of the memory of A, which has 32"),
    "A.access_ptr('r', offset=4, extent=5)": (PointerOutOfRange, "reaches byte 35 of the memory of A"),
    "A.access_ptr('r', offset=-1, extent=1)": (PointerOutOfRange, "begins 4 bytes before the memory of A"),
    "A.access_ptr('r', offset=i * 2, extent=4)": (PointerOutOfRange, "reaches byte 39 of the memory of A"),
    "A.access_ptr('r', offset=I[i], extent=1)": (PointerOutOfRange, "is not proved to stay inside the memory of A"),
    "N.access_ptr('r', offset=4, extent=4)": (PointerOutOfRange, "reaches byte .* of the memory of N"),
    "T.address_of(A[8])": (OutOfBounds, r"A\[8\] is outside its shape \(8,\)"),
    "T.address_of(A[i - 1])": (OutOfBounds, r"A\[-1\] is outside its shape"),
    "T.address_of(N[n, 0])": (OutOfBounds, r"N\[0, 0\] is outside its shape \(0, 4\)"),
}


@pytest.mark.parametrize("pointer", POINTERS)
def test_a_pointer_outside_is_refused(pointer: str) -> None:
    error, message = POINTERS[pointer]
    with pytest.raises(error, match=message):
        check_program(program(f"for i in range(4):\n    {call(pointer)}"))


MATCHED = """
for i in range(4):
    with T.block("b"):
        v = T.axis.spatial(4, i)
        T.reads(A[0:8], I[v])
        T.writes()
        X = T.match_buffer(A[{start} : {start} + 3], (3,), offset_factor=1)
        T.evaluate(T.call_extern("int32", "f", X.access_ptr("r"{options})))
"""


def test_a_pointer_to_a_region_that_leaves_its_buffer_is_refused() -> None:
    with pytest.raises(OutOfBounds, match=r"A\[8\] is outside its shape \(8,\)"):
        check_program(program(MATCHED.format(start="v * 2", options="")))
    with pytest.raises(RegionNotInside, match="the region of A that X is matched to is not proved to lie inside"):
        check_program(program(MATCHED.format(start="I[v]", options="")))
    with pytest.raises(PointerOutOfRange, match="reaches byte 15 of the memory of X, which has 12"):
        check_program(program(MATCHED.format(start="v", options=", offset=1, extent=3")))
    check_program(program(MATCHED.format(start="v", options=", offset=1, extent=2")))


def test_a_prefetch_may_point_anywhere() -> None:
    check_program(
        program("for i in range(8):\n    T.call_intrin('void', 'tir.prefetch', T.address_of(A[i + 9]), 0, 3, 1)")
    )


COPY = """
@T.prim_func
def f(A: T.Buffer((8,)), I: T.Buffer((1,), "int32"), C: T.Buffer((1,))):
    T.evaluate(T.call_extern("handle", "memcpy", C.data, T.address_of(A[I[0]]), T.int64(4)))
"""


def test_an_address_that_data_decides_is_checked_when_the_program_runs() -> None:
    copy = loopwright.build(from_source(COPY))

    def element(k: int) -> float:
        A, C = guarded(np.arange(8, dtype="float32")), guarded(np.zeros(1, "float32"))
        copy(A, guarded(np.array([k], "int32")), C)
        return float(C[0])

    assert in_child(element, 7) == 7.0
    for wrong in (8, -1, 10**9):
        with pytest.raises(IndexOutOfRange, match=rf"f: reads A\[{wrong}\], which is outside its shape \(8,\)"):
            in_child(element, wrong)


def test_views_that_fit_touch_nothing_else() -> None:
    rows = loopwright.build(
        from_source("""
@T.prim_func
def f(A: T.Buffer((6,)), C: T.Buffer((6,))):
    for i in range(2):
        B = T.decl_buffer((3,), data=A.data, elem_offset=i * 3)
        D = T.decl_buffer((12,), "int8", data=C.data, elem_offset=i * 12)
        for j in range(3):
            T.evaluate(
                T.call_extern(
                    "handle", "memcpy", D.access_ptr("w", offset=j * 4, extent=4), T.address_of(B[j]), T.int64(4)
                )
            )
""")
    )
    for at in ("start", "end"):

        def run(at: str = at) -> list[float]:
            C = guarded(np.zeros(6, "float32"), at)
            rows(guarded(np.arange(6, dtype="float32"), at), C)
            return [float(x) for x in C]

        assert in_child(run) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_what_is_allocated_has_room_for_its_offset() -> None:
    turned = loopwright.build(
        from_source("""
@T.prim_func
def f(A: T.Buffer((64,)), C: T.Buffer((64,))):
    B = T.alloc_buffer((64,), elem_offset=90000)
    for i in range(64):
        B[i] = A[63 - i]
    for i in range(64):
        C[i] = B[i] * B[63 - i]
""")
    )

    def run() -> bool:
        A, C = guarded(np.arange(64, dtype="float32")), guarded(np.zeros(64, "float32"))
        turned(A, C)
        return bool(np.array_equal(C, A * A[::-1]))

    assert in_child(run)


def test_a_region_is_matched_with_its_own_type() -> None:
    bytes_as_longs = program(
        "with T.block('b'):\n    T.reads(I[0:2])\n    T.writes(C[0])\n"
        "    B = T.match_buffer(I[0:2], (2,), 'int64')\n    C[0] = T.float32(B[1])"
    )
    with pytest.raises(
        RegionDoesNotMatch, match=r"match_buffer B: declared dtype int64, but the region of I.* has int32"
    ):
        loopwright.lower(bytes_as_longs)
