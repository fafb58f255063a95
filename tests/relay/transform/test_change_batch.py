"""ChangeBatch, SimplifyFCTranspose: another shape of parameters."""

from __future__ import annotations

import numpy as np

from loopwright import relay
from loopwright.relay.interpreter import evaluate
from loopwright.relay.transform.simplify.simplify_fc_transpose import convert


def test_another_number_of_examples():
    mod, _ = relay.testing.mlp.get_workload(2)
    changed = relay.transform.ChangeBatch({mod["main"].params[0]: 0}, batch_size=5)(mod)
    assert changed["main"].checked_type.ret_type.shape == (5, 10) and mod["main"].checked_type.ret_type.shape == (2, 10)


def test_weights_are_transposed_once():
    x, w, v = (relay.var(name, shape=shape) for name, shape in (("x", (1, 3)), ("w", (3, 4)), ("v", (2, 4))))
    hidden = relay.nn.dense(x, relay.transpose(w, axes=(1, 0)))
    function = relay.Function([x, w, v], relay.nn.dense(hidden, v))
    rng = np.random.default_rng(0)
    params = {"w": rng.random((3, 4), "float32"), "v": rng.random((2, 4), "float32")}
    new, new_params = convert(function, params)
    assert sorted(new_params) == ["v", "w_T"] and "transpose" not in str(new)
    data = rng.random((1, 3), "float32")
    one = evaluate(function, [data, params["w"], params["v"]])
    other = evaluate(new, [data, new_params["w_T"], new_params["v"]])
    np.testing.assert_allclose(one, other, rtol=1e-6)
