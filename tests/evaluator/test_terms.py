"""Programs on terms: what counts as the same computation, and what does not."""

from __future__ import annotations

import pytest

from loopwright.evaluator import difference, evaluate_terms
from loopwright.evaluator.errors import DataDependent, OutOfBounds, Race, UninitialisedRead
from loopwright.evaluator.term import text
from loopwright.ir import (
    LT,
    Allocate,
    And,
    Block,
    BlockRealize,
    Broadcast,
    BufferLoad,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    GlobalVar,
    IfThenElse,
    IRModule,
    IterVar,
    LetStmt,
    Not,
    Or,
    PrimFunc,
    Ramp,
    Select,
    SeqStmt,
    Var,
    const,
    decl_buffer,
    intrinsics,
    pointer,
)
from loopwright.ir.operators import floordiv, floormod
from loopwright.runtime.call_errors import ArgumentKindMismatch, RankMismatch
from loopwright.script import from_source


def serial(var, extent, body, kind=ForKind.SERIAL):
    return For(var, const(0), extent, kind, body)


def product(order="ijk", n=2, start=0.0, update=None, kinds=None):
    """C = A · B with the loops in the given order."""
    A, B, C = (decl_buffer((n, n), name=name) for name in "ABC")
    i, j, k, vi, vj, vk = (Var(name) for name in ("i", "j", "k", "vi", "vj", "vk"))
    axes = (IterVar((0, n), vi, IterVar.DataPar), IterVar((0, n), vj, IterVar.DataPar))
    value = C[vi, vj] + A[vi, vk] * B[vk, vj] if update is None else update(C[vi, vj], A[vi, vk], B[vk, vj])
    block = Block(
        (*axes, IterVar((0, n), vk, IterVar.CommReduce)),
        (),
        (C[vi : vi + 1, vj : vj + 1],),
        "C",
        BufferStore(C, value, [vi, vj]),
        init=BufferStore(C, const(start, "float32"), [vi, vj]),
    )
    body = BlockRealize((i, j, k), True, block)
    for name in reversed(order):
        body = serial({"i": i, "j": j, "k": k}[name], n, body, (kinds or {}).get(name, ForKind.SERIAL))
    return PrimFunc([A, B, C], body)


def test_a_reduction_is_written_as_a_multiset():
    terms = evaluate_terms(product())
    assert str(terms["C"][0, 1]) == "reduce(0.0; (□ + (A[0, 0] * B[0, 1])), (□ + (A[0, 1] * B[1, 1])))"
    assert str(terms["A"][1, 0]) == "A[1, 0]"


@pytest.mark.parametrize("order", ["ikj", "jik", "jki", "kij", "kji"])
def test_the_order_of_a_sum_does_not_matter(order):
    assert difference(evaluate_terms(product()), evaluate_terms(product(order))) is None


def test_another_start_value_is_another_result():
    found = difference(evaluate_terms(product()), evaluate_terms(product(start=-0.0)))
    assert found.startswith("C[0, 0] holds reduce(0.0; ") and "in one and reduce(-0.0; " in found


def test_an_update_made_twice_is_found():
    A, C = decl_buffer((4,), name="A"), decl_buffer((1,), name="C")

    def total(extent, value):
        vk, k = Var("vk"), Var("k")
        block = Block(
            (IterVar((0, 4), vk, IterVar.CommReduce),),
            (),
            (C[0:1],),
            "C",
            BufferStore(C, C[0] + A[vk], [0]),
            init=BufferStore(C, const(0.0, "float32"), [0]),
        )
        return PrimFunc([A, C], serial(k, extent, BlockRealize((value(k),), True, block)))

    once = evaluate_terms(total(4, lambda k: k))
    assert difference(once, evaluate_terms(total(4, lambda k: 3 - k))) is None
    assert "A[3]), (□ + A[3])" in difference(once, evaluate_terms(total(5, lambda k: intrinsics.minimum(k, const(3)))))
    assert difference(once, evaluate_terms(total(3, lambda k: k))) is not None


def test_an_update_lost_between_two_inits_is_found():
    """Init when the reduction axes are at their start: wrong once data and reduction are fused, split and reordered."""
    A, C = decl_buffer((2, 3), name="A"), decl_buffer((2,), name="C")
    fo, fi = Var("fo"), Var("fi")
    fused = fi * 2 + fo
    i, k = floordiv(fused, 3), floormod(fused, 3)
    vi, vk = Var("vi"), Var("vk")
    axes = (IterVar((0, 2), vi, IterVar.DataPar), IterVar((0, 3), vk, IterVar.CommReduce))
    update, start = BufferStore(C, C[vi] + A[vi, vk], [vi]), BufferStore(C, const(0.0, "float32"), [vi])
    right = Block(axes, (), (C[vi : vi + 1],), "C", update, init=start)
    wrong = Block(axes, (), (C[vi : vi + 1],), "C", SeqStmt((IfThenElse(vk.equal(0), start), update)))
    plain_i, plain_k = Var("i"), Var("k")
    meant = PrimFunc([A, C], serial(plain_i, 2, serial(plain_k, 3, BlockRealize((plain_i, plain_k), True, right))))
    good = PrimFunc([A, C], serial(fo, 2, serial(fi, 3, BlockRealize((i, k), True, right))))
    bad = PrimFunc([A, C], serial(fo, 2, serial(fi, 3, BlockRealize((i, k), True, wrong))))
    expected = evaluate_terms(meant)
    assert difference(expected, evaluate_terms(good)) is None
    assert difference(expected, _or_error(bad)) is not None


def _or_error(func):
    try:
        return evaluate_terms(func)
    except UninitialisedRead:
        return {}


def test_operands_commute_where_values_do():
    swapped = product(update=lambda c, a, b: b * a + c)
    assert difference(evaluate_terms(product()), evaluate_terms(swapped)) is None
    other = product(update=lambda c, a, b: c - a * b)
    assert difference(evaluate_terms(product()), evaluate_terms(other)) is not None


def argmax(order, ties="least index", dtype="int32"):
    A = decl_buffer((2, 3), dtype, name="A")
    V, I = decl_buffer((2,), dtype, name="V"), decl_buffer((2,), "int32", name="I")
    vi, vk, i, k = (Var(name) for name in ("vi", "vk", "i", "k"))
    value, index = Var("value", dtype), Var("index")
    better = {
        "least index": Or(V[vi] > A[vi, vk], And(V[vi].equal(A[vi, vk]), I[vi] < vk)),
        "greatest index": Or(V[vi] > A[vi, vk], And(V[vi].equal(A[vi, vk]), I[vi] > vk)),
        "first": V[vi] >= A[vi, vk],
        "last": V[vi] > A[vi, vk],
    }[ties]
    stores = SeqStmt((BufferStore(V, value, [vi]), BufferStore(I, index, [vi])))
    update = LetStmt(value, Select(better, V[vi], A[vi, vk]), LetStmt(index, Select(better, I[vi], vk), stores))
    start = SeqStmt((BufferStore(V, const(-1, dtype), [vi]), BufferStore(I, const(-1), [vi])))
    axes = (IterVar((0, 2), vi, IterVar.DataPar), IterVar((0, 3), vk, IterVar.CommReduce))
    block = Block(axes, (), (V[vi : vi + 1], I[vi : vi + 1]), "argmax", update, init=start)
    if order == "backwards":
        return PrimFunc([A, V, I], serial(i, 2, serial(k, 3, BlockRealize((i, 2 - k), True, block))))
    body = BlockRealize((i, k), True, block)
    for name in reversed(order):
        body = serial({"i": i, "k": k}[name], {"i": 2, "k": 3}[name], body)
    return PrimFunc([A, V, I], body)


def test_tuple_reductions_fold_together():
    first = evaluate_terms(argmax("ik"))
    assert difference(first, evaluate_terms(argmax("ki"))) is None
    assert difference(first, evaluate_terms(argmax("backwards"))) is None
    assert difference(first, evaluate_terms(argmax("ik", "greatest index"))) is not None
    assert str(first["I"][0]).startswith("reduce(-1, -1; (Select(((□ > A[0, 0]) or ((□ == A[0, 0]) and (□1 < 0))), □,")
    assert text(first["I"][0], 2000).endswith("[1]")


@pytest.mark.parametrize(
    ("ties", "dtype"), [("first", "int32"), ("last", "int32"), ("first", "float32"), ("least index", "float32")]
)
def test_an_argmax_that_depends_on_the_order_is_a_chain(ties, dtype):
    """Of equal values the first or the last counts; and a NaN, for which no comparison holds, wins or loses by it."""
    first = evaluate_terms(argmax("ik", ties, dtype))
    assert difference(first, evaluate_terms(argmax("ki", ties, dtype))) is None
    assert difference(first, evaluate_terms(argmax("backwards", ties, dtype))) is not None
    assert "reduce" not in str(first["I"][0])


def updates(order, *made, dtype="int32"):
    """C[0] updated in a block over a reduction axis, once for each k in `order`; then by the other blocks."""
    A, C = decl_buffer((3,), dtype, name="A"), decl_buffer((1,), dtype, name="C")
    parts = []
    for number, update in enumerate(made):
        v = Var("v")
        block = Block(
            (IterVar((0, 3), v, IterVar.CommReduce),),
            (),
            (C[0:1],),
            f"C{number}",
            BufferStore(C, update(C[0], A[v]), [0]),
        )
        parts.append(block)
    turns = [BlockRealize((const(k),), True, block) for k in order for block in parts]
    return PrimFunc([A, C], SeqStmt((BufferStore(C, const(0, dtype), [0]), *turns)))


FREE = [
    lambda c, a: c + a,
    lambda c, a: a - (a * a - c),
    lambda c, a: c - a,
    lambda c, a: c * a,
    lambda c, a: c + c * a,
    lambda c, a: c + a * a + 1,
    lambda c, a: Select(a > 0, c + a, c),
    lambda c, a: Select(a > c, a, c),
    lambda c, a: Select(a >= c, a, c),
    lambda c, a: c ^ a,
    lambda c, a: (c.astype("int64") + a.astype("int64")).astype("int32"),
]

IN_ORDER = [
    lambda c, a: c * 2 + a,
    lambda c, a: a - c,
    lambda c, a: Select(a > 0, a, c),
    lambda c, a: Select(c > 0, c + a, c),
    lambda c, a: c + a + c,
    lambda c, a: intrinsics.minimum(intrinsics.maximum(c + a, const(-8)), const(7)),
    lambda c, a: intrinsics.minimum(intrinsics.maximum(c, a), a * 2),
    lambda c, a: floordiv(c + a, 2),
    lambda c, a: (c & a) | (a ^ 1),
    lambda c, a: intrinsics.maximum(c.astype("int8").astype("int32"), a),
    lambda c, a: c.astype("int8").astype("int32") + a,
]


@pytest.mark.parametrize("update", FREE)
def test_updates_that_commute_are_a_multiset(update):
    assert difference(evaluate_terms(updates((0, 1, 2), update)), evaluate_terms(updates((2, 0, 1), update))) is None
    assert difference(evaluate_terms(updates((0, 1, 2), update)), evaluate_terms(updates((0, 1, 1), update)))


@pytest.mark.parametrize("update", IN_ORDER)
def test_updates_that_do_not_commute_are_nested(update):
    assert difference(evaluate_terms(updates((0, 1, 2), update)), evaluate_terms(updates((2, 0, 1), update)))


def test_two_reductions_of_one_cell_are_a_multiset_where_they_commute():
    add, twice = lambda c, a: c + a, lambda c, a: c + c * a
    one, other = updates((0, 1, 2), add, lambda c, a: c - a), updates((2, 1, 0), add, lambda c, a: c - a)
    assert difference(evaluate_terms(one), evaluate_terms(other)) is None
    one, other = updates((0, 1, 2), add, twice), updates((2, 1, 0), add, twice)
    assert difference(evaluate_terms(one), evaluate_terms(other)) is not None


def test_an_update_that_keeps_its_cell_leaves_no_trace():
    keep = lambda c, a: Select(const(False), a, c)
    assert str(evaluate_terms(updates((0, 1, 2), keep))["C"][0]) == "0"


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_floats_keep_their_order_where_a_nan_shows_it(dtype):
    by_hand = lambda c, a: Select(c > a, c, a)
    one, other = updates((0, 1, 2), by_hand, dtype=dtype), updates((2, 1, 0), by_hand, dtype=dtype)
    assert difference(evaluate_terms(one), evaluate_terms(other)) is not None
    wide = lambda c, a: (c.astype("float64") + a.astype("float64")).astype(dtype)
    for update in (intrinsics.maximum, intrinsics.minimum, wide):
        one, other = updates((0, 1, 2), update, dtype=dtype), updates((2, 1, 0), update, dtype=dtype)
        assert difference(evaluate_terms(one), evaluate_terms(other)) is None


def test_reductions_of_reductions():
    """S = Σ exp(A - max A): the sum's updates hold a finished reduction."""

    def program(backwards):
        A, M, S = decl_buffer((3,), name="A"), decl_buffer((1,), name="M"), decl_buffer((1,), name="S")
        parts = []
        for C, least in ((M, -1.0), (S, 0.0)):
            v, k = Var("v"), Var("k")
            value = intrinsics.maximum(M[0], A[v]) if C is M else S[0] + intrinsics.exp(A[v] - M[0])
            block = Block(
                (IterVar((0, 3), v, IterVar.CommReduce),),
                (),
                (C[0:1],),
                C.name,
                BufferStore(C, value, [0]),
                init=BufferStore(C, const(least, "float32"), [0]),
            )
            parts.append(serial(k, 3, BlockRealize((2 - k if backwards else k,), True, block)))
        return PrimFunc([A, M, S], SeqStmt(tuple(parts)))

    forth = evaluate_terms(program(False))
    assert difference(forth, evaluate_terms(program(True))) is None
    assert str(forth["S"][0]).count("reduce(-1.0; ") == 3
    for option in (False, True):
        found = evaluate_terms(program(True), all_reductions=option)
        assert difference(forth, found) is None


def test_a_single_update_is_simply_applied():
    terms = evaluate_terms(product(n=1))
    assert str(terms["C"][0, 0]) == "(0.0 + (A[0, 0] * B[0, 0]))"


def test_a_reader_sees_the_updates_so_far():
    A, C, D = decl_buffer((2,), name="A"), decl_buffer((1,), name="C"), decl_buffer((2,), name="D")
    vk, k = Var("vk"), Var("k")
    block = Block(
        (IterVar((0, 2), vk, IterVar.CommReduce),),
        (),
        (C[0:1],),
        "C",
        BufferStore(C, C[0] + A[vk], [0]),
        init=BufferStore(C, const(0.0, "float32"), [0]),
    )
    prefix = serial(k, 2, SeqStmt((BlockRealize((k,), True, block), BufferStore(D, C[0], [k]))))
    terms = evaluate_terms(PrimFunc([A, C, D], prefix))
    assert str(terms["D"][0]) == "(0.0 + A[0])"
    assert terms["D"][1] is terms["C"][0]


def flat_sum(order):
    """C = the sums of the rows of A, without blocks."""
    A, C = decl_buffer((2, 3), name="A"), decl_buffer((2,), name="C")
    i, j, k = Var("i"), Var("j"), Var("k")
    body = BufferStore(C, C[i] + A[i, k], [i])
    for name in reversed(order):
        body = serial({"i": i, "k": k}[name], {"i": 2, "k": 3}[name], body)
    return PrimFunc([A, C], SeqStmt((serial(j, 2, BufferStore(C, const(0.0, "float32"), [j])), body)))


def test_plain_statements_keep_their_order_unless_all_reductions_are_asked_for():
    assert difference(evaluate_terms(flat_sum("ik")), evaluate_terms(flat_sum("ki"))) is None
    A, C = decl_buffer((2,), name="A"), decl_buffer((1,), name="C")
    add = lambda k: BufferStore(C, C[0] + A[k], [0])
    forth, back = PrimFunc([A, C], SeqStmt((add(0), add(1)))), PrimFunc([A, C], SeqStmt((add(1), add(0))))
    assert difference(evaluate_terms(forth), evaluate_terms(back)) is not None
    loose = {"all_reductions": True}
    assert difference(evaluate_terms(forth, **loose), evaluate_terms(back, **loose)) is None


def test_all_reductions_lets_lowered_code_compare_with_blocks():
    A, B, C = (decl_buffer((2, 2), name=name) for name in "ABC")
    i, j, k = Var("i"), Var("j"), Var("k")
    update = BufferStore(C, C[i, j] + A[i, k] * B[k, j], [i, j])
    flat = serial(i, 2, serial(j, 2, SeqStmt((BufferStore(C, const(0.0, "float32"), [i, j]), serial(k, 2, update)))))
    found = evaluate_terms(PrimFunc([A, B, C], flat), all_reductions=True)
    assert difference(evaluate_terms(product()), found) is None


def test_vector_code_compares_with_its_loop():
    A, B, i = decl_buffer((4,), name="A"), decl_buffer((4,), name="B"), Var("i")
    two = const(2.0, "float32")
    loop = PrimFunc([A, B], serial(i, 4, BufferStore(B, A[i] * two, [i])))
    lockstep = PrimFunc([A, B], serial(i, 4, BufferStore(B, A[i] * two, [i]), ForKind.VECTORIZED))
    whole = Ramp(const(0), const(1), 4)
    vector = PrimFunc([A, B], BufferStore(B, BufferLoad(A, [whole]) * Broadcast(two, 4), [whole]))
    expected = evaluate_terms(loop)
    assert difference(expected, evaluate_terms(lockstep)) is None
    assert difference(expected, evaluate_terms(vector)) is None


def test_vectorizing_a_data_loop_of_a_reduction_is_right_and_of_its_reduction_loop_wrong():
    expected = evaluate_terms(product())
    assert difference(expected, evaluate_terms(product("ikj", kinds={"j": ForKind.VECTORIZED}))) is None
    assert difference(expected, evaluate_terms(product("ijk", kinds={"k": ForKind.VECTORIZED}))) is not None


def test_copies_through_memory_disappear():
    A, B = decl_buffer((3,), name="A"), decl_buffer((3,), name="B")
    data, i, j = pointer("T", "float32"), Var("i"), Var("j")
    T = decl_buffer((3,), name="T", data=data)
    staged = SeqStmt((serial(i, 3, BufferStore(T, A[2 - i], [i])), serial(j, 3, BufferStore(B, T[2 - j], [j]))))
    direct = PrimFunc([A, B], serial(i, 3, BufferStore(B, A[i], [i])))
    func = PrimFunc([A, B], Allocate(data, "float32", (const(3),), const(True), staged))
    assert difference(evaluate_terms(direct), evaluate_terms(func)) is None
    missing = PrimFunc([A, B], Allocate(data, "float32", (const(3),), const(True), staged.seq[1]))
    with pytest.raises(UninitialisedRead, match=r"reads T\[2\] before anything has written it at j=0"):
        evaluate_terms(missing)


def test_choices_on_data_are_terms():
    A, B, i = decl_buffer((2,), name="A"), decl_buffer((2,), name="B"), Var("i")
    zero = const(0.0, "float32")
    value = intrinsics.if_then_else(A[i] > zero, A[i], zero)
    terms = evaluate_terms(PrimFunc([A, B], serial(i, 2, BufferStore(B, value, [i]))))
    assert str(terms["B"][0]) == "if_then_else((A[0] > 0.0), A[0], 0.0)"
    known = intrinsics.if_then_else(i < 1, A[i], zero)
    terms = evaluate_terms(PrimFunc([A, B], serial(i, 2, BufferStore(B, known, [i]))))
    assert [str(term) for term in terms["B"]] == ["A[0]", "0.0"]


def test_vector_choices_and_logic_on_data():
    A, B, i = decl_buffer((2,), name="A"), decl_buffer((2,), name="B"), Var("i")
    zero = const(0.0, "float32")

    def value(a, at, zero, one):
        test = And(LT(at, one), LT(zero, a))
        return intrinsics.call_intrin(a.dtype, "tir.if_then_else", Not(test), a, zero)

    loop = PrimFunc([A, B], serial(i, 2, BufferStore(B, value(A[i], i, zero, const(1)), [i])))
    whole = Ramp(const(0), const(1), 2)
    vector = value(BufferLoad(A, [whole]), whole, Broadcast(zero, 2), Broadcast(const(1), 2))
    expected = evaluate_terms(loop)
    assert [str(term) for term in expected["B"]] == ["if_then_else(Not((0.0 < A[0])), A[0], 0.0)", "A[1]"]
    assert difference(expected, evaluate_terms(PrimFunc([A, B], BufferStore(B, vector, [whole])))) is None


def test_control_on_data_is_refused():
    A, i = decl_buffer((2,), "int32", name="A"), Var("i")
    branch = IfThenElse(A[i] > 0, BufferStore(A, const(1), [i]))
    with pytest.raises(DataDependent, match=r"the program is steered by the value \(A\[0\] > 0\) at i=0 .LW0809"):
        evaluate_terms(PrimFunc([A], serial(i, 2, branch)))
    with pytest.raises(DataDependent, match=r"steered by the value A\[0\] at i=0"):
        evaluate_terms(PrimFunc([A], serial(i, 2, BufferStore(A, const(1), [A[i]]))))


def test_arguments_are_shapes_and_numbers():
    n, x = Var("n"), Var("x", "float32")
    A, B, i = decl_buffer((n,), name="A"), decl_buffer((n,), name="B"), Var("i")
    func = PrimFunc([A, B, x], serial(i, n, BufferStore(B, A[i] * x, [i])))
    terms = evaluate_terms(func, (2,), 2, None)
    assert [str(term) for term in terms["B"]] == ["(A[0] * x)", "(A[1] * x)"]
    assert evaluate_terms(func, 0, 0, 1.0)["B"].shape == (0,)
    with pytest.raises(ArgumentKindMismatch, match="main: give the shape of argument A; it is symbolic"):
        evaluate_terms(func)
    with pytest.raises(RankMismatch, match="argument A has 2 dimensions, expected 1"):
        evaluate_terms(func, (2, 2), 2, 1.0)
    with pytest.raises(OutOfBounds, match=r"reads A\[2\]"):
        evaluate_terms(PrimFunc([A, B], serial(i, n + 1, BufferStore(B, A[i], [0]))), 2, 2)


def test_strided_arguments():
    A, B = decl_buffer((2, 2), name="A", strides=[5, 2]), decl_buffer((2, 2), name="B")
    i, j = Var("i"), Var("j")
    func = PrimFunc([A, B], serial(i, 2, serial(j, 2, BufferStore(B, A[i, j], [j, i]))))
    assert str(evaluate_terms(func)["B"][1, 0]) == "A[0, 1]"


def test_calls_between_functions():
    A, x, i = decl_buffer((2,), name="A"), decl_buffer((2,), name="x"), Var("i")
    inner = PrimFunc([x], serial(i, 2, BufferStore(x, intrinsics.exp(x[i]), [i])))
    outer = PrimFunc([A], Evaluate(intrinsics.call_tir(GlobalVar("inner"), A.data)))
    terms = evaluate_terms(IRModule({"main": outer, "inner": inner}))
    assert str(terms["A"][1]) == "exp(A[1])"


# --- races --------------------------------------------------------------------------------------------------------


def test_parallel_data_loop_has_no_race():
    evaluate_terms(product(kinds={"i": ForKind.PARALLEL}), check_races=True)


def test_parallel_reduction_loop_races():
    func = product("ikj", kinds={"k": ForKind.PARALLEL})
    with pytest.raises(Race, match=r"parallel loop k: iterations k=0 and k=1 both touch C\[0, 0\] .LW0810") as info:
        evaluate_terms(func, check_races=True)
    assert info.value.fields["iterations"] == (0, 1)
    evaluate_terms(func)


def test_reading_what_another_iteration_writes_races():
    A, i = decl_buffer((4,), name="A"), Var("i")
    ahead = serial(i, 3, BufferStore(A, A[i + 1], [i]), ForKind.PARALLEL)
    with pytest.raises(Race, match=r"iterations i=0 and i=1 both touch A\[1\]") as info:
        evaluate_terms(PrimFunc([A], ahead), check_races=True)
    assert info.value.why == "the second writes what the first reads"
    behind = serial(i, 3, BufferStore(A, A[i], [i + 1]), ForKind.PARALLEL)
    with pytest.raises(Race) as info:
        evaluate_terms(PrimFunc([A], behind), check_races=True)
    assert info.value.why == "the first writes what the second reads"


def test_memory_inside_the_loop_is_private():
    A, i = decl_buffer((4,), name="A"), Var("i")
    data = pointer("T", "float32")
    T = decl_buffer((1,), name="T", data=data)
    use = SeqStmt((BufferStore(T, A[i], [0]), BufferStore(A, T[0] + 1.0, [i])))
    inside = serial(i, 4, Allocate(data, "float32", (const(1),), const(True), use), ForKind.PARALLEL)
    evaluate_terms(PrimFunc([A], inside), check_races=True)
    outside = Allocate(data, "float32", (const(1),), const(True), serial(i, 4, use, ForKind.PARALLEL))
    with pytest.raises(Race, match=r"iterations i=0 and i=1 both touch T\[0\]"):
        evaluate_terms(PrimFunc([A], outside), check_races=True)


def test_deep_terms_print():
    A = decl_buffer((1,), name="A")
    value = A[0]
    for _ in range(5_000):
        value = intrinsics.exp(value)
    text = str(evaluate_terms(PrimFunc([A], BufferStore(A, value, [0])))["A"][0])
    assert text.startswith("exp(exp(") and text.endswith("…")


def test_calls_with_effects_have_a_number_and_an_order():
    A, i = decl_buffer((3,), "int32", name="A"), Var("i")

    def told(*values):
        return SeqStmt(tuple([Evaluate(intrinsics.call_packed("tell", value)) for value in values]))

    both = evaluate_terms(PrimFunc([A], told(A[0], A[1])))
    assert str(both["(calls)"][0]) == "after(A[1], after(A[0], (calls)[0]))"
    assert difference(both, evaluate_terms(PrimFunc([A], told(A[0], A[1])))) is None
    for other in (told(A[1], A[0]), told(A[0], A[1], A[1]), told(A[0], A[2])):
        assert "(calls)[0] holds" in difference(both, evaluate_terms(PrimFunc([A], other)))
    assert "the buffers differ" in difference(both, evaluate_terms(PrimFunc([A], Evaluate(const(0)))))
    at_once = serial(i, 3, Evaluate(intrinsics.call_packed("tell", i)), ForKind.PARALLEL)
    with pytest.raises(Race, match=r"iterations i=0 and i=1 both touch \(calls\)\[0\]"):
        evaluate_terms(PrimFunc([A], at_once), check_races=True)
    pure = serial(i, 3, BufferStore(A, intrinsics.call_pure_extern("int32", "f", i), [i]), ForKind.PARALLEL)
    assert list(evaluate_terms(PrimFunc([A], pure), check_races=True)) == ["A"]


def test_a_field_that_is_given_a_number_while_another_takes_what_it_held():
    function = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer((3,), "int32"), X: T.Buffer((1,), "int32"), Y: T.Buffer((1,), "int32")):
    for k in range(3):
        with T.block("X"):
            r = T.axis.reduce(3, k)
            with T.init():
                X[0] = 1
                Y[0] = 0
            y: T.int32 = Y[0] + X[0] + A[r]
            X[0] = 3
            Y[0] = y
""")
    terms = evaluate_terms(function)
    assert text(terms["X"].flat[0]) == "3"
    held = text(terms["Y"].flat[0])
    assert held.count("3") == 2
    assert all(f"A[{k}]" in held for k in range(3))
