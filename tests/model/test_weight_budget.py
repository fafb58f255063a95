"""Winograd's weights are given up where they would take too much memory, those of the smallest layers first."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import relay
from loopwright.model import weight_budget


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def model(x: np.ndarray):
    """Two layers of as many channels, of which the second has a quarter of the pixels; its rules, and what it gives."""
    given = relay.var("x", shape=x.shape)
    y = given
    for seed in (1, 2):
        weights = relay.const(numbers(32, 32, 3, 3, seed=seed) * np.float32(0.1))
        y = relay.nn.relu(relay.nn.conv2d(y, weights, padding=(1, 1)))
        y = relay.nn.max_pool2d(y, (2, 2), (2, 2))
    module = relay.IRModule.from_expr(relay.Function([given], y))
    built = relay.build(module, "llvm -num-cores=1", winograd=True)
    expected = relay.create_executor("debug", module).evaluate()(x)
    np.testing.assert_allclose(built(x), expected, rtol=1e-3, atol=1e-3)
    launches = [launch for launch in built.program.launches() if "conv2d" in launch.name]
    rules = [[decision.rule for decision in built.compiled.launches[launch].decisions] for launch in launches]
    return ["winograd" in some for some in rules], built


@pytest.mark.long
def test_what_is_too_much_is_given_up(monkeypatch):
    x = numbers(1, 32, 56, 56)
    uses, built = model(x)
    assert uses == [True, True]
    more = [weight_budget._more(launch, kernel) for launch, kernel in built.compiled.launches.items()]
    assert sum(more) > 2 * 32 * 32 * 9 * 4

    monkeypatch.setattr(weight_budget, "ALWAYS", max(more))
    monkeypatch.setattr(weight_budget, "SHARE", 0.0)
    uses, built = model(x)
    assert uses == [True, False]  # the layer with fewer pixels
    symbols = {kernel.symbol for kernel in built.compiled.launches.values()}
    assert built.compiled.counts.distinct == len(symbols)

    monkeypatch.setattr(weight_budget, "ALWAYS", 0)
    uses, _ = model(x)
    assert uses == [False, False]
