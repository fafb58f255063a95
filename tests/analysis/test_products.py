"""A loop variable times a size known only at run time: what is proved of it, and that nothing wrong is."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright import te, tir
from loopwright.analysis import OutOfBounds, ParallelRace, check_bounds, check_races
from loopwright.analysis.accesses import accesses_of
from loopwright.analysis.loop_carried import Loop, carries
from loopwright.analysis.products import coefficient_of
from loopwright.analysis.races import prove_no_race
from loopwright.arith.affine import constant
from loopwright.arith.affine_reader import Affine
from loopwright.ir import BufferStore, For, ForKind, Let, PrimFunc, Var, const, decl_buffer
from loopwright.schedule.errors import NotProved
from loopwright.script import tir as T
from tests.campaign import programs

n = Var("n")


def test_a_product_has_a_form_where_the_loop_is_short():
    affine, short, long = Affine(), Var("i"), Var("j")
    affine.own(short, constant(0), constant(3))
    affine.own(long, constant(0), constant(999))
    form = affine.form((short * 2 + 1) * (n + 3) + 5)
    assert form is not None
    assert form.at({short: 3, n: 10}) == 7 * 13 + 5
    step, rest = coefficient_of(form, short)
    assert step.at({n: 10}) == 2 * 13 and rest.at({n: 10}) == 13 + 5
    assert affine.form(long * n) is None and affine.form(short * long) is None and affine.form(n * n) is None
    loose = affine.loose_form(long * n + n * n)
    assert loose is not None and loose.at({long: 7, n: 3}) == 30
    assert affine.form(short * n).key == affine.form(n * short).key


def test_what_only_a_loose_form_holds_is_told_to_no_one():
    m, short, held = Var("m"), Var("i"), Var("held")
    affine = Affine()
    affine.own(short, constant(0), constant(3))
    assert affine.loose_form(short * (n * m // 2)) is not None
    (product,) = affine.products.values()
    assert affine.cases(product) is None  # no text for isl
    # The variable of a let has its value in later questions as well.
    inner = Let(held, n * m, held + 1)
    assert affine.loose_form(inner).at({n: 3, m: 5}) == 16
    assert affine.form(inner) is None and affine.form(held) is None
    assert affine.loose_form(inner).at({n: 3, m: 5}) == 16
    other = Var("other")
    assert affine.form(Let(other, n * m, other)) is None
    assert affine.loose_form(Let(other, n * m, other)).at({n: 3, m: 5}) == 15


def test_a_step_over_a_loose_product_is_refused_in_words():
    @T.prim_func
    def parts(a: T.handle, b: T.handle):
        n, m = T.int64(), T.int64()
        A = T.match_buffer(a, (n, m))
        B = T.match_buffer(b, (2, n * m // 2))
        C = T.alloc_buffer((n, m))
        for i, j in T.grid(n, m):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + T.float32(1)
        for i, j in T.grid(2, n * m // 2):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = C[(vi * (n * m // 2) + vj) // m, (vi * (n * m // 2) + vj) % m]

    with pytest.raises(NotProved, match="compute_inline could not be proved to keep every value"):
        tir.Schedule(parts).compute_inline("C")


def parts_of(size: int) -> PrimFunc:
    @T.prim_func
    def parts(b: T.handle):
        n = T.int32()
        B = T.match_buffer(b, (n,))
        for i in T.parallel(size):
            for j in range((n + size - 1) // size):
                if i * ((n + size - 1) // size) + j < n:
                    B[i * ((n + size - 1) // size) + j] = T.float32(1)

    return parts


@pytest.mark.parametrize("size", [2, 4, 16, 256])
def test_parts_do_not_meet(size):
    check_races(parts_of(size))
    program = accesses_of(parts_of(size))
    loop = next(loop for loop in program.accesses[0].loops if loop.kind is ForKind.PARALLEL)
    assert prove_no_race(program, loop.var) is None


def test_parts_that_are_one_too_long_meet():
    @T.prim_func
    def overlapping(b: T.handle):
        n = T.int32()
        B = T.match_buffer(b, (n * 4 + 1,))
        for i in T.parallel(4):
            for j in range(n + 1):
                B[i * n + j] = T.float32(1)

    with pytest.raises(ParallelRace) as caught:
        check_races(overlapping)
    pair, indices, (first, second) = caught.value.meeting
    assert [access.cell[1][0].at(values) for access, values in zip(pair, (first, second), strict=True)] == indices * 2
    assert caught.value.problem.startswith("iterations i = 0 and i = 1 of the parallel loop i both touch B[")
    assert "…" not in caught.value.why  # the product is no loop that anybody wrote


def test_an_index_past_the_end_is_found():
    @T.prim_func
    def too_far(b: T.handle):
        n = T.int32()
        B = T.match_buffer(b, (n * 3,))
        for i in range(4):
            for j in range(n):
                B[i * n + j] = T.float32(1)

    with pytest.raises(OutOfBounds, match=r"B\[3\]"):
        check_bounds(too_far)


def test_steps_of_an_unknown_sign_are_not_proved():
    @T.prim_func
    def strided(B: T.Buffer(64), m: T.int32):
        for i in T.parallel(100):
            for j in range(m):
                B[i * m + j] = T.float32(1)

    program = accesses_of(strided)
    assert prove_no_race(program, program.accesses[0].loops[0].var) is not None


def test_a_start_value_is_written_in_the_part_it_belongs_to():
    i, j, k = Var("i"), Var("j"), Var("k")
    zero = const(0, "int32")

    def around(inner: object) -> list[Loop]:
        return [Loop(i, zero, const(4, "int32")), Loop(j, zero, inner), Loop(k, zero, const(8, "int32"))]

    part = (n + 3) // 4
    assert not carries(around(part), 0, [i * part + j], [])
    assert carries(around(part + 1), 0, [i * part + j], [])
    assert carries(around(n), 0, [i * part + j], [])
    tiles = around((part + 7) // 8)
    assert carries(tiles, 0, [i * part + j * 8 + k], [])
    assert not carries(tiles, 0, [i * part + j * 8 + k], [j * 8 + k < part])
    assert carries(tiles, 0, [i * part + j * 8 - k], [j * 8 - k < part])


# --- against trying every iteration -------------------------------------------------------------------------------

SIZES = {
    "n": lambda n: n,
    "n + 1": lambda n: n + 1,
    "(n + 3) // 4": lambda n: (n + 3) // 4,
    "2 * n": lambda n: 2 * n,
}


@st.composite
def loops_and_index(draw):
    """Extents of two loops, and an index of one access or of two."""
    sizes = st.sampled_from(list(SIZES))
    outer = draw(st.one_of(st.sampled_from([2, 3, 4, 20]), sizes))
    inner = draw(st.one_of(st.sampled_from([1, 2, 3]), sizes))
    index = st.tuples(sizes, st.integers(-1, 2), st.integers(0, 2), st.integers(0, 1))
    return outer, inner, draw(st.lists(index, min_size=1, max_size=2))


@settings(max_examples=programs(60, 400), deadline=None)
@given(loops_and_index(), st.sampled_from([ForKind.PARALLEL]))
def test_what_is_proved_is_so(drawn, kind):
    outer, inner, indices = drawn
    size = te.size_var("n")
    values = {name: make(size) for name, make in SIZES.items()}
    i, j = Var("i"), Var("j")
    B = decl_buffer((size * 1000,), name="B")
    stores = [
        BufferStore(B, const(1.0, "float32"), [values[name] * i * a + j * b + c + values[name]])
        for name, a, b, c in indices
    ]
    body = stores[0] if len(stores) == 1 else tir.SeqStmt(stores)
    nest = For(j, const(0), values.get(inner, const(inner) if isinstance(inner, int) else None), ForKind.SERIAL, body)
    loop = For(i, const(0), values.get(outer, const(outer) if isinstance(outer, int) else None), kind, nest)
    function = PrimFunc([Var("b", "handle")], loop, buffer_map={}).with_(
        params=(handle := (Var("b", "handle"),)), buffer_map={handle[0]: B}
    )
    program = accesses_of(function)
    found = prove_no_race(program, i)

    def meets(number: int) -> bool:
        count = SIZES[outer](number) if isinstance(outer, str) else outer
        length = SIZES[inner](number) if isinstance(inner, str) else inner
        cells: dict[int, int] = {}
        for at, run, (name, a, b, c) in itertools.product(range(count), range(length), indices):
            q = SIZES[name](number)
            if cells.setdefault(q * at * a + run * b + c + q, at) != at:
                return True
        return False

    races = [number for number in range(9) if meets(number)]
    if found is None:
        assert not races
    if isinstance(found, ParallelRace):
        one, other = found.meeting[2]
        assert one[i] != other[i] and one[size] == other[size]

        def touched(at: Mapping[Var, int]) -> set[int]:
            return {SIZES[name](at[size]) * (at[i] * a + 1) + at[j] * b + c for name, a, b, c in indices}

        assert touched(one) & touched(other)  # not by trying: the witness may be a large size
