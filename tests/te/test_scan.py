"""te.scan: recurrences of one and several states and stages, against numpy; and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir, te
from loopwright.analysis import check_program
from loopwright.evaluator import evaluate
from loopwright.schedule import Schedule
from loopwright.script import tir as T
from tests.agreement import assert_agreement


def _run(tensors, *arrays, native=False):
    """The outputs of the function from native code, after the evaluator agreed on every stage of lowering."""
    func = te.create_prim_func(tensors)
    check_program(func)
    outputs = [np.zeros([_size(d, tensors, arrays) for d in t.shape], str(t.dtype)) for t in tensors[len(arrays) :]]
    assert_agreement(func, [*arrays, *outputs], native)
    lw.build(tensors)(*arrays, *outputs)
    return outputs[0] if len(outputs) == 1 else outputs


def _size(dim, tensors, arrays):
    if isinstance(dim, ir.IntImm):
        return dim.value
    found = [a.shape[k] for t, a in zip(tensors, arrays, strict=False) for k, d in enumerate(t.shape) if d is dim]
    return found[0]


def _running_sum(m, n, dtype="float32"):
    X = te.placeholder((m, n), dtype, name="X")
    S = te.placeholder((m, n), dtype, name="S")
    init = te.compute((1, n), lambda _, i: X[0, i], name="init")
    update = te.compute((m, n), lambda t, i: S[t - 1, i] + X[t, i], name="update")
    return X, te.scan(init, update, S, inputs=[X], name="total")


def _random(*shape, dtype="float32"):
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(dtype)


@pytest.mark.parametrize("shape", [(5, 3), (1, 4), (2, 1), (7, 13), (3, 0)])
def test_running_sum(shape):
    x = _random(*shape)
    np.testing.assert_array_equal(_run(list(_running_sum(*shape)), x), np.cumsum(x, 0, dtype="float32"))


@pytest.mark.parametrize("shape", [(5, 3), (1, 4), (0, 3), (4, 0), (17, 2)])
def test_symbolic_sizes(shape):
    x = _random(*shape)
    X, total = _running_sum(te.var("m"), te.var("n"))
    np.testing.assert_array_equal(_run([X, total], x), np.cumsum(x, 0, dtype="float32"))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "float64"])
def test_types(dtype):
    x = np.arange(12).reshape(4, 3).astype(dtype)
    np.testing.assert_array_equal(_run(list(_running_sum(4, 3, dtype)), x), np.cumsum(x, 0, dtype=dtype))


def test_the_function():
    X, total = _running_sum(4, 3)

    @T.prim_func
    def main(X: T.Buffer((4, 3)), total: T.Buffer((4, 3))):
        T.func_attr({"tir.noalias": True})
        for _, i in T.grid(1, 3):
            with T.block("init"):
                v__, v_i = T.axis.remap("SS", [_, i])
                T.reads(X[0, v_i])
                T.writes(total[v__, v_i])
                total[v__, v_i] = X[0, v_i]
        for t in T.serial(1, 4):
            for i in range(3):
                with T.block("update"):
                    v_t = T.axis.scan((1, 4), t)
                    v_i = T.axis.spatial(3, i)
                    T.reads(total[v_t - 1, v_i], X[v_t, v_i])
                    T.writes(total[v_t, v_i])
                    total[v_t, v_i] = total[v_t - 1, v_i] + X[v_t, v_i]

    ir.assert_structural_equal(te.create_prim_func([X, total]), main)


def test_attributes():
    X, total = _running_sum(4, 3)
    op = total.op
    assert isinstance(op, te.ScanOp)
    assert op.scan_axis.var.name == "total.idx"
    assert op.scan_axis.iter_type == ir.IterType.Ordered
    assert (op.scan_axis.dom.min.value, op.scan_axis.dom.extent.value) == (1, 3)
    assert [t.name for t in (*op.init, *op.update, *op.state_placeholder, *op.inputs)] == ["init", "update", "S", "X"]
    assert op.input_tensors == [op.init[0], op.update[0]]
    assert [axis.dom.extent.value for axis in op.spatial_axis_] == [3]
    assert (op.num_outputs, total.dtype, total.name) == (1, "float32", "total")
    with te.tag_scope("recurrent"):
        assert _running_sum(4, 3)[1].op.tag == "recurrent"


def test_two_states_that_read_each_other():
    m, n = 6, 4
    X1, X2 = te.placeholder((m, n), name="X1"), te.placeholder((m, n), name="X2")
    S1, S2 = te.placeholder((m, n), name="S1"), te.placeholder((m, n), name="S2")
    i1 = te.compute((1, n), lambda _, i: X1[0, i], name="i1")
    i2 = te.compute((1, n), lambda _, i: X2[0, i], name="i2")
    u1 = te.compute((m, n), lambda t, i: S1[t - 1, i] + S2[t - 1, i] + X1[t, i], name="u1")
    u2 = te.compute((m, n), lambda t, i: X2[t, i] - S1[t - 1, n - 1 - i], name="u2")
    outputs = te.scan([i1, i2], [u1, u2], [S1, S2])
    assert [t.name for t in outputs] == ["scan.v0", "scan.v1"]
    x1, x2 = _random(m, n), _random(m, n)[::-1].copy()
    a, b = x1.copy(), x2.copy()
    for t in range(1, m):
        a[t] = a[t - 1] + b[t - 1] + x1[t]
        b[t] = x2[t] - a[t - 1][::-1]
    got = _run([X1, X2, *outputs], x1, x2, native=True)
    np.testing.assert_array_equal(got[0], a)
    np.testing.assert_array_equal(got[1], b)
    # One of them alone: the other lives inside the function.
    np.testing.assert_array_equal(_run([X1, X2, outputs[0]], x1, x2), a)


def test_several_steps_back_and_several_first_steps():
    m = 9
    X = te.placeholder((2,), "int64", name="X")
    F = te.placeholder((m,), "int64", name="F")
    init = te.compute((2,), lambda i: X[i], name="init")
    update = te.compute((m,), lambda t: F[t - 1] + F[t - 2], name="update")
    assert _run([X, te.scan(init, update, F)], np.array([0, 1])).tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21]


def test_stages_between_state_and_update():
    """A matrix product, a bias and a function each step: intermediate stages, one of them a reduction."""
    m, n = 5, 4
    X, W, S = te.placeholder((m, n), name="X"), te.placeholder((n, n), name="W"), te.placeholder((m, n), name="S")
    k = te.reduce_axis((0, n), name="k")
    product = te.compute((m, n), lambda t, i: te.sum(S[t - 1, k] * W[i, k], axis=k), name="product")
    biased = te.compute((n, m), lambda i, t: product[t, i] + X[t, i], name="biased")  # time is the second axis here
    update = te.compute((m, n), lambda t, i: te.max(biased[i, t], 0.0), name="update")
    init = te.compute((1, n), lambda _, i: X[0, i], name="init")
    x, w = _random(m, n), _random(n, n)
    got = _run([X, W, te.scan(init, update, S)], x, w, native=True)
    s = x.astype("float64")
    for t in range(1, m):
        s[t] = np.maximum(w.astype("float64") @ got[t - 1] + x[t], 0)
    np.testing.assert_allclose(got, s, rtol=0, atol=8 * 2**-23)


def test_an_update_that_is_a_reduction():
    m, n = 4, 3
    W, S, X = te.placeholder((n, n), name="W"), te.placeholder((m, n), name="S"), te.placeholder((n,), name="X")
    k = te.reduce_axis((0, n), name="k")
    init = te.compute((1, n), lambda _, i: X[i], name="init")
    update = te.compute((m, n), lambda t, i: te.sum(S[t - 1, k] * W[i, k], axis=k), name="update")
    total = te.scan(init, update, S)
    w = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], "float32")
    got = _run([W, X, total], w, np.array([1, 2, 3], "float32"))
    assert got.tolist() == [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 2, 3]]
    block = next(b for b in _blocks(te.create_prim_func([W, X, total])) if b.name_hint == "update")
    assert [region.buffer.name for region in block.reads] == ["scan", "W"]  # earlier steps of its own buffer are read


def _blocks(func):
    found = []
    ir.pre_order_visit(func.body, lambda node: found.append(node) if isinstance(node, ir.Block) else None)
    return found


def test_stages_keep_one_step_unless_more_are_read():
    m, n = 5, 4
    S = te.placeholder((m, n), name="S")
    init = te.compute((1, n), lambda _, i: te.const(1.0, "float32"), name="init")
    now = te.compute((n, m), lambda i, t: S[t - 1, i] * 2, name="now")
    then = te.compute((m, n), lambda t, i: S[t - 1, i] + 1, name="then")
    update = te.compute((m, n), lambda t, i: now[i, t] + te.if_then_else(t > 1, then[t - 1, i], 0.0), name="update")
    func = te.create_prim_func([te.scan(init, update, S)])
    root = _blocks(func)[0]
    shapes = {buffer.name: [size.value for size in buffer.shape] for buffer in root.alloc_buffers}
    assert shapes == {"now": [4, 1], "then": [5, 4]}
    # The step before the loop that `then` would need reads a step before the first: it is left out, as no one needs it.
    s = np.ones((m, n), "float32")
    for t in range(1, m):
        s[t] = s[t - 1] * 2 + (s[t - 2] + 1 if t > 1 else 0)
    np.testing.assert_array_equal(_run([te.scan(init, update, S)]), s)


def test_one_field_of_a_tuple_reduction_as_the_update():
    m, n = 4, 3
    X, S = te.placeholder((m, n), name="X"), te.placeholder((m,), name="S")
    k = te.reduce_axis((0, n), name="k")
    both = te.comm_reducer(
        lambda a, b: (a[0] + b[0], te.max(a[1], b[1])), lambda s, t: (te.const(0, s), te.min_value(t)), name="both"
    )
    init = te.compute((1,), lambda _: X[0, 0], name="init")
    total, _ = te.compute((m,), lambda t: both((X[t, k] + S[t - 1], X[t, k]), axis=k), name="update")
    x = np.arange(12, dtype="float32").reshape(m, n)
    s = x[:, 0].copy()
    for t in range(1, m):
        s[t] = (x[t] + s[t - 1]).sum()
    np.testing.assert_array_equal(_run([X, te.scan(init, total, S)], x), s)


def test_a_stage_read_at_an_earlier_step():
    """`doubled[t - 1]` needs the step before the loop too, from the first steps of the state."""
    m, n = 6, 2
    X, S = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="S")
    doubled = te.compute((m, n), lambda t, i: S[t - 1, i] * 2, name="doubled")
    shifted = te.compute((m, n), lambda t, i: doubled[t - 1, i] + 1, name="shifted")
    update = te.compute((m, n), lambda t, i: shifted[t, i] + doubled[t, i] + X[t, i], name="update")
    init = te.compute((2, n), lambda t, i: X[t, i], name="init")
    x = np.round(_random(m, n) * 8)
    s = x.copy()
    for t in range(2, m):
        s[t] = (s[t - 2] * 2 + 1) + s[t - 1] * 2 + x[t]
    np.testing.assert_array_equal(_run([X, te.scan(init, update, S)], x), s)


def test_a_stage_that_does_not_move_with_time():
    m, n = 4, 3
    X, S = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="S")
    first = te.compute((n,), lambda i: S[0, i] * 10, name="first")
    update = te.compute((m, n), lambda t, i: S[t - 1, i] + first[i], name="update")
    init = te.compute((1, n), lambda _, i: X[0, i], name="init")
    x = np.arange(12, dtype="float32").reshape(m, n)
    assert _run([X, te.scan(init, update, S)], x)[:, 1].tolist() == [1, 11, 21, 31]


def test_first_steps_that_are_needed_elsewhere_or_given():
    m, n = 3, 2
    X, Z, S = te.placeholder((m, n), name="X"), te.placeholder((1, n), name="Z"), te.placeholder((m, n), name="S")
    update = te.compute((m, n), lambda t, i: S[t - 1, i] + X[t, i], name="update")
    x, z = _random(m, n), _random(1, n) + 5
    expected = np.cumsum(np.concatenate([z, x[1:]]), 0, dtype="float32")
    np.testing.assert_array_equal(_run([X, Z, te.scan(Z, update, S)], x, z), expected)
    init = te.compute((1, n), lambda _, i: X[0, i] * 2, name="init")
    total = te.scan(init, update, S)
    both = te.compute((m, n), lambda t, i: total[t, i] + init[0, i], name="both")
    expected = np.cumsum(np.concatenate([x[:1] * 2, x[1:]]), 0, dtype="float32")
    np.testing.assert_array_equal(_run([X, both], x), expected + x[:1] * 2)
    got = _run([X, init, total], x)  # the first steps are an output as well
    np.testing.assert_array_equal(got[0], x[:1] * 2)
    np.testing.assert_array_equal(got[1], expected)


def test_several_outputs_of_one_compute_and_one_update_for_two_states():
    m, n = 4, 3
    X, S1, S2 = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="S1"), te.placeholder((m, n), name="S2")
    i1, i2 = te.compute((1, n), lambda _, i: (X[0, i], X[0, i] + 1), name="init")
    u1, u2 = te.compute((m, n), lambda t, i: (S1[t - 1, i] + S2[t - 1, i], S1[t - 1, i] - X[t, i]), name="update")
    x = np.round(_random(m, n) * 8)
    a, b = x.copy(), x + 1
    for t in range(1, m):
        a[t], b[t] = a[t - 1] + b[t - 1], a[t - 1] - x[t]
    got = _run([X, *te.scan([i1, i2], [u1, u2], [S1, S2])], x)
    np.testing.assert_array_equal(got[0], a)
    np.testing.assert_array_equal(got[1], b)
    same = te.scan([i1, i2], [u1, u1], [S1, S2])
    got = _run([X, *same], x)
    a, b = x.copy(), x + 1
    for t in range(1, m):
        a[t] = b[t] = a[t - 1] + b[t - 1]
    np.testing.assert_array_equal(got[0], a)
    np.testing.assert_array_equal(got[1], b)


def test_scans_after_scans_and_scans_that_share_parts():
    m, n = 4, 3
    X, total = _running_sum(m, n)
    S = te.placeholder((m, n), name="S2")
    init = te.compute((1, n), lambda _, i: total[m - 1, i], name="init2")
    update = te.compute((m, n), lambda t, i: S[t - 1, i] * 2 + total[t, i], name="update2")
    second = te.scan(init, update, S, name="second")
    other = te.scan(total.op.init[0], total.op.update[0], total.op.state_placeholder[0], name="other")
    x = np.round(_random(m, n) * 8)
    sums = np.cumsum(x, 0, dtype="float32")
    s = np.empty_like(x)
    s[0] = sums[-1]
    for t in range(1, m):
        s[t] = s[t - 1] * 2 + sums[t]
    got = _run([X, second, other], x)
    np.testing.assert_array_equal(got[0], s)
    np.testing.assert_array_equal(got[1], sums)


def test_an_update_that_is_an_input():
    m, n = 3, 2
    X, S = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="S")
    init = te.compute((1, n), lambda _, i: te.const(7.0, "float32"), name="init")
    got = _run([X, te.scan(init, X, S)], np.arange(6, dtype="float32").reshape(m, n))
    assert got.tolist() == [[7, 7], [2, 3], [4, 5]]


def test_wide_indices():
    X, total = _running_sum(te.var("m", "int32"), 3)
    func = te.create_prim_func([X, total], index_dtype_override="int64")
    loops = []
    ir.pre_order_visit(func.body, lambda node: loops.append(node.loop_var) if isinstance(node, ir.For) else None)
    assert {str(var.dtype) for var in loops} == {"int64"}
    x = _random(4, 3)
    out = np.zeros_like(x)
    evaluate(func, x, out)
    np.testing.assert_array_equal(out, np.cumsum(x, 0, dtype="float32"))


def test_a_schedule_may_split_the_space_and_not_reverse_the_time():
    sch = Schedule(te.create_prim_func(list(_running_sum(6, 8))))
    t, i = sch.get_loops("update")
    i_0, i_1 = sch.split(i, [None, 4])
    sch.reorder(i_0, t, i_1)
    sch.vectorize(i_1)
    sch.parallel(i_0)
    assert sch.is_proved
    x = _random(6, 8)
    out = np.zeros_like(x)
    lw.build(sch.mod)(x, out)
    np.testing.assert_array_equal(out, np.cumsum(x, 0, dtype="float32"))
    again = Schedule(te.create_prim_func(list(_running_sum(6, 8))))
    with pytest.raises(lw.LoopwrightError, match=r"total\["):
        again.parallel(again.get_loops("update")[0])


# --- refusals -----------------------------------------------------------------------------------------------------


def _parts(m=4, n=3):
    S = te.placeholder((m, n), name="S")
    init = te.compute((1, n), lambda _, i: te.const(0.0, "float32"), name="init")
    return S, init, te.compute((m, n), lambda t, i: S[t - 1, i] + 1, name="update")


def test_arguments():
    S, init, update = _parts()
    with pytest.raises(te.BadScanArgument, match=r"init has 1 tensors, update 2, state_placeholder 1"):
        te.scan([init], [update, update], [S])
    with pytest.raises(ValueError, match=r"te\.scan scan: update is str 'update'"):
        te.scan(init, "update", S)
    with pytest.raises(te.BadScanArgument, match=r"the state update is computed by ComputeOp\(update\)"):
        te.scan(init, update, update)
    with pytest.raises(te.BadScanArgument, match=r"the state S is given twice"):
        te.scan([init, init], [update, update], [S, S])
    with pytest.raises(te.BadScanArgument, match=r"init is empty"):
        te.scan([], [], [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"init": (1, 2)}, r"dimension 1 of init first is 2, that of the placeholder 3"),
        ({"init": (5, 3)}, r"init first gives 5 steps, but the whole result has 4"),
        ({"init": (1,)}, r"init first has shape \(1,\), the placeholder \(4, 3\)"),
        ({"update": (5, 3)}, r"dimension 0 of update next is 5, that of the placeholder 4"),
        ({"update": (4, 3), "dtype": "int32"}, r"update next has type int32, the placeholder float32"),
    ],
)
def test_states_that_do_not_fit(change, message):
    S, init, update = _parts()
    if "init" in change:
        init = te.compute(change["init"], lambda *i: te.const(0.0, "float32"), name="first")
    if "update" in change:
        update = te.compute(change["update"], lambda *i: te.const(0, change.get("dtype", "float32")), name="next")
    with pytest.raises(te.StateMismatch, match=message):
        te.scan(init, update, S)


def test_states_of_different_length():
    S, init, update = _parts()
    R = te.placeholder((5, 3), name="R")
    longer = te.compute((5, 3), lambda t, i: R[t - 1, i], name="longer")
    with pytest.raises(te.StateMismatch, match=r"R: its update and that of state S have different numbers of steps"):
        te.scan([init, init], [update, longer], [S, R])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda S: lambda t, i: S[t, i] + 1, r"update reads the state S at the step it computes"),
        (lambda S: lambda t, i: S[t + 1, i] + 1, r"update reads the state S at a later step"),
    ],
)
def test_steps_that_are_not_there(body, message):
    S, init, _ = _parts()
    with pytest.raises(te.NotAnEarlierStep, match=message):
        te.scan(init, te.compute((4, 3), body(S), name="update"), S)


def test_stages_that_are_not_there():
    S, init, _ = _parts()
    stage = te.compute((4, 3), lambda t, i: S[t - 1, i] + 1, name="stage")
    with pytest.raises(te.NotAnEarlierStep, match=r"update reads stage 1 step ahead"):
        te.scan(init, te.compute((4, 3), lambda t, i: stage[t + 1, i], name="update"), S)
    with pytest.raises(te.NotAnEarlierStep, match=r"stage reads the state S, but is itself read without a step"):
        te.scan(init, te.compute((4, 3), lambda t, i: stage[3, i], name="update"), S)
    first = te.compute((4, 3), lambda t, i: S[t - 1, i], name="first")
    second = te.compute((4, 3), lambda t, i: first[t - 1, i], name="second")
    R = te.placeholder((4, 3), name="R")
    with pytest.raises(te.NotAnEarlierStep, match=r"second reads the update first at another step than its own"):
        te.scan([init, init], [first, second], [S, R])


def test_only_computes_run_step_by_step():
    S, init, _ = _parts()
    whole = te.extern((4, 3), [S], lambda ins, outs: te.const(0), name="whole")
    with pytest.raises(te.NotAScanStage, match=r"ExternOp\(whole\) reads the state S, but is no te\.compute"):
        te.scan(init, te.compute((4, 3), lambda t, i: whole[t, i]), S)


def test_a_state_outside_its_scan_is_an_input_that_is_missing():
    S, init, update = _parts()
    with pytest.raises(te.MissingPlaceholder, match=r"S \(read by update\) is not in the list"):
        te.create_prim_func([te.scan(init, update, S), update])
