"""te schedules as objects: stages, axes, relations, what lowering and building take."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir, topi
from loopwright.driver.build_module import schedule_to_module
from loopwright.ir import IterType
from tests.te.schedule.replaying import check, text


def chain(n=8, m=8):
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] * 2, name="B")
    C = te.compute((n, m), lambda i, j: B[i, j] + 1, name="C")
    return A, B, C


def test_stages_come_in_the_order_of_their_need():
    A, B, C = chain()
    s = te.create_schedule([C.op])
    assert [stage.op for stage in s.stages] == [A.op, B.op, C.op]
    assert s.outputs == [C.op]
    assert s[C].is_output
    assert not s[B].is_output
    assert s[B] is s[B.op] is s.stage_map[B.op]
    assert repr(s) == "schedule(A, B, C)"
    graph = te.schedule.CreateReadGraph([C.op])
    assert {op.name: [tensor.name for tensor in reads] for op, reads in graph.items()} == {
        "A": [],
        "B": ["A"],
        "C": ["B"],
    }
    assert te.schedule.PostDFSOrder([C.op], graph) == [A.op, B.op, C.op]


def test_relations_and_leaves():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    xo, xi = s[C].split(i, factor=4)
    fused = s[C].fuse(xi, j)
    s[C].vectorize(fused)
    split, fuse = s[C].relations
    assert isinstance(split, te.schedule.Split)
    assert (split.parent, split.outer, split.inner) == (i, xo, xi)
    assert int(split.factor) == 4
    assert split.nparts is None
    assert isinstance(fuse, te.schedule.Fuse)
    assert (fuse.outer, fuse.inner, fuse.fused) == (xi, j, fused)
    assert s[C].all_iter_vars == [i, j, xo, xi, fused]
    assert s[C].leaf_iter_vars == [xo, fused]
    assert s[C].iter_var_attrs[fused].iter_type == IterType.Vectorized == 6
    assert fused.var.name == "i.inner.j.fused"


def test_reorder_moves_the_named_loops_only():
    A = te.placeholder((2, 3, 4, 5), name="A")
    B = te.compute((2, 3, 4, 5), lambda a, b, c, d: A[a, b, c, d], name="B")
    s = te.create_schedule(B.op)
    a, b, c, d = B.op.axis
    s[B].reorder(d, b)
    assert s[B].leaf_iter_vars == [a, d, c, b]
    s[B].reorder([c, a])
    assert s[B].leaf_iter_vars == [c, d, a, b]
    check(s, [A, B])


def test_fuse_keeps_the_larger_kind():
    A = te.placeholder((4, 4), name="A")
    k = te.reduce_axis((0, 4), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    assert s[B].fuse(B.op.axis[0], k).iter_type == IterType.CommReduce


def test_old_tensors_find_their_stage_after_the_graph_changed():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "local")
    BB = s.cache_read(B, "local", [CC])
    assert s[C].op is not C.op
    assert s[C].origin_op is C.op
    assert s[C].op.axis == C.op.axis
    assert [axis.var.name for axis in s[CC].op.axis] == ["i.c", "j.c"]
    assert [stage.op.name for stage in s.stages] == ["A", "B", "B.local", "C.local", "C"]
    assert s[BB].scope == "local"
    assert s[CC].op.input_tensors == [s[BB].op.output(0)]
    check(s, [A, C])


def test_attach_points():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    assert (s[B].attach_type, s[B].attach_stage, s[B].attach_ivar) == (4, s[C], C.op.axis[0])
    assert te.schedule.CreateAttachPath(s)[B.op] == [C.op.axis[0]]
    s[B].compute_inline()
    assert (s[B].attach_type, s[B].attach_stage) == (2, None)


def test_a_copy_goes_its_own_way():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    twin = s.copy()
    twin[C].split(C.op.axis[1], factor=2)
    assert twin[B].attach_stage is twin[C]
    assert len(s[C].leaf_iter_vars) == 2
    assert len(twin[C].leaf_iter_vars) == 3
    check(s, [A, C])
    check(twin, [A, C])


def row_sums():
    A = te.placeholder((16, 16), name="A")
    k = te.reduce_axis((2, 10), name="k")
    return A, te.compute((16,), lambda i: te.sum(A[i, k], axis=k), name="B"), k


def test_what_is_said_about_an_axis_of_a_copy_is_not_said_of_the_original():
    A, B, k = row_sums()
    s = te.create_schedule(B.op)
    s[B].pragma(k, "first")
    twin = s.copy()
    twin[B].pragma(k, "second")
    twin[B].prefetch(A, k, 1)
    assert s[B].iter_var_attrs[k].pragma_keys == ["first"]
    assert s[B].iter_var_attrs[k].prefetch_data == []
    assert list(s[B].iter_var_attrs[k].lines) == ["pragma"]
    assert twin[B].iter_var_attrs[k].pragma_keys == ["first", "second"]


def test_what_is_said_about_an_axis_holds_once_for_the_one_that_counts_from_0():
    A, B, k = row_sums()
    s = te.create_schedule(B.op)
    s[B].prefetch(A, k, 1)
    for done in (s, s.normalize()):
        assert str(done.as_tir_schedule([A, B]).trace).count("sch.prefetch(") == 1


def test_a_cache_of_a_stage_in_a_group_is_in_the_group():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    group = s.create_group(outputs=B, inputs=A)
    copy = s.cache_read(B, "shared", [C])
    assert s[copy].group is group
    assert s[C].group is None
    assert group.num_child_stages == len([stage for stage in s.stages if stage.group is group]) == 2


def test_normalize_puts_inlined_values_into_their_readers():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].compute_inline()
    normal = s.normalize()
    assert normal[B].attach_type == 3
    assert [tensor.name for tensor in normal[C].op.input_tensors] == ["A"]
    assert [tensor.name for tensor in s[C].op.input_tensors] == ["B"]
    k = te.reduce_axis((2, 6), name="k")
    D = te.compute((8,), lambda i: te.sum(C[i, k], axis=k), name="D")
    t = te.create_schedule(D.op)
    rebased = t.normalize()
    assert isinstance(rebased[D].relations[0], te.schedule.Rebase)
    assert int(rebased[D].leaf_iter_vars[1].dom.min) == 0
    check(rebased, [A, D])


def test_automatic_inlining_leaves_what_was_scheduled():
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] * 2, name="B")
    C = te.compute((8, 8), lambda i, j: B[j, i] + 1, name="C")
    D = te.compute((8, 8), lambda i, j: C[i, j] + A[0, j], tag="broadcast", name="D")
    k = te.reduce_axis((0, 8), name="k")
    E = te.compute((8,), lambda i: te.sum(D[i, k], axis=k), name="E")
    F = te.compute((8,), lambda i: E[i] + 1, name="F")

    def inlined(rule, touch=None):
        s = te.create_schedule(F.op)
        if touch is not None:
            s[touch].split(touch.op.axis[0], factor=2)
        rule(s)
        check(s, [A, F])
        return [stage.op.name for stage in s.stages if stage.attach_type == 2]

    assert inlined(te.schedule.AutoInlineElemWise) == ["B"]
    assert inlined(te.schedule.AutoInlineBroadcast) == ["D"]
    assert inlined(te.schedule.AutoInlineInjective) == ["B", "C", "D"]
    assert inlined(te.schedule.AutoInlineInjective, C) == ["B", "D"]


def test_inferred_bounds():
    A = te.placeholder((64,), name="A")
    B = te.compute((66,), lambda i: te.if_then_else(i < 64, A[i], te.const(0.0, "float32")), name="B")
    C = te.compute((64,), lambda i: B[i] + B[i + 2], name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=8)
    s[B].compute_at(s[C], outer)
    bounds = te.schedule.InferBound(s)
    assert int(bounds[outer].extent) == 8
    assert int(bounds[inner].extent) == 8
    assert int(bounds[B.op.axis[0]].extent) == 10
    assert "B" in str(te.schedule.ScheduleOps(s, bounds))
    with pytest.raises(
        NotImplementedError, match=r"SchedulePostProcToPrimFunc is not built yet(.|\n)*schedule_to_module"
    ):
        te.schedule.SchedulePostProcToPrimFunc([A, C], None, None)


def test_scans_are_looked_into():
    S = te.placeholder((5, 4, 3), name="S")
    first = te.compute((1, 4, 3), lambda _, i, j: te.const(1.0, "float32"), name="first")
    k = te.reduce_axis((0, 3), name="k")
    sums = te.compute((5, 4), lambda t, i: te.sum(S[t - 1, i, k], axis=k), name="sums")
    update = te.compute((5, 4, 3), lambda t, i, j: sums[t, i] + S[t - 1, i, j], name="update")
    R = te.scan(first, update, S, name="R")
    assert [op.name for op in te.schedule.ScanGetBody(R.op)] == ["sums", "update"]
    fixed = te.schedule.ScanFixPointAnalysis(R.op)
    assert [int(fixed[axis]) for axis in R.op.spatial_axis_] == [1, 0]  # rows keep to themselves, columns do not


def test_compact_buffers_are_told():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    assert te.schedule.VerifyCompactBuffer(te.schedule.ScheduleOps(s))
    s[B].storage_align(B.op.axis[0], 16, 1)
    assert not te.schedule.VerifyCompactBuffer(te.schedule.ScheduleOps(s))


def test_records_are_kept_when_asked_for():
    A, B, C = chain()
    with lw.transform.PassContext(config={"te.keep_schedule_record": True}):
        s = te.create_schedule(C.op)
        s[C].split(C.op.axis[0], factor=2)
        s.cache_write(C, "local")
    assert s.primitive_record == ["vanilla", "split", "cache_write"]
    assert len(s.schedule_record) == 3
    assert len(s.schedule_record[1].stages) == 3
    quiet = te.create_schedule(C.op)
    quiet[C].split(C.op.axis[0], factor=2)
    assert quiet.primitive_record == []


# --- lower and build ----------------------------------------------------------------------------------------------


def test_names_of_functions():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    assert next(iter(schedule_to_module(s, [A, C], "f").functions)).name_hint == "f"
    module = lw.build(s, [A, C], name="plus")
    assert module.entry_name == "plus"
    a, c = np.ones((8, 8), "float32"), np.zeros((8, 8), "float32")
    module["plus"](a, c)
    assert (c == 3).all()
    lowered = lw.lower(s, [A, C], name="g")
    assert lowered["g"].attrs["from_legacy_te_schedule"]
    assert lowered["g"].attrs["tir.noalias"]


def test_simple_mode_keeps_loops_whole():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1, name="B")
    s = te.create_schedule(B.op)
    s[B].split(B.op.axis[0], factor=16)
    assert str(lw.lower(s, [A, B], simple_mode=True)).count("for ") == 1
    assert "if" in str(lw.lower(s, [A, B], simple_mode=True))


def test_a_tir_schedule_is_built_as_it_is():
    A, B, C = chain()
    sch = tir.Schedule(te.create_prim_func([A, C]))
    sch.compute_inline("B")
    run = lw.build(sch)
    a, c = np.ones((8, 8), "float32"), np.zeros((8, 8), "float32")
    run(a, c)
    assert (c == 3).all()
    assert "for i" in str(lw.lower(sch))


def test_parameters_in_any_order_variables_among_them():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * n, name="B")
    s = te.create_schedule(B.op)
    check(s, [B, n, A], {"n": 5})


def test_bound_buffers():
    A = te.placeholder((4, 6), name="A")
    B = te.compute((4, 6), lambda i, j: A[i, j] + 1, name="B")
    s = te.create_schedule(B.op)
    wide = tir.decl_buffer((4, 6), "float32", "wide", strides=[te.var("stride"), 1])
    run = lw.build(s, [wide, B], binds={A: wide})
    whole = np.arange(40, dtype="float32").reshape(4, 10)
    b = np.zeros((4, 6), "float32")
    run(whole[:, :6], b)
    np.testing.assert_array_equal(b, whole[:, :6] + 1)


def test_an_intermediate_result_may_be_a_parameter():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    check(s, [A, B, C])


def test_several_outputs():
    A = te.placeholder((6,), name="A")
    B = te.compute((6,), lambda i: A[i] + 1, name="B")
    C = te.compute((6,), lambda i: B[i] * 2, name="C")
    s = te.create_schedule([B.op, C.op])
    assert s[B].is_output
    check(s, [A, B, C])


# --- instructions -------------------------------------------------------------------------------------------------


def dot(rows, length, with_init=True):
    """Rows of b times a, as an instruction that can add to what is there."""
    a, b = te.placeholder((length,), name="a"), te.placeholder((rows, length), name="b")
    k = te.reduce_axis((0, length), name="k")
    c = te.compute((rows,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
    buffers = {
        a: tir.decl_buffer(a.shape, a.dtype, "a", offset_factor=1, strides=[1]),
        b: tir.decl_buffer(b.shape, b.dtype, "b", offset_factor=1, strides=[te.var("s"), 1]),
        c: tir.decl_buffer(c.shape, c.dtype, "c", offset_factor=1, strides=[1]),
    }

    def statements(ins, outs):
        def update():
            ib = tir.ir_builder.create()
            x, y, z = [ib.buffer_ptr(buffer) for buffer in (*ins, *outs)]
            with ib.for_range(0, rows, name="row") as i, ib.for_range(0, length, name="col") as k:
                z[i] = z[i] + x[k] * y[i, k]
            return ib.get()

        def init():
            ib = tir.ir_builder.create()
            z = ib.buffer_ptr(outs[0])
            with ib.for_range(0, rows, name="start") as i:
                z[i] = te.const(0.0, "float32")
            return ib.get()

        return tir.SeqStmt([init(), update()]), init() if with_init else None, update()

    return te.decl_tensor_intrin(c.op, statements, name="dot", binds=buffers)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("with_init", [True, False])
@pytest.mark.parametrize("length", [16, 4])
def test_tensorize(length, with_init):
    A, B = te.placeholder((5, 16), name="A"), te.placeholder((8, 16), name="B")
    k = te.reduce_axis((0, 16), name="k")
    C = te.compute((5, 8), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    jo, ji = s[C].split(j, factor=4)
    ko, ki = s[C].split(k, factor=length)
    s[C].reorder(i, jo, ko, ji, ki)
    s[C].tensorize(ji, dot(4, length, with_init))
    s[C].parallel(i)
    program = check(s, [A, B, C])
    parts = {"body"} if length == 16 else {"update", "init"} if with_init else {"update"}
    assert {part for part in ("body", "update", "init") if f"te.dot.{part}" in text(program)} == parts
    names = [name for name in ("start", "row") if f"{name}]" in text(lw.lower(s, [A, B, C])["main"])]
    assert names == (["start", "row"] if with_init or length == 16 else ["row"])


def test_an_instruction_without_a_reduction():
    x, y = te.placeholder((8,), name="x"), te.placeholder((8,), name="y")
    z = te.compute((8,), lambda i: x[i] + y[i], name="z")

    def body(ins, outs):
        ib = tir.ir_builder.create()
        a, b, c = [ib.buffer_ptr(buffer) for buffer in (*ins, *outs)]
        with ib.for_range(0, 8, name="lane") as i:
            c[i] = a[i] + b[i]
        return ib.get()

    add = te.decl_tensor_intrin(z.op, body, name="add", default_buffer_params={"offset_factor": 1})
    assert (add.name, add.op, add.inputs, add.reduce_init) == ("add", z.op, (x, y), None)
    assert [buffer.name for buffer in add.buffers] == ["x", "y", "z"]
    A, B = te.placeholder((4, 16), name="A"), te.placeholder((4, 16), name="B")
    C = te.compute((4, 16), lambda i, j: A[i, j] + B[i, j], name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[1], factor=8)
    s[C].tensorize(inner, add)
    check(s, [A, B, C])
    assert "lane]" in text(lw.lower(s, [A, B, C])["main"])


@pytest.mark.parametrize("with_init", [True, False])
def test_tensors_made_by_an_instruction(with_init):
    A, B = te.placeholder((3, 2, 4), name="A"), te.placeholder((2, 4, 4), name="B")
    k = te.reduce_axis((0, 2), name="k")
    rows = dot(4, 4, with_init)
    C = te.compute((3, 4), lambda i: rows(A[i, k, 0:4], B[k, 0:4, 0:4], reduce_axis=k), name="C")
    op = C.op
    assert isinstance(op, te.TensorComputeOp)
    assert (op.schedulable_ndim, op.intrin, op.reduce_axis) == (1, rows, (k,))
    assert [axis.var.name for axis in op.axis] == ["i", "ax0"]
    assert op.input_tensors == [A, B]
    D = te.compute((3, 4), lambda i, j: C[i, j] + 1, name="D")
    s = te.create_schedule(D.op)
    s[C].compute_at(s[D], D.op.axis[0])
    program = check(s, [A, B, D])
    assert "te.dot.update" in text(program)
    s = te.create_schedule(D.op)
    AA = s.cache_read(A, "local", [C])
    s[AA].compute_at(s[C], s[C].op.axis[0])
    s[C].parallel(s[C].op.axis[0])
    check(s, [A, B, D])


@pytest.mark.parametrize("kind", ["max", "sum"])
def test_an_instruction_that_pools(kind):
    reducer = {"max": te.max, "sum": te.sum}[kind]
    x = te.placeholder((8, 6, 6), name="x")
    kh, kw = te.reduce_axis((0, 3), name="kh"), te.reduce_axis((0, 3), name="kw")
    p = te.compute((8, 4, 4), lambda c, i, j: reducer(x[c, i + kh, j + kw], axis=[kh, kw]), name="p")

    def body(ins, outs):
        ib = tir.ir_builder.create()
        a, b = [ib.buffer_ptr(buffer) for buffer in (*ins, *outs)]
        loops = [ib.for_range(0, extent, name=name) for extent, name in zip((8, 4, 4), ("lane", "i", "j"), strict=True)]
        with loops[0] as c, loops[1] as i, loops[2] as j:
            taps = [a[c, i + h, j + w] for h in range(3) for w in range(3)]
            total = taps[0]
            for tap in taps[1:]:
                total = tir.max(total, tap) if kind == "max" else total + tap
            b[c, i, j] = total
        return ib.get()

    pool = te.decl_tensor_intrin(p.op, body, name="pool", default_buffer_params={"offset_factor": 1})
    A = te.placeholder((2, 8, 6, 6), name="A")
    if kind == "max":
        P = topi.nn.pool2d(A, (3, 3), (1, 1), (1, 1), (0, 0, 0, 0), "max")
    else:
        rh, rw = te.reduce_axis((0, 3), name="rh"), te.reduce_axis((0, 3), name="rw")
        P = te.compute((2, 8, 4, 4), lambda n, c, i, j: te.sum(A[n, c, i + rh, j + rw], axis=[rh, rw]), name="P")
    s = te.create_schedule(P.op)
    s[P].tensorize(P.op.axis[1], pool)
    check(s, [A, P])
    assert "lane * 36" in text(lw.lower(s, [A, P])["main"])


def test_instructions_ask_for_the_alignment_of_parameters():
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] + 1, name="y")

    def body(ins, outs):
        ib = tir.ir_builder.create()
        a, b = [ib.buffer_ptr(buffer) for buffer in (*ins, *outs)]
        with ib.for_range(0, 4, name="lane") as k:
            b[k] = a[k] + 1.0
        return ib.get()

    plus = te.decl_tensor_intrin(
        y.op, body, name="plus", default_buffer_params={"offset_factor": 4, "data_alignment": 16}
    )
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1, name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(B.op.axis[0], 4)
    s[B].tensorize(inner, plus)
    function = lw.lower(s, [A, B])["main"]
    assert [function.buffer_map[var].data_alignment for var in function.params] == [16, 16]
