"""Sizes beyond 2^31 in operators, in models and in schedules by rule: nothing is allocated or run here."""

from __future__ import annotations

import pytest

import loopwright as lw
from loopwright import autosched, relay, te, topi
from loopwright.ir import For, IntImm, pre_order_visit
from loopwright.topi.errors import InvalidShapeError
from loopwright.transform import lower


def tensor(*shape, dtype="int8"):
    return te.placeholder(shape, dtype, name="A")


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (lambda: topi.reshape(tensor(65536, 65536), (256, 1 << 24)), (256, 1 << 24)),
        (lambda: topi.reshape(tensor(65536, 65536), (1 << 32,)), (1 << 32,)),
        (lambda: topi.nn.flatten(tensor(2, 65536, 65536)), (2, 1 << 32)),
        (lambda: topi.concatenate([tensor(1 << 30), tensor(1 << 30), tensor(1 << 30)], 0), (3 << 30,)),
        (lambda: topi.repeat(tensor(65536), 65536, 0), (1 << 32,)),
        (lambda: topi.tile(tensor(65536), (65536,)), (1 << 32,)),
        (lambda: topi.nn.depth_to_space(tensor(1, 4, 1 << 30, 1), 2), (1, 1, 1 << 31, 2)),
        (lambda: topi.nn.pad(tensor((1 << 31) - 1), [1], [1]), ((1 << 31) + 1,)),
        (lambda: topi.strided_slice(tensor(65536, 65536), [0, 0], [65536, 65536], [2, 2]), (32768, 32768)),
    ],
)
def test_shapes(made, wanted):
    assert [int(size) for size in made().shape] == list(wanted)


@pytest.mark.parametrize("shape", [(5, 5), (0, 5), (1 << 31,)])
def test_reshape_counts_elements(shape):
    with pytest.raises(InvalidShapeError, match=r"A of shape \(65536, 65536\) has 4294967296 elements, shape"):
        topi.reshape(tensor(65536, 65536), shape)


@pytest.mark.parametrize("op", [topi.ndarray_size, topi.argmax, topi.argmin])
def test_a_count_that_int32_cannot_say(op):
    with pytest.raises(InvalidShapeError, match="4294967296 elements are more than int32 can count"):
        op(tensor(65536, 65536))


def test_a_count_in_64_bits():
    A = tensor(65536, 65536)
    func = te.create_prim_func([A, topi.ndarray_size(A, "int64")])
    assert "ndarray_size[()] = T.int64(4294967296)" in str(func)
    n, m = te.var("n"), te.var("m")
    func = te.create_prim_func([A := tensor(n, m), topi.ndarray_size(A, "int64")])
    assert 'ndarray_size[()] = T.Cast("int64", n) * T.Cast("int64", m)' in str(func)


def test_an_index_into_all_elements_is_not_cut_off():
    A, places = tensor(65536, 65536), te.placeholder((4,), "int32", name="I")
    text = str(te.create_prim_func([A, places, topi.take(A, places)]))
    assert 'T.Cast("int64", T.max(I_1[v_i0], 0)) // T.int64(65536)' in text


def test_a_model():
    x = relay.var("x", relay.TensorType((2, 65536, 65536), "int8"))
    body = relay.add(relay.nn.batch_flatten(x), relay.nn.batch_flatten(x))
    typed = relay.transform.InferType()(lw.IRModule.from_expr(relay.Function([x], body)))
    assert "-> Tensor[(2, 4294967296), int8]" in str(typed)


@pytest.mark.parametrize("shape", [(65536, 32768), (65536, 65536), (1 << 33,)])
def test_a_schedule_by_rule_runs_over_every_element(shape):
    A = tensor(*shape)
    func = te.create_prim_func([A, te.compute(A.shape, lambda *i: A(*i) + A(*i), name="B")])
    lowered = lower(autosched.apply(func).schedule.mod, "llvm")["main"]
    total, lanes = 1, 1

    def look(node):
        nonlocal total, lanes
        if isinstance(node, For):
            assert isinstance(node.extent, IntImm)
            total *= node.extent.value
        lanes = max(lanes, getattr(node, "lanes", 1))

    pre_order_visit(lowered.body, look)
    wanted = 1
    for size in shape:
        wanted *= size
    assert total * lanes == wanted
