"""Threads in te schedules: caches that threads fill together, virtual threads, reductions over threads, scans.

Every schedule is proved, checked as a program, run in the evaluator (which watches for races) against numpy, and run
again as a launch with barriers where blocks can be lowered so far.
"""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.analysis import check_program
from loopwright.driver.build_module import schedule_to_module
from loopwright.evaluator import evaluate
from loopwright.schedule import ScheduleError
from loopwright.schedule.errors import WouldRace
from loopwright.te.schedule import errors
from loopwright.te.schedule.replay import replay
from loopwright.te.schedule.to_module import named_function
from loopwright.transform import (
    insert_barriers,
    launch_threads,
    lower_blocks,
    serialize_thread_reduction,
    write_allocations,
    write_inits,
)
from loopwright.transform.errors import ThreadLoopOnCpu


def whole_numbers(*shape, seed=0):
    """Small ones: their sums are exact in every order."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype("float32")


def scheduled(s, args):
    """The program, every step of which is proved."""
    done = replay(s, args)
    assert done.schedule.is_proved
    program = named_function(done)
    check_program(program)
    return program


def run(s, args, given, expected, rtol=0.0, launch=True):
    """The last argument is the result."""
    program = scheduled(s, args)
    forms = [program]
    if launch:
        lowered = (write_inits, serialize_thread_reduction, write_allocations, lower_blocks)
        for step in (*lowered, launch_threads, insert_barriers):
            program = step(program)
        check_program(program)
        forms.append(program)
    for form in forms:
        result = np.full(expected.shape, 99, "float32")
        evaluate(form, *[array.copy() for array in given], result)
        np.testing.assert_allclose(result, expected, rtol=rtol, atol=0)
    return forms[0].script()


def axes(**sizes):
    """Thread axes by name: `tx=4` is threadIdx.x of 4 threads, `bx=None` blockIdx.x of as many as there are."""
    kinds = {"b": "blockIdx.", "t": "threadIdx."}
    return [
        te.thread_axis(f"{kinds[name[0]]}{name[1]}")
        if size is None
        else te.thread_axis((0, size), f"{kinds[name[0]]}{name[1]}")
        for name, size in sizes.items()
    ]


# --- caches that threads fill together ----------------------------------------------------------------------------


def gemm(n, m, k_size, tile=8, threads=2, virtual=2, step=4):
    A, B = te.placeholder((k_size, n), name="A"), te.placeholder((k_size, m), name="B")
    k = te.reduce_axis((0, k_size), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[k, i] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    AA, BB = s.cache_read(A, "shared", [C]), s.cache_read(B, "shared", [C])
    AL, BL = s.cache_read(AA, "local", [C]), s.cache_read(BB, "local", [C])
    CL = s.cache_write(C, "local")
    by, bx, ty, tx = axes(by=None, bx=None, ty=threads, tx=threads)
    i, j = C.op.axis
    bi, i = s[C].split(i, factor=tile)
    bj, j = s[C].split(j, factor=tile)
    vi, i = s[C].split(i, nparts=virtual)
    vj, j = s[C].split(j, nparts=virtual)
    ti, i = s[C].split(i, nparts=threads)
    tj, j = s[C].split(j, nparts=threads)
    s[C].reorder(bi, bj, vi, vj, ti, tj, i, j)
    for loop, axis in ((bi, by), (bj, bx), (ti, ty), (tj, tx)):
        s[C].bind(loop, axis)
    for loop, name in ((vi, "vy"), (vj, "vx")):
        s[C].bind(loop, te.thread_axis((0, virtual), "vthread", name=name))
    s[CL].compute_at(s[C], tj)
    ic, jc = s[CL].op.axis
    ko, ki = s[CL].split(k, factor=step)
    s[CL].reorder(ko, ki, ic, jc)
    for shared, private in ((AA, AL), (BB, BL)):
        s[shared].compute_at(s[CL], ko)
        s[private].compute_at(s[CL], ki)
        y, inner_y = s[shared].split(s[shared].op.axis[0], nparts=threads)
        x, inner_x = s[shared].split(s[shared].op.axis[1], nparts=threads)
        s[shared].reorder(y, x, inner_y, inner_x)
        s[shared].bind(y, ty)
        s[shared].bind(x, tx)
    return s, A, B, C


@pytest.mark.one_in(2)
@pytest.mark.parametrize("sizes", [(8, 16, 8), (7, 9, 5)])
def test_matrix_product_with_shared_caches_and_virtual_threads(sizes):
    n, m, k = sizes
    s, A, B, C = gemm(n, m, k)
    a, b = whole_numbers(k, n), whole_numbers(k, m, seed=1)
    shown = run(s, [A, B, C], [a, b], a.T @ b)
    assert shown.count('thread="threadIdx.x"') == 3
    assert shown.count('thread="vthread"') == 2
    if sizes == (8, 16, 8):
        # The part that all threads need: no virtual thread, no thread of C in it.
        assert "v_ax1 = T.axis.spatial(16, j_outer * 8 + ax1_outer * 4 + ax1_inner)" in shown


def test_a_window_for_all_threads():
    """Neighbours read what their neighbours copied: 10 elements for 8 threads, in two turns."""
    n, threads = 24, 8
    A = te.placeholder((n + 2,), name="A")
    B = te.compute((n,), lambda i: A[i] + A[i + 1] + A[i + 2], name="B")
    s = te.create_schedule(B.op)
    S = s.cache_read(A, "shared", [B])
    bx, tx = axes(bx=None, tx=threads)
    outer, inner = s[B].split(B.op.axis[0], factor=threads)
    s[B].bind(outer, bx)
    s[B].bind(inner, tx)
    s[S].compute_at(s[B], inner)
    turn, thread = s[S].split(s[S].op.axis[0], factor=threads)
    s[S].bind(thread, tx)
    a = whole_numbers(n + 2)
    shown = run(s, [A, B], [a], a[:-2] + a[1:-1] + a[2:])
    assert "ax0_outer * 8 + ax0_inner < 10" in shown


def test_a_shared_stage_that_is_bound_to_nothing_is_filled_once():
    A = te.placeholder((4, 8), name="A")
    B = te.compute((4, 8), lambda i, j: A[i, j] * 2, name="B")
    C = te.compute((4, 8), lambda i, j: B[i, 7 - j] + 1, name="C")
    s = te.create_schedule(C.op)
    bx, tx = axes(bx=None, tx=8)
    s[C].bind(C.op.axis[0], bx)
    s[C].bind(C.op.axis[1], tx)
    s[B].set_scope("shared")
    s[B].compute_at(s[C], C.op.axis[1])
    a = whole_numbers(4, 8)
    run(s, [A, C], [a], (a * 2)[:, ::-1] + 1)


def test_each_virtual_thread_has_its_own_memory():
    """Virtual threads overlap in what they compute for themselves."""
    A = te.placeholder((10,), name="A")
    B = te.compute((10,), lambda i: A[i] * 2, name="B")
    C = te.compute((8,), lambda i: B[i] + B[i + 2], name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], nparts=4)
    s[C].bind(outer, te.thread_axis((0, 4), "vthread"))
    s[C].bind(inner, te.thread_axis((0, 2), "threadIdx.x"))
    s[B].compute_at(s[C], outer)
    a = whole_numbers(10)
    run(s, [A, C], [a], 2 * (a[:8] + a[2:]), launch=False)


# --- reductions over threads --------------------------------------------------------------------------------------


def row_sums(n, m):
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    return A, k, te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("chosen", [None, 0, 3])
@pytest.mark.parametrize("sizes", [(6, 16), (5, 13), (1, 4)])
def test_block_reduction_with_rfactor(sizes, chosen):
    n, m = sizes
    A, k, B = row_sums(n, m)
    s = te.create_schedule(B.op)
    ko, ki = s[B].split(k, factor=4)
    BF = s.rfactor(B, ki)
    outer, inner = s[B].split(s[B].op.axis[0], factor=2)
    bx, ty, tx = axes(bx=None, ty=2 if n > 1 else 1, tx=4)
    s[B].bind(outer, bx)
    if n > 1:
        s[B].bind(inner, ty)
    (lane,) = s[B].op.reduce_axis
    s[B].bind(lane, tx)
    s[BF].compute_at(s[B], lane)
    if chosen is not None:
        s[B].set_store_predicate(tx.var.equal(chosen))
    a = whole_numbers(n, m)
    shown = run(s, [A, B], [a], a.sum(1))
    assert "B_rf = T.decl_buffer((4, " in shown and 'scope="local"' in shown


@pytest.mark.parametrize("dtype", ["int32", "float64", "int8"])
def test_a_reduce_axis_on_threads(dtype):
    """Bound as it is, with loops of the reduction inside: the order of additions is the serial one."""
    A = te.placeholder((3, 11), dtype, name="A")
    k = te.reduce_axis((0, 11), name="k")
    B = te.compute((3,), lambda i: te.max(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.x"))
    ko, ki = s[B].split(k, nparts=4)
    s[B].bind(ko, te.thread_axis((0, 4), "threadIdx.x"))
    a = np.random.default_rng(3).integers(-50, 50, (3, 11)).astype(dtype)
    b = np.zeros(3, dtype)
    evaluate(scheduled(s, [A, B]), a, b)
    np.testing.assert_array_equal(b, a.max(1))


def test_a_tuple_reduction_over_threads():
    A = te.placeholder((3, 16), "int32", name="A")
    k = te.reduce_axis((0, 16), name="k")

    def better(x, y):
        first = te.any(x[1] > y[1], te.all(x[1].equal(y[1]), x[0] < y[0]))
        return te.if_then_else(first, x[0], y[0]), te.if_then_else(first, x[1], y[1])

    argmax = te.comm_reducer(better, lambda i, v: (te.max_value(i), te.min_value(v)))
    index, value = te.compute((3,), lambda i: argmax((k, A[i, k]), axis=k), name="best")
    s = te.create_schedule(index.op)
    ko, ki = s[index].split(k, factor=4)
    parts = s.rfactor(index, ki)
    (lane,) = s[index].op.reduce_axis
    s[index].bind(s[index].op.axis[0], te.thread_axis("blockIdx.x"))
    s[index].bind(lane, te.thread_axis((0, 4), "threadIdx.x"))
    s[parts[0]].compute_at(s[index], lane)
    args = [A, index, value]
    a = np.random.default_rng(1).integers(0, 4, (3, 16)).astype("int32")
    found, best = np.zeros(3, "int32"), np.zeros(3, "int32")
    evaluate(scheduled(s, args), a, found, best)
    np.testing.assert_array_equal(found, a.argmax(1))
    np.testing.assert_array_equal(best, a.max(1))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("factored", [False, True])
@pytest.mark.parametrize("sizes", [(3, 8), (2, 13)])
def test_softmax_with_a_block_for_each_row(sizes, factored):
    n, m = sizes
    A = te.placeholder((n, m), name="A")
    k, r = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="r")
    M = te.compute((n,), lambda i: te.max(A[i, k], axis=k), name="M")
    E = te.compute((n, m), lambda i, j: te.exp(A[i, j] - M[i]), name="E")
    S = te.compute((n,), lambda i: te.sum(E[i, r], axis=r), name="S")
    C = te.compute((n, m), lambda i, j: E[i, j] / S[i], name="C")
    s = te.create_schedule(C.op)
    bx, tx = axes(bx=None, tx=4)
    row, column = C.op.axis
    lane, _ = s[C].split(column, nparts=4)
    s[C].bind(row, bx)
    s[C].bind(lane, tx)
    s[E].compute_inline()
    for stage, axis in ((S, r), (M, k)):
        if factored:
            partial = s.rfactor(stage, s[stage].split(axis, factor=4)[1])
            (part,) = s[stage].op.reduce_axis
            s[partial].compute_at(s[stage], part)
            s[stage].set_store_predicate(tx.var.equal(0))
        else:
            part, _ = s[stage].split(axis, nparts=4)
        s[stage].bind(part, tx)
        s[stage].compute_at(s[C], row)
    a = np.random.default_rng(0).random((n, m), dtype="float32")
    e = np.exp(a.astype("float64") - a.max(1, keepdims=True))
    shown = run(s, [A, C], [a], e / e.sum(1, keepdims=True), rtol=1e-6)
    assert shown.count('scope="shared"') == 2  # inferred: inside a block of threads, outside its threads


# --- scans --------------------------------------------------------------------------------------------------------


def running(steps, size):
    """Each step reads the state in reverse: threads need what others computed."""
    X = te.placeholder((steps, size), name="X")
    S = te.placeholder((steps, size), name="S")
    init = te.compute((1, size), lambda _, i: X[0, i], name="init")
    middle = te.compute((steps, size), lambda t, i: S[t - 1, size - 1 - i] * 2, name="middle")
    update = te.compute((steps, size), lambda t, i: middle[t, i] + X[t, i], name="update")
    R = te.scan(init, update, S, inputs=[X], name="R")
    return X, R, (init, middle, update)


def expected_run(x):
    state = x.copy()
    for t in range(1, len(x)):
        state[t] = state[t - 1, ::-1] * 2 + x[t]
    return state


@pytest.mark.parametrize("declared", [True, False])
def test_threads_run_all_steps_of_a_scan(declared):
    X, R, stages = running(5, 7)
    s = te.create_schedule(R.op)
    (tx,) = axes(tx=4 if declared else None)
    for stage in stages:
        outer, _ = s[stage].split(s[stage].op.axis[1], nparts=4)
        s[stage].bind(outer, tx)
    s[R].env_threads([tx])
    x = whole_numbers(5, 7)
    shown = run(s, [X, R], [x], expected_run(x))
    lines = [line.strip() for line in shown.splitlines()]
    at = lines.index("for t in T.serial(1, 5):")
    assert lines[at - 1] == 'for tx in T.thread_binding(4, thread="threadIdx.x"):'


def test_a_scan_that_launches_threads_in_each_step():
    X, R, stages = running(4, 6)
    s = te.create_schedule(R.op)
    bx, tx = axes(bx=None, tx=2)
    for stage in stages:
        outer, inner = s[stage].split(s[stage].op.axis[1], factor=2)
        s[stage].bind(outer, bx)
        s[stage].bind(inner, tx)
    x = whole_numbers(4, 6)
    run(s, [X, R], [x], expected_run(x))


def test_a_recurrent_cell_on_threads():
    """h = tanh(x + h U): each step sums over the state, with partial sums in memory of the threads."""
    steps, hidden = 3, 4
    X, U = te.placeholder((steps, hidden), name="X"), te.placeholder((hidden, hidden), name="U")
    H = te.placeholder((steps, hidden), name="H")
    k = te.reduce_axis((0, hidden), name="k")
    init = te.compute((1, hidden), lambda _, i: 0.0, name="init")
    dot = te.compute((steps, hidden), lambda t, i: te.sum(H[t - 1, k] * U[k, i], axis=k), name="dot")
    update = te.compute((steps, hidden), lambda t, i: te.tanh(X[t, i] + dot[t, i]), name="update")
    R = te.scan(init, update, H, inputs=[X], name="R")
    s = te.create_schedule(R.op)
    (tx,) = axes(tx=hidden)
    for stage in (init, update):
        s[stage].bind(s[stage].op.axis[1], tx)
    s[dot].compute_at(s[update], s[update].op.axis[1])
    s[R].env_threads([tx])
    x, u = whole_numbers(steps, hidden) / 4, whole_numbers(hidden, hidden, seed=1) / 4
    state = np.zeros((steps, hidden))
    for t in range(1, steps):
        state[t] = np.tanh(x[t] + state[t - 1] @ u)
    run(s, [X, U, R], [x, u], state, rtol=1e-5)


def test_blocks_cannot_run_the_steps_of_a_scan():
    X, R, stages = running(4, 6)
    s = te.create_schedule(R.op)
    s[R].env_threads([te.thread_axis("blockIdx.x")])
    refused(s, [X, R], errors.CannotBind, "the iterations of blockIdx.x cannot wait", "s[R].env_threads([")
    s = te.create_schedule(R.op)
    s[R].env_threads([te.thread_axis("threadIdx.x")])
    refused(s, [X, R], errors.CannotBind, "it is not known how many threads threadIdx.x run R")
    s = te.create_schedule(R.op)
    s[R].env_threads([te.thread_axis((0, 4), "threadIdx.x")])
    refused(s, [X, R], ScheduleError, "add_thread_loop: loop tx: iterations that run at the same time", "env_threads")


# --- what cannot be done ------------------------------------------------------------------------------------------


def refused(s, args, error, *parts):
    with pytest.raises(error) as caught:
        schedule_to_module(s, args)
    for part in parts:
        assert part in str(caught.value), str(caught.value)


def test_two_lengths_of_one_axis():
    A = te.placeholder((4, 8), name="A")
    C = te.compute((4, 8), lambda i, j: A[i, 7 - j], name="C")
    s = te.create_schedule(C.op)
    S = s.cache_read(A, "shared", [C])
    bx, tx = axes(bx=None, tx=None)
    s[C].bind(C.op.axis[0], bx)
    s[C].bind(C.op.axis[1], tx)
    s[S].compute_at(s[C], C.op.axis[1])
    outer, inner = s[S].split(s[S].op.axis[1], factor=4)
    s[S].bind(inner, tx)
    refused(
        s,
        [A, C],
        errors.CannotBind,
        "bind: ax1.inner of A.shared runs 4 times and j of C 8 times, but both are bound to threadIdx.x",
        "split one of them, so that both run 8 times",
        "s[S].bind(inner, tx)",
    )


def test_a_declared_length_is_kept():
    A, k, B = row_sums(6, 9)
    s = te.create_schedule(B.op)
    s[B].bind(k, te.thread_axis((0, 8), "threadIdx.x"))
    refused(s, [A, B], errors.CannotBind, "k of B runs 9 times, and there are 8 threads threadIdx.x")
    A, k, B = row_sums(6, 9)
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis((1, 7), "threadIdx.x"))
    refused(s, [A, B], errors.CannotBind, "the threads threadIdx.x of i of B are numbered from 1")


@pytest.mark.parametrize("tag", ["blockIdx.x", "vthread"])
def test_a_reduction_over_blocks(tag):
    A, k, B = row_sums(6, 8)
    s = te.create_schedule(B.op)
    s[B].bind(k, te.thread_axis(tag))
    refused(s, [A, B], errors.CannotBind, f"the iterations of {tag} cannot wait for each other", "rfactor")


def test_a_result_that_no_thread_stores():
    A, k, B = row_sums(6, 8)
    s = te.create_schedule(B.op)
    tx = te.thread_axis("threadIdx.x")
    s[B].bind(k, tx)
    s[B].set_store_predicate(tx.var.equal(8))
    refused(s, [A, B], errors.CannotMark, "B is reduced over threadIdx.x, and no thread stores the result")
    s[B].set_store_predicate(te.all(tx.var.equal(0), B.op.axis[0].var < 3))
    refused(s, [A, B], errors.CannotMark, "depends on more than its number")


@pytest.mark.parametrize("number", [0, 3])
def test_a_store_that_names_a_thread_its_stage_has_no_loop_for(number):
    """As scripts have it for what follows a reduction over threads: the first thread stores anyway."""
    A, k, B = row_sums(10, 1025)
    C = te.compute((10,), lambda i: B[i] + 1, name="C")
    s = te.create_schedule(C.op)
    bx, ty, tx = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.y"), te.thread_axis("threadIdx.x")
    block, row = s[C].split(C.op.axis[0], factor=4)
    F = s.rfactor(B, s[B].split(k, factor=4)[1])
    s[B].compute_at(s[C], row)
    s[C].bind(block, bx)
    s[C].bind(row, ty)
    (part,) = s[B].op.reduce_axis
    s[B].bind(part, tx)
    s[F].compute_at(s[B], part)
    s[B].set_store_predicate(tx.var.equal(0))
    s[C].set_store_predicate(tx.var.equal(number))
    if number:
        refused(s, [A, C], errors.CannotMark, "no thread stores C: threadIdx_x == 3 holds for none")
    else:
        a = np.random.default_rng(0).random((10, 1025), dtype="float32")
        run(s, [A, C], [a], a.sum(1, dtype="float64") + 1, rtol=1e-6, launch=False)


def test_memory_of_a_thread_for_what_others_read():
    """Every thread writes its own copy: none has what the others wrote."""
    A = te.placeholder((4, 8), name="A")
    B = te.compute((4, 8), lambda i, j: A[i, j] * 2, name="B")
    C = te.compute((4, 8), lambda i, j: B[i, 7 - j] + 1, name="C")
    s = te.create_schedule(C.op)
    bx, tx = axes(bx=None, tx=8)
    s[C].bind(C.op.axis[0], bx)
    s[C].bind(C.op.axis[1], tx)
    s[B].set_scope("local")
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].bind(s[B].op.axis[1], tx)
    refused(s, [A, C], ScheduleError, "bind would change a value", "s[B].bind(s[B].op.axis[1], tx)", "B[0, 7]")


def test_threads_that_race():
    """One loop writes a cell and reads its neighbour's: no barrier can stand between."""

    @te.hybrid.script
    def shift(a):
        c = output_tensor((9,), a.dtype)
        for i in range(9):
            c[i] = a[i]
        for i in range(8):
            c[i] = c[i + 1]
        return c

    a = te.placeholder((9,), name="a")
    c = shift(a)
    s = te.create_schedule(c.op)
    s[c].bind(s[c].op.axis[1], te.thread_axis("threadIdx.x"))
    refused(s, [a, c], ScheduleError, "at the same time would touch the same cell", "both touch shift[1]")


def test_a_processor_has_no_threads():
    A, k, B = row_sums(6, 8)
    s = te.create_schedule(B.op)
    s[B].bind(k, te.thread_axis("threadIdx.x"))
    with pytest.raises(ThreadLoopOnCpu, match=r"loop k of extent 8 is bound to threadIdx\.x, which a CPU"):
        lw.build(s, [A, B], target="llvm")


# --- stages that stand among threads before their own loops are shared out -------------------------------------------


@pytest.mark.one_in(3)
@pytest.mark.parametrize("scope", ["warp", "shared"])
@pytest.mark.parametrize("attach_first", [False, True])
def test_a_stage_that_threads_share_is_computed_at_a_loop_of_theirs(scope, attach_first):
    A = te.placeholder((64, 8), name="A")
    B = te.compute((64, 8), lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute((64, 8), lambda i, j: B[i, j] + 3.0, name="C")
    s = te.create_schedule(C.op)
    s[B].set_scope(scope)
    _, inner = s[C].split(C.op.axis[0], 32)
    ty, tx = s[C].split(inner, 16)
    x, y = te.thread_axis("threadIdx.x"), te.thread_axis("threadIdx.y")
    if attach_first:
        s[B].compute_at(s[C], C.op.axis[1])
    s[C].bind(tx, x)
    s[C].bind(ty, y)
    if not attach_first:
        s[B].compute_at(s[C], C.op.axis[1])
    _, xi = s[B].split(B.op.axis[0], 16)
    s[B].bind(xi, x)
    a = whole_numbers(64, 8)
    run(s, [A, C], [a], a * 2 + 3)


@pytest.mark.parametrize("size", [64, 61])
def test_memory_of_one_thread_under_memory_of_all(size):
    A = te.placeholder((size,), name="A")
    B = te.compute((size,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((size,), lambda i: B[i] + 2.0, name="C")
    D = te.compute((size,), lambda i: C[i] + 3.0, name="D")
    s = te.create_schedule(D.op)
    s[C].set_scope("shared")
    s[B].set_scope("local")
    threads = te.thread_axis("threadIdx.x")
    bx, tx = s[D].split(D.op.axis[0], 32)
    s[D].bind(bx, te.thread_axis("blockIdx.x"))
    s[D].bind(tx, threads)
    s[C].compute_at(s[D], tx)
    _, xi = s[C].split(C.op.axis[0], nparts=1)
    s[C].bind(xi, threads)
    s[B].compute_at(s[D], tx)
    a = whole_numbers(size)
    run(s, [A, D], [a], a * 2 + 5)
    done = replay(s, [A, D])
    (nest,) = done.nests[s[B]]
    assert [done.schedule.get(loop).extent.value for loop in nest.loops.values()] == [1]  # what one thread hands on


def test_a_race_that_is_left_at_the_end_is_refused_at_its_line():
    A = te.placeholder((65,), name="A")
    B = te.compute((65,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((64,), lambda i: B[i] + B[i + 1], name="C")
    s = te.create_schedule([B.op, C.op])
    bx, tx = s[C].split(C.op.axis[0], 32)
    s[C].bind(bx, te.thread_axis("blockIdx.x"))
    s[C].bind(tx, te.thread_axis("threadIdx.x"))
    s[B].compute_at(s[C], bx)  # both blocks write B[32], which the caller sees
    with pytest.raises(WouldRace, match=r"compute_at: loop .*: iterations that run at the same time") as caught:
        replay(s, [A, B, C])
    assert "s[B].compute_at(s[C], bx)" in str(caught.value)
