"""Schedules of operators by name, and the helpers of those who write schedules."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.target import Target
from loopwright.topi.rule_schedules import FAMILIES
from loopwright.topi.testing import compare_numpy_tvm, dispatch, get_conv2d_nchw_implement, get_reduce_schedule


@pytest.mark.one_in(3)
@pytest.mark.parametrize("package", [topi.generic, topi.x86, topi.arm_cpu])
def test_the_classic_call(package):
    x = te.placeholder((8, 33), name="x")
    out = topi.sum(topi.exp(x), axis=1)
    with Target("llvm"):
        sch = package.schedule_reduce([out])
        built = lw.build(sch, [x, out], "llvm")
    a, result = np.zeros((8, 33), "float32"), np.zeros(8, "float32")
    built(a, result)
    assert (result == 33).all()
    assert sch.is_by_rule
    assert len(sch.as_tir_schedule([x, out]).trace.insts) > 0
    assert "main" in str(lw.lower(sch, [x, out]))


def test_every_family_has_a_schedule():
    x = te.placeholder((8,), name="x")
    for name in FAMILIES:
        for package in (topi.generic, topi.x86, topi.arm_cpu, topi.cuda):
            function = getattr(package, f"schedule_{name}")
            assert function(topi.exp(x)).outputs and function.__name__ == f"schedule_{name}"
    assert topi.generic.schedule_pool([topi.exp(x)], "NCHW").is_by_rule
    with pytest.raises(AttributeError, match="schedule_nothing"):
        topi.generic.schedule_nothing


def test_who_goes_on_by_hand_gets_what_was_asked_for():
    x = te.placeholder((8, 32), name="x")
    out = topi.exp(x)
    sch = topi.x86.schedule_injective(out)
    sch[out].unroll(out.op.axis[0])
    assert not sch.is_by_rule
    assert "T.unroll(8)" in str(lw.as_module.as_module(sch, [x, out]))


def test_default_schedule():
    x = te.placeholder((8, 32), name="x")
    out = topi.add(topi.exp(x), 1)
    text = str(lw.as_module.as_module(topi.generic.default_schedule([out], True), [x, out]))
    assert "range(256)" in text and "T_exp" not in text
    assert "T_exp" in str(lw.as_module.as_module(topi.generic.default_schedule([out], False), [x, out]))
    with Target("hexagon"), pytest.raises(RuntimeError, match="schedule not registered for 'hexagon'"):
        topi.generic.default_schedule([out], False)


@pytest.mark.parametrize("shape", [(5,), (4, 33), (2, 3, 16), (2, 2, 2, 2, 17)])
@pytest.mark.parametrize("package", [topi.generic, topi.x86])
def test_injective_from_existing(package, shape):
    x = te.placeholder(shape, name="x")
    out = topi.negative(x)
    sch = package.schedule_injective_from_existing(te.create_schedule(out.op), out)
    a, result = np.ones(shape, "float32"), np.zeros(shape, "float32")
    lw.build(sch, [x, out])(a, result)
    assert (result == -1).all()


def test_compare_numpy_tvm():
    a = np.linspace(-2, 2, 12, dtype="float32").reshape(3, 4)
    compare_numpy_tvm([a], np.exp(a), "llvm", lw.cpu(), topi.exp, topi.x86.schedule_injective)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        compare_numpy_tvm([a], a, "llvm", lw.cpu(), topi.exp, topi.x86.schedule_injective)


def test_schedules_for_a_target():
    assert dispatch("llvm", {"cpu": 1, "generic": 2}) == 1
    assert dispatch("cuda", {"cpu": 1, "generic": 2}) == 2
    compute, schedule = get_conv2d_nchw_implement("llvm")
    assert compute is topi.nn.conv2d_nchw and schedule.__name__ == "schedule_conv2d_nchw"
    assert get_reduce_schedule("llvm").__name__ == "schedule_reduce"


def test_operators_by_platform():
    assert topi.x86.dense_nopack is topi.arm_cpu.dense_mkl is topi.nn.dense
    assert topi.arm_cpu.conv2d_nchw_spatial_pack is topi.x86.conv2d_nchw is topi.nn.conv2d_nchw
    x, w = te.placeholder((4, 8), name="x"), te.placeholder((16, 8), name="w")
    assert tuple(topi.x86.dense_pack(x, w).shape) == (4, 16)
    with pytest.raises(AttributeError, match="no attribute 'dense_unpack'"):
        topi.x86.dense_unpack


def test_traverse_inline():
    x = te.placeholder((4, 8), name="x")
    total = topi.sum(topi.exp(x), axis=1)
    out = topi.add(topi.sqrt(total), 1)
    sch, seen = te.create_schedule(out.op), []
    topi.utils.traverse_inline(sch, out.op, lambda op: seen.append(op.name))
    assert seen == ["T_exp", "x_red", "T_sqrt", "T_add"] or seen == ["T_exp", "T_exp_red", "T_sqrt", "T_add"]
    assert "T_sqrt" not in str(lw.as_module.as_module(sch, [x, out]))


def test_numbers_of_expressions():
    n, utils = te.size_var("n"), topi.utils
    assert utils.get_const_int(te.const(3) + 4) == 7 and utils.get_const_int(np.int64(5)) == 5
    assert utils.get_const_float(te.const(2.5, "float32")) == 2.5
    assert utils.get_const_tuple((te.const(3), 4, n)) == (3, 4, n)
    with pytest.raises(ValueError, match=r"constant int: n \+ 1 is none"):
        utils.get_const_int(n + 1)
    with pytest.raises(ValueError, match="constant float"):
        utils.get_const_float(n)
    assert utils.equal_const_int(te.const(3), 3) and not utils.equal_const_int(n, 3)
    assert utils.get_const_int(utils.prod((2, 3, te.const(4)))) == 24 and int(utils.prod(())) == 1
    assert utils.simplify(n + 1 - n).value == 1 and utils.simplify(4) == 4


def test_places():
    utils = topi.utils
    assert utils.get_const_int(utils.ravel_index((1, 2), (3, 5))) == 7
    assert [utils.get_const_int(index) for index in utils.unravel_index(te.const(7), (3, 5))] == [1, 2]
    assert utils.swap([1, 2, 3], 0) == [3, 2, 1]


def test_shapes_targets_and_layouts():
    n, utils = te.size_var("n"), topi.utils
    assert utils.is_dynamic_shape((3, n)) and not utils.is_dynamic_shape((3, 4))
    assert utils.is_empty_shape((3, 0)) and not utils.is_empty_shape((3, n))
    assert not utils.is_target("llvm")
    with Target("llvm"):
        assert utils.is_target(["cuda", "llvm"]) and utils.is_target("cpu") and not utils.is_target("cuda")
    assert [utils.get_max_power2_factor(k) for k in (1, 6, 8, 96)] == [1, 2, 8, 32]
    assert utils.get_max_power2_factor(96, max_value=8) == 8
    assert utils.get_shape((1, 3, 8, 9), "NCHW", "NHWC") == (1, 8, 9, 3)
    assert utils.get_shape((1, 3, 8, 9, 16), "NCHW16c", "NC16cWH") == (1, 3, 16, 9, 8)
    with pytest.raises(topi.InvalidShapeError, match="no reordering"):
        utils.get_shape((1, 3), "NC", "NH")
    assert utils.nchw_xc_layout("NCHW16c") and not utils.nchw_xc_layout("NCHW")
    assert utils.nchw_pack_layout("NCHW2n4c") and not utils.nchw_pack_layout("NCHW4c")


def test_const_matrix():
    numbers = np.arange(6, dtype="float32").reshape(2, 3)
    out = np.zeros((2, 3), "float32")
    lw.build([topi.utils.const_matrix(numbers)])(out)
    assert np.array_equal(out, numbers)


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        ("dense_tensorcore", topi.nn.dense),
        ("dense_small_batch", topi.nn.dense),
        ("batch_matmul_int8", topi.nn.batch_matmul),
        ("conv2d_nhwc_winograd_direct", topi.nn.conv2d_nhwc),
        ("conv3d_ncdhw_winograd", topi.nn.conv3d_ncdhw),
        ("topk", topi.topk),
        ("searchsorted", topi.searchsorted),
    ],
)
def test_ways_of_gpus_are_the_operators(name, operator):
    assert getattr(topi.cuda, name) is operator
    assert name in ("topk", "searchsorted") or getattr(topi.cuda, f"schedule_{name}").__name__ == f"schedule_{name}"


def test_a_way_of_nothing():
    with pytest.raises(AttributeError, match="has no attribute 'schedule_nothing_tensorcore'"):
        topi.cuda.schedule_nothing_tensorcore
