"""MergeComposite, AnnotateTarget, MergeCompilerRegions, PartitionGraph: parts of a graph for other compilers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from loopwright import relay
from loopwright.ir.function import IRModule
from loopwright.relay.dataflow_pattern import is_op, wildcard
from loopwright.relay.interpreter import evaluate
from loopwright.relay.op.contrib import get_pattern_table, register_pattern_table
from loopwright.relay.transform import AnnotateTarget, MergeCompilerRegions, MergeComposite, PartitionGraph
from loopwright.relay.visitor import post_order
from tests.relay.transform.graphs import apply, assert_same_results, assert_unchanged, function, operators


def _x(name: str = "x") -> relay.Var:
    return relay.var(name, shape=(3, 4))


@pytest.fixture
def marked() -> Iterator[None]:
    """A compiler "ext" that knows abs, negative and add; and one "two" that knows exp."""
    for name, compiler in (("abs", "ext"), ("negative", "ext"), ("add", "ext"), ("exp", "two")):
        relay.op.get(name).set_attr(f"target.{compiler}", lambda call: True)
    yield
    for name, compiler in (("abs", "ext"), ("negative", "ext"), ("add", "ext"), ("exp", "two")):
        relay.op.get(name).reset_attr(f"target.{compiler}")


def _composites(found: relay.Function) -> list[str]:
    return [
        each.attrs["Composite"]
        for each in post_order(found)
        if isinstance(each, relay.Function) and "Composite" in each.attrs
    ]


def test_composites_are_functions():
    x, w = _x(), relay.var("w", shape=(5, 4))
    pattern = is_op("nn.relu")(is_op("nn.dense")(wildcard(), wildcard()))
    before = function(relay.exp(relay.nn.relu(relay.nn.dense(x, w))))
    found = apply(MergeComposite([("ext.dense_relu", pattern)]), before)
    assert _composites(found) == ["ext.dense_relu"]
    assert_same_results(before, found)


def test_the_first_pattern_takes_what_it_matches():
    x = _x()
    one = is_op("abs")(is_op("negative")(wildcard()))
    table = [("ext.both", one), ("ext.one", is_op("negative")(wildcard()))]
    before = function(relay.abs(relay.negative(relay.sign(relay.negative(x)))))
    found = apply(MergeComposite(table), before)
    assert sorted(_composites(found)) == ["ext.both", "ext.one"]
    assert_same_results(before, found)


def test_checks():
    x = _x()
    table = [("ext.one", is_op("negative")(wildcard()), lambda call: False)]
    assert_unchanged(MergeComposite(table), relay.negative(x))


def test_tables():
    @register_pattern_table("ext")
    def table() -> Any:
        return [("ext.one", is_op("negative")(wildcard()))]

    assert get_pattern_table("ext")[0][0] == "ext.one"
    assert get_pattern_table("nobody") is None


def _partitioned(body: Any, merge: bool = True, targets: Any = ("ext",)) -> IRModule:
    before = function(body)
    mod = AnnotateTarget(list(targets))(IRModule({"main": before}))
    if merge:
        mod = MergeCompilerRegions()(mod)
    found = PartitionGraph()(mod)
    random = np.random.default_rng(0)
    arguments = [random.integers(-3, 4, param.checked_type.concrete_shape).astype("float32") for param in before.params]
    np.testing.assert_equal(evaluate(found["main"], arguments, found), evaluate(before, arguments))
    assert not any(name.startswith("annotation.") for one in found.values() for name in operators(one))
    return found


def _parts(found: IRModule) -> list[list[str]]:
    return sorted(operators(one) for var, one in found.items() if var.name != "main")


@pytest.mark.usefixtures("marked")
def test_marks():
    found = apply(AnnotateTarget("ext"), relay.abs(_x()))
    assert operators(found) == ["abs", "annotation.compiler_begin", "annotation.compiler_end"]


@pytest.mark.usefixtures("marked")
def test_a_region_is_a_function():
    x = _x()
    found = _partitioned(relay.sign(relay.abs(relay.negative(x))))
    assert _parts(found) == [["abs", "negative"]]
    part = found["tvmgen_default_ext_main_0"]
    assert part.attrs == {"Compiler": "ext", "Primitive": 1, "Inline": 1, "global_symbol": "tvmgen_default_ext_main_0"}


@pytest.mark.usefixtures("marked")
def test_without_merging_each_is_a_function():
    found = _partitioned(relay.abs(relay.negative(_x())), merge=False)
    assert _parts(found) == [["abs"], ["negative"]]


@pytest.mark.usefixtures("marked")
def test_a_region_is_not_a_circle():
    """negative → sign → add, and negative → add: one region would have to wait for sign and come before it."""
    x = _x()
    y = relay.negative(x)
    found = _partitioned(y + relay.sign(y))
    assert _parts(found) == [["add"], ["negative"]]


@pytest.mark.usefixtures("marked")
def test_a_diamond_is_one_region():
    x = _x()
    y = relay.negative(x)
    assert _parts(_partitioned(y + relay.abs(y))) == [["abs", "add", "negative"]]


@pytest.mark.usefixtures("marked")
def test_a_region_with_two_results():
    x = _x()
    y = relay.negative(x)
    found = _partitioned(relay.Tuple([relay.sign(y), relay.sign(relay.abs(y))]))
    assert _parts(found) == [["abs", "negative"]]


@pytest.mark.usefixtures("marked")
def test_two_compilers():
    x = _x()
    found = _partitioned(relay.abs(relay.exp(relay.negative(x))), targets=("ext", "two"))
    assert _parts(found) == [["abs"], ["exp"], ["negative"]]


@pytest.mark.usefixtures("marked")
def test_constants_are_bound():
    x = _x()
    found = _partitioned(x + relay.const(np.ones(4, "float32")))
    assert len(found["tvmgen_default_ext_main_0"].params) == 1
    mod = AnnotateTarget("ext")(IRModule({"main": function(x + relay.const(np.ones(4, "float32")))}))
    loose = PartitionGraph("m", bind_constants=False)(mod)
    assert len(loose["tvmgen_m_ext_main_0"].params) == 2


@pytest.mark.usefixtures("marked")
def test_composites_belong_to_their_compiler():
    x = _x()
    before = function(relay.sign(relay.abs(relay.sign(x))))
    table = [("ext.both", is_op("abs")(is_op("sign")(wildcard())))]
    mod = MergeComposite(table)(IRModule({"main": before}))
    found = PartitionGraph()(MergeCompilerRegions()(AnnotateTarget("ext")(mod)))
    assert _parts(found) == [["abs", "sign"]]
    data = np.array([[1, -2, 3, -4]] * 3, "float32")
    np.testing.assert_array_equal(evaluate(found["main"], [data], found), evaluate(before, [data]))
