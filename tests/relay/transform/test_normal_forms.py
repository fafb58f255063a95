"""ToANormalForm, ToBasicBlockNormalForm, ToGraphNormalForm: names for everything, for some, for nothing."""

from __future__ import annotations

from loopwright import ir, relay
from loopwright.relay.transform import ToANormalForm, ToBasicBlockNormalForm, ToGraphNormalForm
from tests.relay.pass_check import check, check_unchanged
from tests.relay.random_graphs import RandomGraph
from tests.relay.transform.graphs import apply, assert_same_results, assert_unchanged, function


def _x(name: str = "x") -> relay.Var:
    return relay.var(name, shape=(3,))


def test_everything_has_a_name():
    check(
        ToANormalForm(),
        "fn (%x: Tensor[(3), float32], %y: Tensor[(3), float32]) { add(exp(%x), %y) }",
        """
        fn (%x: Tensor[(3), float32], %y: Tensor[(3), float32]) {
          let %v0 = exp(%x);
          let %v1 = add(%v0, %y);
          %v1
        }
        """,
    )


def test_shared_values_are_named_once():
    check(
        ToANormalForm(),
        """
        fn (%x: Tensor[(3), float32]) {
          %0 = exp(%x);
          add(%0, %0)
        }
        """,
        """
        fn (%x: Tensor[(3), float32]) {
          let %v0 = exp(%x);
          let %v1 = add(%v0, %v0);
          %v1
        }
        """,
    )


def test_what_both_branches_use_comes_before_them():
    check(
        ToANormalForm(),
        """
        fn (%c: bool, %x: Tensor[(3), float32]) {
          %0 = exp(%x);
          if (%c) {
            abs(%0)
          } else {
            negative(%0)
          }
        }
        """,
        """
        fn (%c: bool, %x: Tensor[(3), float32]) {
          let %v0 = exp(%x);
          let %v3 = if (%c) {
            let %v1 = abs(%v0);
            %v1
          } else {
            let %v2 = negative(%v0);
            %v2
          };
          %v3
        }
        """,
    )
    check(
        ToBasicBlockNormalForm(),
        """
        fn (%c: bool, %x: Tensor[(3), float32]) {
          %0 = exp(%x);
          if (%c) {
            abs(%0)
          } else {
            negative(%0)
          }
        }
        """,
        """
        fn (%c: bool, %x: Tensor[(3), float32]) {
          let %v0 = exp(%x);
          if (%c) {
            abs(%v0)
          } else {
            negative(%v0)
          }
        }
        """,
    )


def test_what_one_branch_uses_stays_in_it():
    check_unchanged(
        ToBasicBlockNormalForm(),
        """
        fn (%c: bool, %x: Tensor[(3), float32]) {
          if (%c) {
            abs(exp(%x))
          } else {
            %x
          }
        }
        """,
    )
    check(
        ToANormalForm(),
        """
        fn (%c: bool, %x: Tensor[(3), float32]) {
          if (%c) {
            abs(exp(%x))
          } else {
            %x
          }
        }
        """,
        """
        fn (%c: bool, %x: Tensor[(3), float32]) {
          let %v2 = if (%c) {
            let %v0 = exp(%x);
            let %v1 = abs(%v0);
            %v1
          } else {
            %x
          };
          %v2
        }
        """,
    )


def test_functions_have_blocks_of_their_own():
    check(
        ToBasicBlockNormalForm(),
        """
        fn (%x: Tensor[(3), float32]) {
          %0 = exp(%x);
          %1 = fn (%y: Tensor[(3), float32]) {
            add(%y, %0)
          };
          (%1(%0), %0)
        }
        """,
        """
        fn (%x: Tensor[(3), float32]) {
          let %v0 = exp(%x);
          %0 = fn (%y: Tensor[(3), float32]) {
            add(%y, %v0)
          };
          (%0(%v0), %v0)
        }
        """,
    )
    check(
        ToANormalForm(),
        """
        fn (%x: Tensor[(3), float32]) {
          %0 = exp(%x);
          %1 = fn (%y: Tensor[(3), float32]) {
            add(%y, %0)
          };
          (%1(%0), %0)
        }
        """,
        """
        fn (%x: Tensor[(3), float32]) {
          let %v0 = exp(%x);
          let %v2 = fn (%y: Tensor[(3), float32]) {
            let %v1 = add(%y, %v0);
            %v1
          };
          let %v3 = %v2(%v0);
          let %v4 = (%v3, %v0);
          %v4
        }
        """,
    )


def test_loops():
    loop = """
        fn (%x: Tensor[(3), float32]) {
          let %loop = fn (%y: Tensor[(3), float32]) -> Tensor[(3), float32] {
            if (less(sum(%y), 9f)) {
              %loop(add(%y, 4f))
            } else {
              %y
            }
          };
          %loop(%x)
        }
        """
    check_unchanged(ToGraphNormalForm(), loop)
    check(
        ToANormalForm(),
        loop,
        """
        fn (%x: Tensor[(3), float32]) {
          let %loop = fn (%y: Tensor[(3), float32]) -> Tensor[(3), float32] {
            let %v0 = sum(%y);
            let %v1 = 9f;
            let %v2 = less(%v0, %v1);
            let %v6 = if (%v2) {
              let %v3 = 4f;
              let %v4 = add(%y, %v3);
              let %v5 = %loop(%v4);
              %v5
            } else {
              %y
            };
            %v6
          };
          let %v7 = %loop(%x);
          %v7
        }
        """,
    )
    check_unchanged(ToBasicBlockNormalForm(), loop)


def test_graph_form_has_no_lets():
    check(
        ToGraphNormalForm(),
        """
        fn (%x: Tensor[(3), float32]) {
          let %v = exp(%x);
          let %v_1 = add(%v, %v);
          multiply(%v_1, %v)
        }
        """,
        """
        fn (%x: Tensor[(3), float32]) {
          %0 = exp(%x);
          multiply(add(%0, %0), %0)
        }
        """,
    )


def test_graph_form_keeps_what_writes():
    check_unchanged(
        ToGraphNormalForm(),
        """
        fn (%x: Tensor[(3), float32]) {
          let %v = ref(%x);
          let %v_1 = ref_write(%v, exp(%x));
          ref_read(%v)
        }
        """,
    )


def test_there_and_back():
    for seed in range(5):
        graph = RandomGraph(seed)
        named = apply(ToANormalForm(), graph.function)
        assert_same_results(graph.function, named)
        back = apply(ToGraphNormalForm(), named)
        ir.assert_structural_equal(back, graph.function)


def test_long_chains():
    body = x = _x()
    for _ in range(3000):
        body = relay.abs(body)
    before = relay.Function([x], body)
    back = apply([ToANormalForm(), ToGraphNormalForm()], before)
    ir.assert_structural_equal(back, function(before))
    assert_unchanged(ToBasicBlockNormalForm(), before)


def test_a_normal_form_of_an_expression():
    x = relay.var("x", shape=(2,))
    named = relay.transform.ToANormalFormExpr(relay.exp(relay.tanh(x)))
    assert str(named).splitlines()[1:] == ["let %v0 = tanh(%x);", "let %v1 = exp(%v0);", "%v1"]
