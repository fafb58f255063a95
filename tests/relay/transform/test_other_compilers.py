"""MergeComposite, AnnotateTarget, MergeCompilerRegions, PartitionGraph: parts of a graph for other compilers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from loopwright import relay
from loopwright.relay.dataflow_pattern import is_op, wildcard
from loopwright.relay.op.contrib import get_pattern_table, register_pattern_table
from loopwright.relay.transform import AnnotateTarget, MergeCompilerRegions, MergeComposite, PartitionGraph
from tests.relay.pass_check import Constants, check, check_unchanged


@pytest.fixture
def marked() -> Iterator[None]:
    """A compiler "ext" that knows abs, negative and add; and one "two" that knows exp."""
    for name, compiler in (("abs", "ext"), ("negative", "ext"), ("add", "ext"), ("exp", "two")):
        relay.op.get(name).set_attr(f"target.{compiler}", lambda call: True)
    yield
    for name, compiler in (("abs", "ext"), ("negative", "ext"), ("add", "ext"), ("exp", "two")):
        relay.op.get(name).reset_attr(f"target.{compiler}")


def test_composites_are_functions():
    pattern = is_op("nn.relu")(is_op("nn.dense")(wildcard(), wildcard()))
    check(
        MergeComposite([("ext.dense_relu", pattern)]),
        "fn (%x: Tensor[(3, 4), float32], %w: Tensor[(5, 4), float32]) { exp(nn.relu(nn.dense(%x, %w))) }",
        """
        fn (%x: Tensor[(3, 4), float32], %w: Tensor[(5, 4), float32]) {
          %0 = fn (%a: Tensor[(3, 4), float32], %b: Tensor[(5, 4), float32], Composite="ext.dense_relu",
              PartitionedFromPattern="nn.dense_nn.relu_") {
            nn.relu(nn.dense(%a, %b))
          };
          exp(%0(%x, %w))
        }
        """,
    )


def test_the_first_pattern_takes_what_it_matches():
    both = is_op("abs")(is_op("negative")(wildcard()))
    check(
        MergeComposite([("ext.both", both), ("ext.one", is_op("negative")(wildcard()))]),
        "fn (%x: Tensor[(3, 4), float32]) { abs(negative(sign(negative(%x)))) }",
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = fn (%a: Tensor[(3, 4), float32], Composite="ext.one", PartitionedFromPattern="negative_") {
            negative(%a)
          };
          %1 = fn (%a: Tensor[(3, 4), float32], Composite="ext.both", PartitionedFromPattern="negative_abs_") {
            abs(negative(%a))
          };
          %1(sign(%0(%x)))
        }
        """,
    )


def test_checks():
    table = [("ext.one", is_op("negative")(wildcard()), lambda call: False)]
    check_unchanged(MergeComposite(table), "fn (%x: Tensor[(3, 4), float32]) { negative(%x) }")


def test_tables():
    @register_pattern_table("ext")
    def table() -> Any:
        return [("ext.one", is_op("negative")(wildcard()))]

    assert get_pattern_table("ext")[0][0] == "ext.one"
    assert get_pattern_table("nobody") is None


def _check(
    passes: list[Any], before: str, after: str, constants: Constants | None = None, module: str = "default"
) -> None:
    """`@ext_0` stands for the function of the first region, of the compiler ext, with all its attributes."""

    def attributes(match: re.Match[str]) -> str:
        name = f"tvmgen_{module}_{match[1]}_main_{match[2]}"
        return f'def @{name}({match[3]}, Compiler="{match[1]}", Primitive=1, Inline=1, global_symbol="{name}") {{'

    after = re.sub(r"def @(ext|two)_(\d)\((.*)\) {", attributes, after)
    check(passes, before, re.sub(r"@(ext|two)_(\d)", rf"@tvmgen_{module}_\1_main_\2", after), constants)


PARTITION = [AnnotateTarget("ext"), MergeCompilerRegions(), PartitionGraph()]


@pytest.mark.usefixtures("marked")
def test_marks():
    check(
        AnnotateTarget("ext"),
        "fn (%x: Tensor[(3, 4), float32]) { abs(%x) }",
        """
        fn (%x: Tensor[(3, 4), float32]) {
          annotation.compiler_end(abs(annotation.compiler_begin(%x, compiler="ext")), compiler="ext")
        }
        """,
    )


@pytest.mark.usefixtures("marked")
def test_a_region_is_a_function():
    check(
        PARTITION,
        "fn (%x: Tensor[(3, 4), float32]) { sign(abs(negative(%x))) }",
        """
        def @main(%x: Tensor[(3, 4), float32]) {
          sign(@tvmgen_default_ext_main_0(%x))
        }
        def @tvmgen_default_ext_main_0(%a: Tensor[(3, 4), float32], Compiler="ext", Primitive=1, Inline=1,
            global_symbol="tvmgen_default_ext_main_0") {
          abs(negative(%a))
        }
        """,
    )


@pytest.mark.usefixtures("marked")
def test_without_merging_each_is_a_function():
    _check(
        [AnnotateTarget("ext"), PartitionGraph()],
        "fn (%x: Tensor[(3, 4), float32]) { abs(negative(%x)) }",
        """
        def @main(%x: Tensor[(3, 4), float32]) {
          @ext_1(@ext_0(%x))
        }
        def @ext_1(%a: Tensor[(3, 4), float32]) {
          abs(%a)
        }
        def @ext_0(%a: Tensor[(3, 4), float32]) {
          negative(%a)
        }
        """,
    )


@pytest.mark.usefixtures("marked")
def test_a_region_is_not_a_circle():
    """negative → sign → add, and negative → add: one region would have to wait for sign and come before it."""
    _check(
        PARTITION,
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = negative(%x);
          add(%0, sign(%0))
        }
        """,
        """
        def @main(%x: Tensor[(3, 4), float32]) {
          %0 = @ext_0(%x);
          @ext_1(%0, sign(%0))
        }
        def @ext_1(%a: Tensor[(3, 4), float32], %b: Tensor[(3, 4), float32]) {
          add(%a, %b)
        }
        def @ext_0(%a: Tensor[(3, 4), float32]) {
          negative(%a)
        }
        """,
    )


@pytest.mark.usefixtures("marked")
def test_a_diamond_is_one_region():
    _check(
        PARTITION,
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = negative(%x);
          add(%0, abs(%0))
        }
        """,
        """
        def @main(%x: Tensor[(3, 4), float32]) {
          @ext_0(%x)
        }
        def @ext_0(%a: Tensor[(3, 4), float32]) {
          %0 = negative(%a);
          add(%0, abs(%0))
        }
        """,
    )


@pytest.mark.usefixtures("marked")
def test_a_region_with_two_results():
    _check(
        PARTITION,
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = negative(%x);
          (sign(%0), sign(abs(%0)))
        }
        """,
        """
        def @main(%x: Tensor[(3, 4), float32]) {
          %0 = @ext_0(%x);
          (sign(%0.0), sign(%0.1))
        }
        def @ext_0(%a: Tensor[(3, 4), float32]) {
          %0 = negative(%a);
          (%0, abs(%0))
        }
        """,
    )


@pytest.mark.usefixtures("marked")
def test_two_compilers():
    _check(
        [AnnotateTarget(["ext", "two"]), MergeCompilerRegions(), PartitionGraph()],
        "fn (%x: Tensor[(3, 4), float32]) { abs(exp(negative(%x))) }",
        """
        def @main(%x: Tensor[(3, 4), float32]) {
          @ext_2(@two_1(@ext_0(%x)))
        }
        def @ext_2(%a: Tensor[(3, 4), float32]) {
          abs(%a)
        }
        def @two_1(%a: Tensor[(3, 4), float32]) {
          exp(%a)
        }
        def @ext_0(%a: Tensor[(3, 4), float32]) {
          negative(%a)
        }
        """,
    )


@pytest.mark.usefixtures("marked")
def test_constants_are_bound():
    before, constants = "fn (%x: Tensor[(3, 4), float32]) { add(%x, $ones) }", {"ones": np.ones(4, "float32")}
    _check(
        PARTITION,
        before,
        """
        def @main(%x: Tensor[(3, 4), float32]) {
          @ext_0(%x)
        }
        def @ext_0(%a: Tensor[(3, 4), float32]) {
          add(%a, $ones)
        }
        """,
        constants,
    )
    _check(
        [AnnotateTarget("ext"), PartitionGraph("m", bind_constants=False)],
        before,
        """
        def @main(%x: Tensor[(3, 4), float32]) {
          @ext_0(%x, $ones)
        }
        def @ext_0(%a: Tensor[(3, 4), float32], %b: Tensor[(4), float32]) {
          add(%a, %b)
        }
        """,
        constants,
        module="m",
    )


@pytest.mark.usefixtures("marked")
def test_composites_belong_to_their_compiler():
    table = [("ext.both", is_op("abs")(is_op("sign")(wildcard())))]
    _check(
        [MergeComposite(table), *PARTITION],
        "fn (%x: Tensor[(3, 4), float32]) { sign(abs(sign(%x))) }",
        """
        def @main(%x: Tensor[(3, 4), float32]) {
          sign(@ext_0(%x))
        }
        def @ext_0(%a: Tensor[(3, 4), float32]) {
          %0 = fn (%b: Tensor[(3, 4), float32], Composite="ext.both", PartitionedFromPattern="sign_abs_") {
            abs(sign(%b))
          };
          %0(%a)
        }
        """,
    )
