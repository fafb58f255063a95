"""What te schedules refuse, in words that a beginner can act on."""

from __future__ import annotations

import warnings

import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.schedule import ScheduleError
from loopwright.te.schedule import errors
from loopwright.te.schedule.tensor_intrin import BadTensorIntrin, StatementMissing
from loopwright.transform.errors import ThreadLoopOnCpu


def chain(n=8, m=8):
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] * 2, name="B")
    C = te.compute((n, m), lambda i, j: B[i, j] + 1, name="C")
    return A, B, C, te.create_schedule(C.op)


def reduction(n=8):
    A = te.placeholder((n, n), name="A")
    k = te.reduce_axis((0, n), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    return A, B, k, te.create_schedule(B.op)


def test_create_schedule():
    A, B, C, s = chain()
    with pytest.raises(errors.NotAnOperation, match=r"a Tensor is not an operation(.|\n)*te\.create_schedule\(C\.op\)"):
        te.create_schedule(C)
    with pytest.raises(TypeError, match=r"an int is not an operation"):
        te.create_schedule([C.op, 3])
    assert te.create_schedule([]).stages == []


def test_unknown_stages():
    A, B, C, s = chain()
    D = te.compute((4,), lambda i: A[i, 0], name="D")
    with pytest.raises(ValueError, match=r"D is not among what this schedule computes(.|\n)*the stages are A, B, C"):
        s[D]
    with pytest.raises(errors.UnknownStage, match=r"str 'C' is neither a tensor nor an operation"):
        s["C"]


def test_an_axis_that_was_split_names_its_parts_and_the_line():
    A, B, C, s = chain()
    i, j = C.op.axis
    s[C].split(i, factor=4)
    with pytest.raises(errors.AxisGone) as caught:
        s[C].reorder(j, i)
    message = str(caught.value)
    assert (
        "reorder: axis i of C is no loop any more: it was split into i.outer and i.inner at test_te_errors.py:"
        in message
    )
    assert "hint: use i.outer or i.inner; the loops of C are now i.outer, i.inner, j" in message
    assert caught.value.fields["parts"] == ["i.outer", "i.inner"]
    s[C].fuse(*s[C].leaf_iter_vars[1:])
    with pytest.raises(
        ValueError, match=r"vectorize: axis j of C is no loop any more: it was fused into i\.inner\.j\.fused"
    ):
        s[C].vectorize(j)
    with pytest.raises(errors.AxisGone, match=r"compute_at of B: axis j of C is no loop any more"):
        s[B].compute_at(s[C], j)
    with pytest.raises(errors.AxisGone, match="split: axis i of C"):
        s[C].split(i, factor=2)


def test_foreign_axes():
    A, B, C, s = chain()
    with pytest.raises(errors.ForeignAxis, match=r"unroll: axis i is no axis of C: it belongs to B(.|\n)*are i, j"):
        s[C].unroll(B.op.axis[0])
    with pytest.raises(ValueError, match=r"split: int 3 is no axis of C"):
        s[C].split(3, factor=2)
    with pytest.raises(errors.ForeignAxis, match=r"compute_at of B: axis k is no axis of C"):
        s[B].compute_at(s[C], te.reduce_axis((0, 4), name="k"))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "neither factor nor nparts is given"),
        ({"factor": 2, "nparts": 2}, "both factor and nparts are given"),
        ({"factor": 0}, "factor is 0"),
        ({"factor": -1}, "factor is -1"),
        ({"nparts": 2.5}, r"nparts is 2\.5"),
        ({"factor": "4"}, "factor is '4'"),
    ],
)
def test_bad_splits(options, match):
    A, B, C, s = chain()
    with pytest.raises(errors.BadSplit, match=match):
        s[C].split(C.op.axis[0], **options)
    assert s[C].leaf_iter_vars == list(C.op.axis)


def test_fuse_and_reorder():
    A = te.placeholder((2, 3, 4), name="A")
    B = te.compute((2, 3, 4), lambda i, j, k: A[i, j, k], name="B")
    s = te.create_schedule(B.op)
    i, j, k = B.op.axis
    with pytest.raises(
        errors.NotAdjacent, match=r"i and k of B do not stand next to each other; the loops are i, j, k"
    ):
        s[B].fuse(i, k)
    with pytest.raises(errors.BadReorder, match="reorder: i of B is named twice"):
        s[B].reorder(i, j, i)


def test_places():
    A, B, C, s = chain()
    with pytest.raises(errors.CannotAttach, match=r"B is not computed from C, so no iteration of i needs any of it"):
        s[C].compute_at(s[B], B.op.axis[0])
    with pytest.raises(errors.CannotAttach, match="C cannot be computed inside itself"):
        s[C].compute_at(s[C], C.op.axis[0])
    with pytest.raises(errors.CannotAttach, match="is no stage"):
        s[B].compute_at(C, C.op.axis[0])
    D = te.compute((8, 8), lambda i, j: C[i, j] + 1, name="D")
    t = te.create_schedule(D.op)
    t[B].compute_at(t[C], C.op.axis[0])
    t[C].compute_inline()
    with pytest.raises(errors.CannotAttach, match=r"B hangs at i of C, which is computed inside its readers"):
        lw.lower(t, [A, D])


def test_a_reader_outside_of_the_loop_is_shown():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 2, name="B")
    C = te.compute((8,), lambda i: B[7 - i] + 1, name="C")
    D = te.compute((8,), lambda i: B[i] + C[i], name="D")
    s = te.create_schedule(D.op)
    s[B].compute_at(s[D], D.op.axis[0])
    with pytest.raises(ScheduleError, match=r"compute_at would change a value(.|\n)*before iteration") as caught:
        lw.lower(s, [A, D])
    assert "call: s[B].compute_at(s[D], D.op.axis[0]) at test_te_errors.py" in str(caught.value)


def test_inlining():
    A, B, C, s = chain()
    with pytest.raises(errors.CannotInline, match="C is a result, which has to be stored"):
        s[C].compute_inline()
    with pytest.raises(errors.CannotInline, match=r"A is no te\.compute"):
        s[A].compute_inline()
    A, B, k, s = reduction()
    C = te.compute((8,), lambda i: B[i] + 1, name="C")
    with pytest.raises(errors.CannotInline, match="B is a reduction"):
        te.create_schedule(C.op)[B].compute_inline()
    D, E = te.compute((8,), lambda i: (B[i] + 1, B[i]), name="T")
    F = te.compute((8,), lambda i: D[i] + E[i], name="F")
    with pytest.raises(errors.CannotInline, match="T has 2 outputs"):
        te.create_schedule(F.op)[D].compute_inline()


def test_threads():
    A, B, C, s = chain()
    i, j = C.op.axis
    with pytest.raises(errors.CannotBind, match=r"bind: j is no thread axis(.|\n)*te\.thread_axis"):
        s[C].bind(i, j)
    s[C].bind(i, te.thread_axis((0, 4), "threadIdx.x"))
    with pytest.raises(
        errors.CannotBind, match=r"i of C runs 8 times, and there are 4 threads threadIdx\.x(.|\n)*nparts=4"
    ):
        lw.lower(s, [A, C])
    with pytest.warns(UserWarning, match=r"axis i of C was bound to threadIdx\.x already"):
        s[C].bind(i, te.thread_axis("blockIdx.x"))
    A, B, k, s = reduction()
    s[B].bind(k, te.thread_axis("threadIdx.x"))
    with pytest.raises(ThreadLoopOnCpu, match=r"loop k of extent 8 is bound to threadIdx\.x, which a CPU"):
        lw.lower(s, [A, B], target="llvm")


def test_two_loops_on_one_thread_axis():
    A, B, C, s = chain(8, 16)
    thread = te.thread_axis("threadIdx.x")
    s[B].compute_at(s[C], C.op.axis[0])
    outer, inner = s[C].split(C.op.axis[1], factor=4)
    s[C].bind(outer, thread)
    s[B].bind(s[B].op.axis[1], thread)
    with pytest.raises(errors.CannotBind) as caught:
        lw.lower(s, [A, C])
    assert "j of B runs 16 times and j.outer of C 4 times, but both are bound to threadIdx.x" in str(caught.value)
    assert "hint: split one of them, so that both run 4 times" in str(caught.value)


def test_caches():
    A, B, C, s = chain()
    with pytest.raises(errors.NotAReader, match=r"C does not read A; it reads B(.|\n)*A is read by B"):
        s.cache_read(A, "local", [C])
    with pytest.raises(ValueError, match="no reader of A is given"):
        s.cache_read(A, "local", [])
    with pytest.raises(errors.CannotCacheWrite, match=r"A is no te\.compute(.|\n)*cache_read"):
        s.cache_write(A, "local")
    with pytest.raises(errors.CannotCacheWrite, match="B, C come from different computes"):
        s.cache_write([B, C], "local")
    D, E = te.compute((8,), lambda i: (A[i, 0], A[i, 1]), name="T")
    t = te.create_schedule(D.op)
    with pytest.raises(errors.CannotCacheWrite, match=r"T has 2 outputs, and 1 of them are given(.|\n)*T\.v0, T\.v1"):
        t.cache_write(D, "local")
    s[C].vectorize(C.op.axis[1])
    with pytest.raises(errors.CannotCacheWrite, match=r"j of C is bound or marked already(.|\n)*cache_write first"):
        s.cache_write(C, "local")


def test_rfactor():
    A, B, k, s = reduction()
    with pytest.raises(errors.CannotFactor, match=r"i of B is a data axis(.|\n)*the reduction over k"):
        s.rfactor(B, B.op.axis[0])
    with pytest.raises(
        errors.CannotFactor, match=r"factor_axis is 2, but the new tensor has 2 dimensions(.|\n)*-2 to 1"
    ):
        s.rfactor(B, k, 2)
    ko, ki = s[B].split(k, factor=2)
    with pytest.raises(errors.AxisGone, match="rfactor: axis k of B"):
        s.rfactor(B, k)
    s[B].reorder(ko, B.op.axis[0], ki)
    fused = s[B].fuse(ko, B.op.axis[0])
    with pytest.raises(errors.CannotFactor, match=r"is made of the data axis i as well"):
        s.rfactor(B, fused)
    with pytest.raises(errors.CannotFactor, match="C is no reduction"):
        C = te.compute((8,), lambda i: B[i], name="C")
        te.create_schedule(C.op).rfactor(C, C.op.axis[0])
    r = te.reduce_axis((1, 8), name="r")
    D = te.compute((8,), lambda i: te.sum(A[i, r], axis=r), name="D")
    with pytest.raises(errors.CannotFactor, match="the reduce axis r begins at 1"):
        te.create_schedule(D.op).rfactor(D, r)


def test_rfactor_of_a_reducer_that_keeps_the_first():
    def first(a, b):
        return te.if_then_else(a[1] >= b[1], a[0], b[0]), te.if_then_else(a[1] >= b[1], a[1], b[1])

    def smaller_index(a, b):
        keep = te.any(a[1] > b[1], te.all(a[1] == b[1], a[0] < b[0]))
        return te.if_then_else(keep, a[0], b[0]), te.if_then_else(keep, a[1], b[1])

    worst = lambda i, v: (te.const(-1, i), te.min_value(v))
    for combine, dtype, problem in [
        (first, "int32", "is not commutative"),
        (smaller_index, "float32", "is not commutative"),  # a NaN is kept or dropped by the side it comes from
        (smaller_index, "int32", None),
    ]:
        s, index, k = tuples(te.comm_reducer(combine, worst, name="best"), dtype)
        if problem is None:
            s.rfactor(index, k)
            continue
        with pytest.raises(errors.CannotFactor, match=rf"the reducer of best {problem}(.|\n)*breaks ties by the index"):
            s.rfactor(index, k)


def tuples(reducer, dtype):
    A, k = te.placeholder((4, 8), dtype, name="A"), te.reduce_axis((0, 8), name="k")
    index, _ = te.compute((4,), lambda i: reducer((k.var, A[i, k]), axis=k), name="best")
    return te.create_schedule(index.op), index, k


@pytest.mark.parametrize(
    ("combine", "identity", "is_given", "problem"),
    [
        (lambda a, b: a - b, 0, False, "is not commutative"),
        (lambda a, b: a * 2 + b * 2, 0, False, "is not associative"),
        (lambda a, b: a + b, 1, False, "has an identity that changes the result"),
        (lambda a, b: a + b, 1, True, "has an identity that changes the result"),
        (lambda a, b: te.max(a, b), 0, True, "has an identity that changes the result"),
        (lambda a, b: te.log(te.exp(a) + te.exp(b)), 0, False, "is not known to be commutative and associative"),
        (lambda a, b: te.max(a, b), 0, False, None),  # the start value of max may be combined in again
        (lambda a, b: te.max(a, b), float("-inf"), True, None),
        (lambda a, b: a * b, 1, True, None),
    ],
)
def test_rfactor_asks_for_the_laws_of_a_reducer(combine, identity, is_given, problem):
    reducer = te.comm_reducer(combine, lambda t: te.const(identity, t), name="odd")
    A, S, k = te.placeholder((4, 8), name="A"), te.placeholder((4,), name="S"), te.reduce_axis((0, 8), name="k")
    B = te.compute((4,), lambda i: reducer(A[i, k], axis=k, init=S[i] if is_given else None), name="B")
    s = te.create_schedule(B.op)
    if problem is None:
        s.rfactor(B, k)
        return
    with pytest.raises(errors.CannotFactor, match=f"the reducer of B {problem}"):
        s.rfactor(B, k)


def test_arguments():
    A, B, C, s = chain()
    with pytest.raises(errors.ArgumentsMissing, match=r"args is missing(.|\n)*give args=\[A, C\]"):
        lw.build(s)
    with pytest.warns(UserWarning, match="args lacks C: computed in the function, and dropped"):
        assert len(lw.lower(s, [A])["main"].params) == 1
    unused = te.placeholder((2, 3), name="unused")  # a parameter that nothing reads
    assert [var.name for var in lw.lower(s, [A, unused, C])["main"].params] == ["var_A", "var_unused", "var_C"]
    with pytest.raises(ValueError, match=r"args is missing(.|\n)*inputs and outputs(.|\n)*args=\[A, C\]"):
        lw.lower(s, [])
    with pytest.raises(errors.ArgumentsMissing, match=r"args \[C\] lacks A"):
        lw.build(s, [C])
    with pytest.raises(errors.BadBinding, match="args is a str"):
        lw.build(s, "llvm")
    with pytest.raises(errors.BadBinding, match="entry 1 of args is an int"):
        lw.build(s, [A, 3])
    with pytest.raises(errors.BadBinding, match="args holds A twice"):
        lw.build(s, [A, A, C])
    loose = tir.decl_buffer((8, 8), "float32", "loose")
    with pytest.raises(errors.BadBinding, match="the buffer loose, which stands for no tensor"):
        lw.lower(s, [loose, C])
    with pytest.raises(errors.BadBinding, match=r"buffer b has shape \(9, 8\), its tensor A \(8, 8\)"):
        lw.lower(s, [A, C], binds={A: tir.decl_buffer((9, 8), "float32", "b")})
    with pytest.raises(errors.BadBinding, match="buffer b has type int32, its tensor A float32"):
        lw.lower(s, [A, C], binds={A: tir.decl_buffer((8, 8), "int32", "b")})
    with pytest.raises(TypeError, match="args belongs to a schedule"):
        lw.build([A, C], [A, C])


def test_marks():
    A, B, k, s = reduction()
    with pytest.raises(errors.CannotMark, match=r"k of B is an axis of the reduction(.|\n)*rfactor"):
        s[B].vectorize(k)
    with pytest.raises(errors.BadSplit, match="prefetch: offset is 0"):
        s[B].prefetch(A, k, 0)
    once = te.compute((1,), lambda i: A[i, 0], name="once")
    with pytest.raises(errors.CannotMark, match="i of once runs once"):
        te.create_schedule(once.op)[once].prefetch(A, once.op.axis[0], 1)
    with pytest.raises(errors.CannotMark, match="storage_align: factor 0"):
        s[B].storage_align(B.op.axis[0], 0, 1)
    with pytest.raises(NotImplementedError, match="the pragma import_c is not built yet"):
        s[B].pragma(B.op.axis[0], "import_c", "int f();")
    n = te.var("n")
    X = te.placeholder((n,), name="X")
    Y = te.compute((n,), lambda i: X[i], name="Y")
    t = te.create_schedule(Y.op)
    t[Y].vectorize(Y.op.axis[0])
    with pytest.raises(errors.CannotMark, match=r"i of Y runs n times, which is no number yet(.|\n)*split it"):
        lw.lower(t, [X, Y])


def test_a_loop_that_would_race_is_refused_with_the_line_that_asked():
    A, B, k, s = reduction()
    s[B].parallel(k)
    with pytest.raises(ScheduleError, match=r"touch the same cell") as caught:
        lw.lower(s, [A, B])
    assert "call: s[B].parallel(k) at test_te_errors.py" in str(caught.value)


def test_stages_of_another_kind():
    A, B, C, s = chain()
    with pytest.raises(errors.NotForThisStage, match="double_buffer: C is a result"):
        s[C].double_buffer()
    with pytest.raises(errors.NotForThisStage, match="env_threads: C is no scan"):
        s[C].env_threads([te.thread_axis("threadIdx.x")])
    with pytest.raises(errors.BadScope, match=r"there is no scope 'fast'(.|\n)*global, local, shared"):
        s[B].set_scope("fast")


def test_scans():
    X, S = te.placeholder((5, 4), name="X"), te.placeholder((5, 4), name="S")
    init = te.compute((1, 4), lambda _, i: X[0, i], name="init")
    update = te.compute((5, 4), lambda t, i: S[t - 1, i] + X[t, i], name="update")
    R = te.scan(init, update, S, name="R")
    s = te.create_schedule(R.op)
    with pytest.raises(errors.CannotAttach, match="update is the update of a scan, which runs in each step of it"):
        s[update].compute_root()
    thread = te.thread_axis("threadIdx.x")
    with pytest.raises(errors.CannotBind, match=r"the iterations of R\.idx of R run one after the other"):
        s[R].bind(R.op.scan_axis, thread)
    s[R].env_threads([thread])
    with pytest.raises(errors.NotForThisStage, match="R has threads already"):
        s[R].env_threads([thread])
    with pytest.raises(errors.TeScheduleError, match="stands for a whole dimension, not for a loop"):
        s[R].split(R.op.spatial_axis_[0], factor=2)
    with pytest.raises(errors.CannotMark, match="run one after the other"):
        s[R].parallel(R.op.scan_axis)


def test_groups():
    A = te.placeholder((8,), name="A")
    tensors = [A]
    for name in "BCDE":
        tensors.append(te.compute((8,), lambda i: tensors[-1][i] + 1, name=name))
    _, B, C, D, E = tensors
    s = te.create_schedule(E.op)
    group = s.create_group(outputs=D, inputs=B)
    with pytest.raises(errors.BadGroup, match="D is in one group with B already, and would be left out"):
        s.create_group(outputs=C, inputs=A)
    with pytest.raises(errors.BadGroup, match="nothing is computed between the inputs and B"):
        s.create_group(outputs=B, inputs=E)
    with pytest.raises(errors.CannotAttach, match="C is in a group, and E is not"):
        s[C].compute_at(s[E], E.op.axis[0])
    with pytest.raises(errors.CannotInline, match="the group is several stages"):
        group.compute_inline()
    t = te.create_schedule(E.op)
    t[C].compute_at(t[E], E.op.axis[0])
    with pytest.warns(UserWarning, match="C was computed at E, which is not in its new group"):
        t.create_group(outputs=D, inputs=B)
    assert t[C].attach_type == 1


def test_layouts():
    A, B, C, s = chain()
    with pytest.raises(errors.CannotTransformLayout, match=r"B, shape \(8, 8\)(.|\n)*has no inverse"):
        s[B].transform_layout(lambda i, j: [i // 3, j, i % 3])
    with pytest.raises(errors.CannotTransformLayout, match="has no inverse"):
        s[B].transform_layout(lambda i, j: [i + j])
    with pytest.raises(errors.CannotTransformLayout, match=r"leaves the cells before \[3, 0\] without an element"):
        s[B].transform_layout(lambda i, j: [i + 3, j])
    with pytest.raises(errors.CannotTransformLayout):
        s[B].transform_layout(lambda i: [i])
    s[B].split(B.op.axis[0], factor=2)
    with pytest.raises(
        errors.CannotTransformLayout, match=r"were split, fused or reordered(.|\n)*transform_layout first"
    ):
        s[B].transform_layout(lambda i, j: [j, i])


def test_instructions():
    A, B, C, s = chain()
    with pytest.raises(BadTensorIntrin, match="its input B is computed"):
        te.decl_tensor_intrin(C.op, lambda ins, outs: te.const(0))
    with pytest.raises(TypeError, match=r"is no operation(.|\n)*y\.op"):
        te.decl_tensor_intrin(C, lambda ins, outs: te.const(0))
    with pytest.raises(BadTensorIntrin, match="fcompute returned str 'x'"):
        te.decl_tensor_intrin(B.op, lambda ins, outs: "x")
    with pytest.raises(BadTensorIntrin, match="B is no reduction, but reduce_init"):
        te.decl_tensor_intrin(B.op, lambda ins, outs: (te.const(0), te.const(0), None))
    with pytest.raises(errors.CannotMark, match="3 is no tensor intrinsic"):
        s[C].tensorize(C.op.axis[1], 3)
    x = te.placeholder((8,), name="x")
    wrong = te.decl_tensor_intrin(te.compute((8,), lambda i: x[i] - 1, name="y").op, lambda ins, outs: te.const(0))
    s[C].tensorize(C.op.axis[1], wrong)
    with pytest.raises(ScheduleError, match=r"is not what 'te\.tensor_intrin\.body\.\d+' describes") as caught:
        lw.lower(s, [A, C])
    assert "call: s[C].tensorize(C.op.axis[1], wrong)" in str(caught.value)
    A, B, k, s = reduction()
    X = te.placeholder((4, 4), name="X")
    r = te.reduce_axis((0, 4), name="r")
    rows = te.compute((4,), lambda i: te.sum(X[i, r], axis=r), name="rows")
    intrin = te.decl_tensor_intrin(rows.op, lambda ins, outs: te.const(0), name="rows")
    io, ii = s[B].split(B.op.axis[0], factor=4)
    ko, ki = s[B].split(k, factor=4)
    s[B].reorder(io, ko, ii, ki)
    s[B].tensorize(ii, intrin)
    with pytest.raises(
        StatementMissing, match=r"rows has no reduce_update(.|\n)*the reduction goes on in a loop outside"
    ):
        lw.lower(s, [A, B])


def test_instructions_on_parts_of_tensors():
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] + 1, name="y")
    plus = te.decl_tensor_intrin(y.op, lambda ins, outs: te.const(0), name="plus")
    A = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 4), name="k")

    def call(match, *args, shape=(8, 4), **options):
        with pytest.raises(te.BadIntrinsicCall, match=match):
            te.compute(shape, lambda i: plus(*args, **options), name="B")

    call(r"the part of A has shape \(1, 3\), its input x \(4,\)", A[0, 0:3])
    call(r"the part of A has shape \(4, 1\), its input x \(4,\)", A[0:4, 0])
    call("0 tensors are given, and it has 1 inputs")
    call("input 0 is str '3'", "3")
    call("1 scalars are given, and it has 0", A[0, 0:4], 3)
    call("it does not reduce", A[0, 0:4], reduce_axis=k)
    call("there is no option axis", A[0, 0:4], axis=k)
    call(r"te\.compute B has tiles of shape \(5,\), and it gives \(4,\)", A[0, 0:4], shape=(8, 5))
    with pytest.raises(NotImplementedError, match="a range with steps in the indices of te tensor A"):
        A[0, 0:8:2]
    B = te.compute((8, 4), lambda i: plus(A[i, 0:4]), name="B")
    s = te.create_schedule(B.op)
    with pytest.raises(errors.CannotCacheWrite, match="the tiles of B are written by the intrinsic plus"):
        s.cache_write(B, "local")
    with pytest.raises(errors.TeScheduleError, match=r"ax0 of B stands for a whole dimension"):
        s[B].split(B.op.axis[1], factor=2)


def test_nothing_else_is_said():
    A, B, C, s = chain()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        s[C].bind(C.op.axis[0], te.thread_axis("blockIdx.x"))
        lw.lower(te.create_schedule(C.op), [A, C])
