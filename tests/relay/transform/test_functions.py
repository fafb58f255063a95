"""Inline, LambdaLift, EtaExpand, RemoveUnusedFunctions, PartialEvaluate: passes about functions."""

from __future__ import annotations

import numpy as np

from loopwright import relay
from loopwright.ir.function import IRModule
from loopwright.relay.interpreter import evaluate
from loopwright.relay.transform import EtaExpand, Inline, LambdaLift, PartialEvaluate, RemoveUnusedFunctions
from tests.relay.pass_check import assert_is, check, check_unchanged, program, results_not_compared
from tests.relay.transform.graphs import operators


def _same_for_a_loop_that_ends(before: IRModule, after: IRModule) -> None:
    given = [np.array([1.0, -2.0, 3.0], "float32")]
    one, other = (evaluate(mod["main"], given, mod) for mod in (before, after))
    np.testing.assert_array_equal(one, other)


def test_inline():
    check(
        Inline(),
        """
        def @f(%y: Tensor[(3), float32], Inline=1) {
          let %v = exp(%y);
          add(%v, %y)
        }
        def @main(%x: Tensor[(3), float32]) {
          @f(@f(%x))
        }
        """,
        """
        def @main(%x: Tensor[(3), float32]) {
          %0 = {
            let %v = exp(%x);
            add(%v, %x)
          };
          let %w = exp(%0);
          add(%w, %0)
        }
        """,
    )


def test_inline_leaves_functions_that_call_themselves():
    before = program(
        """
        def @f(%y: Tensor[(3), float32], Inline=1) -> Tensor[(3), float32] {
          if (less(sum(%y), 9f)) {
            @f(add(%y, 4f))
          } else {
            %y
          }
        }
        def @main(%x: Tensor[(3), float32]) {
          @f(%x)
        }
        """
    )
    assert Inline()(before) is before


def test_remove_unused_functions():
    before = """
    def @f(%y: Tensor[(3), float32]) {
      exp(%y)
    }
    def @g(%z: Tensor[(3), float32]) {
      abs(%z)
    }
    def @main(%x: Tensor[(3), float32]) {
      @f(%x)
    }
    """
    check(
        RemoveUnusedFunctions(),
        before,
        """
        def @f(%y: Tensor[(3), float32]) {
          exp(%y)
        }
        def @main(%x: Tensor[(3), float32]) {
          @f(%x)
        }
        """,
    )
    assert_is(RemoveUnusedFunctions(["g"])(program(before)), "def @g(%z: Tensor[(3), float32]) { abs(%z) }")


def test_lambda_lift_gives_what_was_captured():
    check(
        LambdaLift(),
        """
        fn (%x: Tensor[(3), float32]) {
          let %f = fn (%y: Tensor[(3), float32]) {
            multiply(%y, %x)
          };
          %f(%f(exp(%x)))
        }
        """,
        """
        def @main(%x: Tensor[(3), float32]) {
          @lifted_f(@lifted_f(exp(%x), %x), %x)
        }
        def @lifted_f(%y: Tensor[(3), float32], %x: Tensor[(3), float32]) -> Tensor[(3), float32] {
          multiply(%y, %x)
        }
        """,
    )


def test_lambda_lift_of_loops():
    check(
        LambdaLift(),
        """
        fn (%x: Tensor[(3), float32]) {
          let %loop = fn (%y: Tensor[(3), float32]) -> Tensor[(3), float32] {
            if (less(sum(%y), 9f)) {
              %loop(add(%y, %x))
            } else {
              %y
            }
          };
          %loop(%x)
        }
        """,
        """
        def @main(%x: Tensor[(3), float32]) {
          @lifted_loop(%x, %x)
        }
        def @lifted_loop(%y: Tensor[(3), float32], %x: Tensor[(3), float32]) -> Tensor[(3), float32] {
          if (less(sum(%y), 9f)) {
            @lifted_loop(add(%y, %x), %x)
          } else {
            %y
          }
        }
        """,
        compare=_same_for_a_loop_that_ends,
    )


def test_lambda_lift_of_calls_at_once():
    check(
        LambdaLift(),
        """
        fn (%x: Tensor[(3), float32]) {
          %0 = fn (%y: Tensor[(3), float32]) {
            add(%y, %x)
          };
          %0(%x)
        }
        """,
        """
        def @main(%x: Tensor[(3), float32]) {
          @lifted_function(%x, %x)
        }
        def @lifted_function(%y: Tensor[(3), float32], %x: Tensor[(3), float32]) -> Tensor[(3), float32] {
          add(%y, %x)
        }
        """,
    )


def test_eta_expand():
    check(
        EtaExpand(expand_global_var=True),
        """
        def @f(%y: Tensor[(3), float32]) {
          exp(%y)
        }
        def @main(%x: Tensor[(3), float32]) {
          (@f, @f(%x))
        }
        """,
        """
        def @f(%y: Tensor[(3), float32]) {
          exp(%y)
        }
        def @main(%x: Tensor[(3), float32]) {
          %0 = fn (%a0: Tensor[(3), float32]) -> Tensor[(3), float32] {
            @f(%a0)
          };
          (%0, @f(%x))
        }
        """,
        compare=results_not_compared,  # one result is a function
    )
    check_unchanged(
        EtaExpand(),
        """
        def @f(%y: Tensor[(3), float32]) {
          exp(%y)
        }
        def @main(%x: Tensor[(3), float32]) {
          (@f, @f(%x))
        }
        """,
    )


def test_partial_evaluation_of_calls():
    check(
        PartialEvaluate(),
        """
        fn (%x: Tensor[(3), float32]) {
          let %f = fn (%y: Tensor[(3), float32]) {
            exp(%y)
          };
          %f(%f(%x))
        }
        """,
        "fn (%x: Tensor[(3), float32]) { exp(exp(%x)) }",
    )


def test_partial_evaluation_of_choices_and_tuples():
    check(
        PartialEvaluate(),
        """
        fn (%x: Tensor[(3), float32]) {
          if (less((1f, 2f).0, 2f)) {
            exp(%x)
          } else {
            %x
          }
        }
        """,
        "fn (%x: Tensor[(3), float32]) { exp(%x) }",
    )


def test_partial_evaluation_of_loops():
    """x squared three times: the count is known."""
    check(
        PartialEvaluate(),
        """
        fn (%x: Tensor[(3), float32]) {
          let %loop = fn (%i: int32, %y: Tensor[(3), float32]) -> Tensor[(3), float32] {
            if (less(%i, 3)) {
              %loop(add(%i, 1), multiply(%y, %y))
            } else {
              %y
            }
          };
          %loop(0, %x)
        }
        """,
        """
        fn (%x: Tensor[(3), float32]) {
          %0 = multiply(%x, %x);
          %1 = multiply(%0, %0);
          multiply(%1, %1)
        }
        """,
    )


def test_loops_whose_end_is_not_known_stay():
    check_unchanged(
        PartialEvaluate(),
        """
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
        """,
    )


def test_long_loops():
    after = PartialEvaluate()(
        program(
            """
            fn (%x: Tensor[(3), float32]) {
              let %loop = fn (%i: int32, %y: Tensor[(3), float32]) -> Tensor[(3), float32] {
                if (less(%i, 400)) {
                  %loop(add(%i, 1), abs(%y))
                } else {
                  %y
                }
              };
              %loop(0, %x)
            }
            """
        )
    )
    assert operators(after["main"]) == ["abs"] * 400


def test_what_writes_stays():
    check_unchanged(
        PartialEvaluate(),
        """
        fn (%x: Tensor[(3), float32]) {
          let %r = ref(%x);
          let %u = ref_write(%r, exp(%x));
          ref_read(%r)
        }
        """,
    )


def test_partial_evaluation_follows_data():
    mod = IRModule()
    prelude = relay.Prelude(mod)
    _, cons, nil = mod.get_type("List")
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    both = prelude.map(relay.Function([y], relay.exp(y)), cons(x, cons(relay.tanh(x), nil())))
    mod["main"] = relay.Function([x], prelude.hd(prelude.tl(both)))
    main = PartialEvaluate()(mod)["main"]
    assert main.body.op.name == "exp" and main.body.args[0].op.name == "tanh"
    assert main.checked_type.ret_type == relay.TensorType((2,))


def test_partial_evaluation_leaves_a_loop_whose_end_is_not_known():
    mod = IRModule()
    prelude = relay.Prelude(mod)
    xs = relay.var("xs", mod.get_global_type_var("List")(relay.scalar_type("int32")))
    mod["main"] = relay.Function([xs], prelude.length(xs))
    assert "foldl" in str(PartialEvaluate()(mod)["main"])


def test_what_a_function_is_given_decides_whether_a_call_is_pure():
    mod = IRModule()
    prelude = relay.Prelude(mod)
    _, cons, nil = mod.get_type("List")
    cell, y, unused = relay.var("cell"), relay.var("y", shape=()), relay.var("unused")
    keep = relay.Function([y], relay.Let(relay.var("_"), relay.RefWrite(cell, y), y))
    body = relay.Let(unused, prelude.map(keep, cons(relay.const(2.0), nil())), relay.RefRead(cell))
    mod["main"] = relay.Function([], relay.Let(cell, relay.RefCreate(relay.const(1.0)), body))
    mod = relay.transform.DeadCodeElimination()(PartialEvaluate()(mod))
    assert evaluate(mod["main"], (), mod) == 2.0
