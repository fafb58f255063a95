"""Random graphs through the passes of `relay.build`: fused, unfused, with each pass off, always the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loopwright import ir, relay
from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext
from loopwright.relay.interpreter import evaluate
from loopwright.relay.transform.pipeline import build_passes, optimize
from tests.relay.random_graphs import RandomGraph

NAMES = sorted({each.info.name for each in build_passes()} - {"InferType"})


def _agree(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def _module(graph: RandomGraph) -> IRModule:
    return IRModule({"main": graph.function})


def _optimized(graph: RandomGraph, **context: Any) -> Any:
    with PassContext(**context):
        return optimize(_module(graph))["main"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(40))
def test_all_passes_keep_every_result(seed: int):
    graph = RandomGraph(seed)
    arguments = graph.arguments()
    wanted = evaluate(graph.function, arguments)
    for level in (0, 3, 4):
        _agree(evaluate(_optimized(graph, opt_level=level), arguments), wanted)
    off = NAMES[seed % len(NAMES)]
    _agree(evaluate(_optimized(graph, opt_level=4, disabled_pass=[off]), arguments), wanted)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", NAMES)
def test_each_pass_can_be_switched_off(name: str):
    graph = RandomGraph(1000, size=30)
    arguments = graph.arguments()
    wanted = evaluate(graph.function, arguments)
    _agree(evaluate(_optimized(graph, opt_level=4, disabled_pass=[name]), arguments), wanted)


@pytest.mark.parametrize("seed", range(100, 110))
def test_text_and_back(seed: int):
    graph = RandomGraph(seed)
    again = relay.parse(_module(graph).astext())
    ir.assert_structural_equal(again["main"], graph.function)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(200, 206))
def test_the_native_function_gives_the_same(seed: int):
    graph = RandomGraph(seed, size=10)
    arguments = graph.arguments()
    compiled = relay.build(_module(graph), target="llvm")
    _agree([np.asarray(one) for one in compiled(*arguments)], evaluate(graph.function, arguments))
