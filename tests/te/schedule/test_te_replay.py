"""te schedules as programs: every kind of directive, on whole tiles and on tails, computes what was there before."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir import For, post_order_visit
from tests.te.schedule.replaying import check, text

SIZES = [1, 2, 7, 8, 9, 31]


def chain(n, m):
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] * 2, name="B")
    C = te.compute((n, m), lambda i, j: B[i, j] + 1, name="C")
    return A, B, C


def product(m=8, n=8, l=8):
    A, B = te.placeholder((m, l), name="A"), te.placeholder((l, n), name="B")
    k = te.reduce_axis((0, l), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C, k


@pytest.mark.one_in(3)
@pytest.mark.parametrize("n", SIZES)
def test_tiles_and_their_producers(n):
    A, B, C = chain(n, n + 2)
    s = te.create_schedule(C.op)
    xo, yo, xi, yi = s[C].tile(*C.op.axis, 8, 4)
    s[B].compute_at(s[C], yo)
    s[C].vectorize(yi)
    s[B].vectorize(s[B].op.axis[1])
    s[C].parallel(xo)
    check(s, [A, C])


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("how", ["factor", "nparts"])
def test_split_of_any_size(n, how):
    A, B, C = chain(n, 3)
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], **{how: 4})
    assert (outer.var.name, inner.var.name) == ("i.outer", "i.inner")
    s[C].reorder(inner, outer)
    check(s, [A, C])


def test_a_loop_shorter_than_the_factor_stays_as_short():
    A, B, C = chain(3, 2)
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], factor=8)
    s[C].split(C.op.axis[1], nparts=5)
    program = check(s, [A, C])
    extents = {}
    post_order_visit(
        program.body, lambda n: extents.setdefault(n.loop_var.name, n.extent.value) if isinstance(n, For) else None
    )
    assert {name: extents[name] for name in ("i_outer", "i_inner", "j_outer", "j_inner")} == {
        "i_outer": 1,
        "i_inner": 3,
        "j_outer": 2,
        "j_inner": 1,
    }


@pytest.mark.parametrize("n", [1, 5, 8])
def test_fused_loops_with_a_producer_inside(n):
    A, B, C = chain(n, 6)
    s = te.create_schedule(C.op)
    fused = s[C].fuse(*C.op.axis)
    assert fused.var.name == "i.j.fused"
    outer, inner = s[C].split(fused, factor=4)
    s[B].compute_at(s[C], outer)
    check(s, [A, C])


def test_fuse_takes_neighbours_in_either_order():
    A, B, C = chain(4, 6)
    s = te.create_schedule(C.op)
    fused = s[C].fuse(C.op.axis[1], C.op.axis[0])
    assert fused.var.name == "i.j.fused"
    assert s[C].leaf_iter_vars == [fused]
    check(s, [A, C])


def test_fuse_of_nothing_is_a_loop_that_runs_once():
    A = te.placeholder((), name="A")
    B = te.compute((), lambda: A() + 1, name="B")
    s = te.create_schedule(B.op)
    single = s[B].fuse()
    assert s[B].leaf_iter_vars == [single]
    assert isinstance(s[B].relations[0], te.schedule.Singleton)
    check(s, [A, B])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("n", [1, 7, 8, 9])
def test_a_reduction_through_caches(n):
    A, B, C, k = product(n, n + 1, n + 2)
    s = te.create_schedule(C.op)
    AA = s.cache_read(A, "local", [C])
    CC = s.cache_write(C, "local")
    xo, yo, xi, yi = s[C].tile(*C.op.axis, 4, 4)
    s[CC].compute_at(s[C], yo)
    ko, ki = s[CC].split(s[CC].op.reduce_axis[0], factor=4)
    x, y = s[CC].op.axis
    s[CC].reorder(ko, x, ki, y)
    s[AA].compute_at(s[CC], ko)
    s[CC].vectorize(y)
    s[C].parallel(xo)
    program = check(s, [A, B, C])
    assert [buffer.name for buffer in program.argument_buffers()] == ["A", "B", "C"]
    assert 'scope="local"' in text(program)


def test_fusing_data_and_reduction():
    A, B, C, k = product(4, 4, 6)
    s = te.create_schedule(C.op)
    fused = s[C].fuse(C.op.axis[1], k)
    s[C].split(fused, factor=4)
    check(s, [A, B, C])


def test_a_reduction_that_tiles_share_is_computed_by_each():
    A = te.placeholder((12, 12), name="A")
    k, l = te.reduce_axis((0, 3), name="k"), te.reduce_axis((0, 3), name="l")
    B = te.compute((10, 12), lambda i, j: te.sum(A[i + k, j], axis=k), name="B")
    C = te.compute((8, 12), lambda i, j: te.sum(B[i + l, j], axis=l), name="C")
    s = te.create_schedule(C.op)
    xo, yo, xi, yi = s[C].tile(*C.op.axis, 4, 4)
    s[B].compute_at(s[C], yo)
    s[C].parallel(xo)
    check(s, [A, C])
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], l)  # once for each of the sums: foolish, and right
    check(s, [A, C])
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(s[C].fuse(*C.op.axis), factor=5)  # tiles that begin in the middle of a row
    s[B].compute_at(s[C], outer)
    check(s, [A, C])


def test_a_reduction_that_does_not_begin_at_0():
    A = te.placeholder((4, 20), name="A")
    k = te.reduce_axis((3, 17), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    ko, ki = s[B].split(k, factor=4)
    s[B].reorder(ki, ko)
    check(s, [A, B])


def test_inlining_through_several_stages():
    A = te.placeholder((6, 6), name="A")
    B = te.compute((6, 6), lambda i, j: A[j, i] + 1, name="B")
    C = te.compute((6, 6), lambda i, j: B[i, j] * B[j, i], name="C")
    D = te.compute((6, 6), lambda i, j: C[i, j] - 1, name="D")
    s = te.create_schedule(D.op)
    s[B].compute_inline()
    s[C].compute_inline()
    program = check(s, [A, D])
    assert text(program).count("T.block(") == 2  # the root, and D


def test_an_inlined_input_of_an_extern_stays():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1, name="B")

    def body(ins, outs):
        ib = lw.tir.ir_builder.create()
        with ib.for_range(0, 4) as i:
            ib.buffer_ptr(outs[0])[i] = ib.buffer_ptr(ins[0])[i] * 2.0
        return ib.get()

    C = te.extern((4,), [B], body, name="C")
    D = te.compute((4,), lambda i: C[i] + 3, name="D")
    s = te.create_schedule(D.op)
    s[B].compute_inline()
    s[D].vectorize(D.op.axis[0])
    check(s, [A, D])


def test_compute_root_takes_a_place_back():
    A, B, C = chain(4, 4)
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].compute_root()
    assert s[B].attach_type == 1
    assert text(check(s, [A, C])).count("T.grid(4, 4)") == 2


def test_a_place_follows_its_axis():
    A, B, C = chain(8, 8)
    for then in ("split", "fuse"):
        s = te.create_schedule(C.op)
        i, j = C.op.axis
        s[B].compute_at(s[C], i if then == "split" else j)
        if then == "split":
            s[C].split(i, factor=2)
        else:
            s[C].fuse(i, j)
        check(s, [A, C])
        normal = s.normalize()
        assert normal[B].attach_ivar in normal[C].leaf_iter_vars
        check(normal, [A, C])


def test_several_outputs_are_stored_together():
    A = te.placeholder((6, 5), name="A")
    B, C = te.compute((6, 5), lambda i, j: (A[i, j] + 1, A[i, j] * 2), name="T")
    D = te.compute((6, 5), lambda i, j: B[i, j] - C[i, j], name="D")
    s = te.create_schedule(D.op)
    s[B].compute_at(s[D], D.op.axis[0])
    s[B].vectorize(s[B].op.axis[1])
    check(s, [A, D])


def test_symbolic_sizes():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1, name="B")
    C = te.compute((n,), lambda i: B[i] * 2, name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=4)
    s[B].compute_at(s[C], outer)
    s[C].vectorize(inner)
    s[C].parallel(outer)
    for size in (0, 1, 3, 4, 5, 17):
        check(s, [A, C], {"n": size})


@pytest.mark.parametrize("dtype", ["float64", "int8", "int64", "uint8"])
def test_types(dtype):
    A = te.placeholder((9,), dtype, name="A")
    B = te.compute((9,), lambda i: A[i] + A[i], name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(s[B].split(B.op.axis[0], factor=4)[1])
    check(s, [A, B])


# --- scans, hybrid functions --------------------------------------------------------------------------------------


def running(m, n):
    X, S = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="S")
    init = te.compute((1, n), lambda _, i: X[0, i], name="init")
    middle = te.compute((m, n), lambda t, i: S[t - 1, i] * 2, name="middle")
    update = te.compute((m, n), lambda t, i: middle[t, i] + X[t, i], name="update")
    return X, init, middle, update, te.scan(init, update, S, inputs=[X], name="R")


@pytest.mark.parametrize("how", ["inline", "at", "root"])
def test_the_stages_of_a_scan(how):
    X, init, middle, update, R = running(5, 9)
    s = te.create_schedule(R.op)
    outer, inner = s[update].split(update.op.axis[1], factor=4)
    s[update].vectorize(inner)
    s[init].split(init.op.axis[1], nparts=2)
    if how == "inline":
        s[middle].compute_inline()
    elif how == "at":
        s[middle].compute_at(s[update], outer)
    check(s, [X, R])


def test_time_as_an_axis_of_a_stage():
    X, init, middle, update, R = running(5, 6)
    s = te.create_schedule(R.op)
    t, i = s[update].op.axis
    fused = s[update].fuse(t, i)
    s[update].vectorize(s[update].split(fused, factor=2)[1])
    s[middle].compute_at(s[update], s[update].leaf_iter_vars[0])
    check(s, [X, R])


def test_a_scan_reads_a_cache():
    X, init, middle, update, R = running(5, 6)
    s = te.create_schedule(R.op)
    XX = s.cache_read(X, "local", [update])
    s[XX].compute_at(s[update], s[update].op.axis[1])
    check(s, [X, R])


def test_threads_around_a_scan():
    X, init, middle, update, R = running(5, 8)
    s = te.create_schedule(R.op)
    thread = te.thread_axis((0, 4), "threadIdx.x")
    for stage in (init, middle, update):
        outer, inner = s[stage].split(s[stage].op.axis[1], nparts=4)
        s[stage].bind(outer, thread)
    s[R].env_threads([thread])
    assert list(s[R].env_threads) == [thread]
    assert 'thread="threadIdx.x"' in text(lw.driver.build_module.schedule_to_module(s, [X, R])["main"])


def test_the_loops_of_a_hybrid_function():
    @te.hybrid.script
    def outer_product(a, b):
        c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
        for i in range(a.shape[0]):
            for j in range(b.shape[0]):
                c[i, j] = a[i] * b[j]
        return c

    a, b = te.placeholder((7,), name="a"), te.placeholder((6,), name="b")
    twice = te.compute((7,), lambda i: a[i] * 2, name="twice")
    c = outer_product(twice, b)
    s = te.create_schedule(c.op)
    i, j = s[c].op.axis
    s[twice].compute_inline()
    io, ii = s[c].split(i, factor=4)
    s[c].reorder(j, io, ii)
    program = check(s, [a, b, c])
    assert "i_outer" in text(program)


# --- what is said about loops and memory --------------------------------------------------------------------------


def test_kinds_and_notes():
    A, B, C, k = product(8, 8, 8)
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    s[C].pragma(i, "auto_unroll_max_step", 16)
    s[C].pragma(j, "unroll")
    s[C].unroll(k)
    shown = text(check(s, [A, B, C]))
    assert '"pragma_auto_unroll_max_step": 16' in shown
    assert shown.count("T.unroll(8)") == 2


def test_threads_are_bound():
    A, B, C = chain(64, 32)
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("blockIdx.x"))
    s[C].bind(C.op.axis[1], te.thread_axis((0, 32), "threadIdx.x"))
    s[B].compute_at(s[C], C.op.axis[1])
    shown = text(lw.driver.build_module.schedule_to_module(s, [A, C])["main"])
    assert 'T.thread_binding(64, thread="blockIdx.x")' in shown
    assert 'T.thread_binding(32, thread="threadIdx.x")' in shown
    assert 'scope="local"' in shown  # memory of a thread, since B is computed by each


def test_prefetch_asks_for_later_rows():
    A, B, C = chain(8, 8)
    s = te.create_schedule(C.op)
    s[B].prefetch(A, s[B].op.axis[0], 2)
    shown = text(check(s, [A, C]))
    assert "prefetch" in shown


def test_storage_align_and_scope():
    A, B, C = chain(8, 8)
    s = te.create_schedule(C.op)
    s[B].storage_align(B.op.axis[0], 16, 1)
    s[B].set_scope("shared")
    shown = text(check(s, [A, C]))
    assert 'scope="shared"' in shown
    assert "strides=(17, 1)" in shown


def test_double_and_rolling_buffers_are_notes():
    A, B, C = chain(8, 8)
    s = te.create_schedule(C.op)
    assert not s[B].double_buffer
    s[B].double_buffer()
    s[B].rolling_buffer()
    assert s[B].double_buffer
    assert s[B].rolling_buffer
    s[B].compute_at(s[C], C.op.axis[0])
    check(s, [A, C])


def test_a_store_predicate():
    A, B, C = chain(8, 8)
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[1], factor=4)
    s[C].set_store_predicate(inner.var.equal(0))
    run = lw.build(s, [A, C])
    a, c = np.ones((8, 8), "float32"), np.zeros((8, 8), "float32")
    run(a, c)
    np.testing.assert_array_equal(c, np.where(np.arange(8) % 4 == 0, 3, 0) * np.ones((8, 1)))
    assert s.as_tir_schedule([A, C]).is_proved


# --- groups, caches with layouts, layouts -------------------------------------------------------------------------


def test_a_group_moves_as_one():
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] * 2, name="B")
    C = te.compute((8, 8), lambda i, j: B[i, j] + 3, name="C")
    D = te.compute((8, 8), lambda i, j: C[i, j] + 1, name="D")
    s = te.create_schedule(D.op)
    group = s.create_group(outputs=C, inputs=A)
    assert group.num_child_stages == 2
    assert s[B].group is group
    group.compute_at(s[D], D.op.axis[0])
    s[C].vectorize(C.op.axis[1])
    check(s, [A, D])


def test_groups_nest():
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] * 2, name="B")
    C = te.compute((8, 8), lambda i, j: B[i, j] + 3, name="C")
    D = te.compute((8, 8), lambda i, j: C[i, j] + 1, name="D")
    E = te.compute((8, 8), lambda i, j: D[i, j] + 1, name="E")
    s = te.create_schedule(E.op)
    inner = s.create_group(outputs=C, inputs=A)
    outer = s.create_group(outputs=D, inputs=A)
    assert inner.group is outer
    inner.compute_at(s[D], D.op.axis[1])
    outer.compute_at(s[E], E.op.axis[0])
    check(s, [A, E])


@pytest.mark.parametrize("n", [8, 9])
def test_a_cache_laid_out_as_the_loops_run(n):
    A, B, C = chain(n, 6)
    s = te.create_schedule(C.op)
    xo, xi = s[C].split(C.op.axis[0], factor=4)
    s[C].reorder(xo, C.op.axis[1], xi)
    cache = s.cache_write(C, "global")
    assert [int(size) for size in cache.shape] == [-(-n // 4), 6, 4]
    assert s[C].relations == []
    check(s, [A, C])


def test_a_reduction_cached_as_its_loops_run():
    A, B, C, k = product(9, 6, 5)
    s = te.create_schedule(C.op)
    xo, xi = s[C].split(C.op.axis[0], factor=4)
    cache = s.cache_write(C, "global")
    s[cache].compute_at(s[C], s[C].op.axis[0])
    check(s, [A, B, C])


def test_a_second_cache_has_a_name_of_its_own():
    A, B, C = chain(4, 4)
    s = te.create_schedule(C.op)
    first, second = s.cache_read(B, "local", [C]), s.cache_read(A, "local", [B])
    third = s.cache_read(first, "local", [C])
    assert (first.op.name, second.op.name, third.op.name) == ("B.local", "A.local", "B.local.local")
    assert s.cache_write(B, "local").op.name == "B.d.local"
    check(s, [A, C])


def test_a_layout_in_between():
    A, B, C = chain(8, 12)
    s = te.create_schedule(C.op)
    jo, i, ji = s[B].transform_layout(lambda i, j: [j // 4, i, j % 4])
    s[B].vectorize(ji)
    s[B].parallel(jo)
    assert isinstance(s[B].relations[0], te.schedule.Transform)
    assert "B = T.alloc_buffer((3, 8, 4))" in text(check(s, [A, C]))


def test_layouts_one_after_the_other():
    A, B, C = chain(8, 12)
    s = te.create_schedule(C.op)
    s[B].transform_layout(lambda i, j: [j, i])
    s[B].transform_layout(lambda j, i: [j // 3, i, j % 3])
    assert "B = T.alloc_buffer((4, 8, 3))" in text(check(s, [A, C]))


def test_the_layout_of_inputs_and_outputs_is_the_callers():
    A = te.placeholder((6, 8), name="A")
    C = te.compute((6, 8), lambda i, j: A[i, j] + 1, name="C")
    s = te.create_schedule(C.op)
    assert s[A].transform_layout(lambda i, j: [j, i]) is None
    s[C].transform_layout(lambda *index: [index[1] // 4, index[0], te.AXIS_SEPARATOR, index[1] % 4])
    assert s[C].axis_separators == [2]
    program = lw.driver.build_module.schedule_to_module(s, [A, C])["main"]
    assert [[int(n) for n in buffer.shape] for buffer in program.argument_buffers()] == [[8, 6], [2, 6, 4]]
    s = te.create_schedule(C.op)
    s[A].transform_layout(lambda i, j: [j, i])
    s[C].transform_layout(lambda i, j: [j // 4, i, j % 4])
    a, c = np.arange(48, dtype="float32").reshape(6, 8), np.zeros((2, 6, 4), "float32")
    lw.build(s, [A, C])(np.ascontiguousarray(a.T), c)
    np.testing.assert_array_equal(c, (a + 1).reshape(6, 2, 4).transpose(1, 0, 2))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("n", [1, 3, 4, 5, 16, 17])
def test_rfactor_of_any_length(n):
    A = te.placeholder((3, n), name="A")
    k = te.reduce_axis((0, n), name="k")
    B = te.compute((3,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    ko, ki = s[B].split(k, factor=4)
    BF = s.rfactor(B, ki, factor_axis=-1)
    assert (s[B].op.name, BF.op.name) == ("B.repl", "B.rf")
    assert [axis.var.name for axis in s[B].op.reduce_axis] == ["k.inner.v"]
    i, lane = s[BF].op.axis
    s[BF].reorder(i, *s[BF].op.reduce_axis, lane)
    s[BF].vectorize(lane)
    s[BF].compute_at(s[B], s[B].op.axis[0])
    program = check(s, [A, B])
    assert [buffer.name for buffer in program.argument_buffers()] == ["A", "B"]


def test_rfactor_where_a_condition_loads_what_the_tail_has_not():
    A = te.placeholder((7,), "int32", name="A")
    k = te.reduce_axis((0, 7), name="k")
    B = te.compute((), lambda: te.sum(A[k], axis=k, where=A[k] > 2), name="B")
    s = te.create_schedule(B.op)
    _, ki = s[B].split(k, factor=4)
    s.rfactor(B, ki)
    found = np.zeros((), "int32")
    lw.build(s, [A, B])(np.arange(7, dtype="int32"), found)
    assert found == 18


def test_rfactor_of_a_whole_axis_and_beside_another():
    A = te.placeholder((3, 4, 5), name="A")
    k, l = te.reduce_axis((0, 4), name="k"), te.reduce_axis((0, 5), name="l")
    B = te.compute((3,), lambda i: te.sum(A[i, k, l], axis=[k, l]), name="B")
    s = te.create_schedule(B.op)
    lo, li = s[B].split(l, factor=2)
    BF = s.rfactor(B, k)
    assert s[BF].leaf_iter_vars[-2:] == [lo, li]  # what was asked of the other axis is asked of the new stage
    check(s, [A, B])
    C = te.compute((3,), lambda i: te.sum(A[i, k, 0], axis=k, where=A[i, k, 1] > 0, init=A[i, 0, 0]), name="C")
    s = te.create_schedule(C.op)
    s.rfactor(C, k)
    check(s, [A, C])
