"""FuseOps: which operators are one kernel, rule by rule; and that kernels compute what the graph did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loopwright import ir, relay
from loopwright.ir.pass_context import PassContext
from loopwright.relay.op.registry import Op
from loopwright.relay.transform import DefuseOps, FuseOps
from loopwright.relay.visitor import post_order
from tests.relay.transform.graphs import apply, assert_same_results, function


def kernels(body: Any, level: int = 2, **settings: Any) -> list[str]:
    """The operators of each kernel, joined in the order they run; kernels in the order they run."""
    before = function(body)
    config = {f"relay.FuseOps.{name}": value for name, value in settings.items()}
    with PassContext(opt_level=level, config=config):
        fused = apply(FuseOps(), before)
    assert_same_results(before, fused, exact=True)
    found = []
    for each in post_order(fused):
        if isinstance(each, relay.Call) and isinstance(each.op, relay.Function):
            assert each.op.attrs["Primitive"] == 1
            inside = [call.op.name for call in post_order(each.op.body) if isinstance(call, relay.Call)]
            found.append(" ".join(inside))
        elif isinstance(each, relay.Call) and isinstance(each.op, Op):
            continue
    return found


def _x(*shape: int) -> relay.Var:
    return relay.var("x", shape=shape or (3, 4))


def _const(*shape: int) -> relay.Constant:
    return relay.const(np.ones(shape, "float32"))


def test_element_wise_operators_are_one():
    x = _x()
    assert kernels(relay.abs(relay.negative(x + x))) == ["add negative abs"]


def test_ways_that_part_and_meet():
    x = _x()
    y = relay.negative(x)
    assert kernels(relay.abs(y) + relay.sign(y)) == ["negative abs sign add"]


def test_what_is_returned_ends_a_kernel():
    x = _x()
    y = relay.negative(x)
    assert sorted(kernels(relay.Tuple([y, relay.abs(y)]))) == ["abs", "negative"]


def test_a_large_operator_takes_what_follows():
    x = _x(1, 2, 5, 5)
    conv = relay.nn.conv2d(x, _const(4, 2, 3, 3))
    assert kernels(relay.nn.relu(conv + _const(4, 1, 1))) == ["nn.conv2d add nn.relu"]


def test_nothing_joins_the_input_of_a_large_operator():
    x = _x(1, 2, 5, 5)
    conv = relay.nn.conv2d(relay.nn.relu(x), _const(4, 2, 3, 3))
    assert kernels(conv) == ["nn.relu", "nn.conv2d"]


def test_a_kernel_has_one_large_operator():
    x = _x(1, 2, 5, 5)
    one, two = (relay.nn.conv2d(x, _const(4, 2, 3, 3)) for _ in range(2))
    assert sorted(kernels(relay.nn.relu(one + two))) == ["nn.conv2d", "nn.conv2d add nn.relu"]


def test_a_large_operator_is_not_broadcast():
    """What follows it must have its shape."""
    x = _x(1, 4)
    dense = relay.nn.dense(x, _const(4, 4))
    assert kernels(dense + _const(3, 4)) == ["nn.dense", "add"]


def test_a_large_operator_does_not_take_injective_ones():
    x = _x(2, 4)
    dense = relay.nn.dense(x, _const(4, 4))
    assert kernels(relay.transpose(dense)) == ["nn.dense", "transpose"]


def test_element_wise_operators_join_a_reduction():
    x = _x()
    assert kernels(relay.sum(relay.abs(x + x), axis=1)) == ["add abs sum"]


def test_nothing_follows_a_reduction():
    x = _x()
    assert kernels(relay.abs(relay.sum(x, axis=1))) == ["sum", "abs"]


def test_injective_operators_do_not_join_a_reduction():
    x = _x()
    assert kernels(relay.sum(relay.transpose(x), axis=1)) == ["transpose", "sum"]


def test_injective_operators_are_one():
    x = _x()
    assert kernels(relay.abs(relay.transpose(relay.reshape(x, (4, 3))))) == ["reshape transpose abs"]


def test_a_tuple_that_is_joined():
    """What a concatenation reads is computed as it is read."""
    x = _x()
    joined = relay.concatenate([relay.abs(x), relay.negative(x)], 0)
    assert kernels(joined) == ["abs negative concatenate"]


def test_a_tuple_of_large_operators():
    x = _x(2, 4)
    parts = [relay.nn.relu(relay.nn.dense(x, _const(4, 4))), relay.abs(x)]
    assert sorted(kernels(relay.concatenate(parts, 1))) == ["abs concatenate", "nn.dense nn.relu"]


def test_a_tuple_that_is_returned():
    x = _x()
    assert sorted(kernels(relay.Tuple([relay.abs(x), relay.negative(x)]))) == ["abs", "negative"]


def test_fields_of_an_operator_of_several_results():
    x = _x(4, 4)
    one, two = relay.split(x, 2)
    assert kernels(one + two) == ["split add"]


def test_opaque_operators_are_alone():
    x = _x()
    assert kernels(relay.abs(relay.argsort(relay.negative(x)))) == ["negative", "argsort", "abs"]


def test_shapes_decide_whether_a_broadcast_is_element_wise():
    """Two operands of the result's own shape: as in a residual network."""
    x = _x(1, 2, 5, 5)
    conv = relay.nn.conv2d(x, _const(2, 2, 1, 1))
    assert kernels(conv + x) == ["nn.conv2d add"]


def test_stop_fusion():
    x = _x()
    body = relay.abs(relay.annotation.stop_fusion(relay.negative(x)))
    assert kernels(body) == ["negative", "abs"]


def test_numbers_are_parts_of_kernels_and_arrays_are_not():
    x = _x()
    fused = apply(FuseOps(), x * relay.const(2.0) + _const(4))
    call = fused.body
    assert len(call.args) == 2 and isinstance(call.args[1], relay.Constant)
    assert any(isinstance(each, relay.Constant) and each.data == 2 for each in post_order(call.op.body))


def test_identical_arguments_share_a_parameter():
    x = _x()
    fused = apply(FuseOps(), relay.abs(x) + relay.negative(x))
    assert [param.name_hint for param in fused.body.op.params] == ["p0"]


def test_link_params_keeps_constants_inside():
    with PassContext(config={"relay.FuseOps.link_params": True}):
        fused = apply(FuseOps(), _x() + _const(4))
    assert len(fused.body.args) == 1


def test_level_0_puts_each_alone():
    x = _x()
    assert kernels(relay.abs(x + x), level=0) == ["add", "abs"]


def test_the_greatest_depth():
    body = _x()
    for _ in range(10):
        body = relay.abs(body)
    found = kernels(body, max_depth=4)
    assert len(found) > 1 and max(len(names.split()) for names in found) <= 4


def test_the_most_arguments():
    body = _x()
    for k in range(6):
        body = body + relay.var(f"y{k}", shape=(3, 4))
    found = kernels(body, max_args=4)
    assert len(found) > 1


@pytest.mark.parametrize("operator", ["reshape", "squeeze", "expand_dims"])
def test_reshapes_alone_are_marked(operator: str):
    x = _x(1, 4)
    made = {"reshape": relay.reshape(x, (4,)), "squeeze": relay.squeeze(x), "expand_dims": relay.expand_dims(x, 0)}
    fused = apply(FuseOps(), made[operator])
    assert fused.body.op.attrs["relay.reshape_only"] == 1
    assert "relay.reshape_only" not in apply(FuseOps(), relay.abs(made[operator])).body.op.attrs


def test_branches_and_functions_are_fused_by_themselves():
    c, x = relay.var("c", "bool"), _x()
    y = relay.negative(x)
    found = kernels(relay.If(c, relay.abs(relay.sign(y)), y))
    assert sorted(found) == ["negative", "sign abs"]
    z = relay.var("z", shape=(3, 4))
    inner = relay.Function([z], relay.abs(relay.sign(z)))
    fused = apply(FuseOps(), relay.Call(inner, [relay.negative(x)]))
    assert isinstance(fused.body.op, relay.Function) and "Primitive" not in fused.body.op.attrs
    assert fused.body.op.body.op.attrs["Primitive"] == 1


def test_a_let_ends_a_kernel():
    x, v = _x(), relay.var("v")
    assert kernels(relay.Let(v, relay.abs(relay.negative(x)), relay.sign(v))) == ["negative abs", "sign"]


def test_kernels_stay_kernels():
    x = _x()
    once = apply(FuseOps(), relay.abs(relay.negative(x)))
    ir.assert_structural_equal(apply(FuseOps(), once), once, map_free_vars=True)


def test_defuse():
    x = _x(1, 2, 5, 5)
    y = relay.nn.relu(relay.nn.conv2d(x, _const(4, 2, 3, 3)) + _const(4, 1, 1))
    before = function(relay.sum(relay.abs(y), axis=1))
    ir.assert_structural_equal(apply([FuseOps(), DefuseOps()], before), before, map_free_vars=True)


def test_long_chains():
    body = x = _x()
    for _ in range(2000):
        body = relay.abs(body)
    fused = apply(FuseOps(), relay.Function([x], body))
    assert sum(isinstance(each, relay.Function) for each in post_order(fused.body)) == 8
