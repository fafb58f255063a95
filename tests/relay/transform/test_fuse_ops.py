"""FuseOps: which operators are one kernel, rule by rule; and that kernels compute what the graph did."""

from __future__ import annotations

from loopwright import relay
from loopwright.ir.pass_context import PassContext
from loopwright.relay.transform import DefuseOps, FuseOps
from loopwright.relay.visitor import post_order
from tests.relay.pass_check import check, check_unchanged, drawn
from tests.relay.transform.graphs import apply


def test_element_wise_operators_are_one():
    check(
        FuseOps(),
        "fn (%x: Tensor[(3, 4), float32]) { abs(negative(add(%x, %x))) }",
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            abs(negative(add(%p0, %p0)))
          };
          %0(%x)
        }
        """,
    )


def test_ways_that_part_and_meet():
    check(
        FuseOps(),
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = negative(%x);
          add(abs(%0), sign(%0))
        }
        """,
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            %1 = negative(%p0);
            add(abs(%1), sign(%1))
          };
          %0(%x)
        }
        """,
    )


def test_what_is_returned_ends_a_kernel():
    check(
        FuseOps(),
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = negative(%x);
          (%0, abs(%0))
        }
        """,
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            negative(%p0)
          };
          %1 = %0(%x);
          %2 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            abs(%p0)
          };
          (%1, %2(%1))
        }
        """,
    )


def test_a_large_operator_takes_what_follows():
    check(
        FuseOps(),
        "fn (%x: Tensor[(1, 2, 5, 5), float32]) { nn.relu(add(nn.conv2d(%x, $w), $c)) }",
        """
        fn (%x: Tensor[(1, 2, 5, 5), float32]) {
          %0 = fn (%p0: Tensor[(1, 2, 5, 5), float32], %p1: Tensor[(4, 2, 3, 3), float32],
              %p2: Tensor[(4, 1, 1), float32], Primitive=1) {
            nn.relu(add(nn.conv2d(%p0, %p1), %p2))
          };
          %0(%x, $w, $c)
        }
        """,
        drawn(w=(4, 2, 3, 3), c=(4, 1, 1)),
    )


def test_nothing_joins_the_input_of_a_large_operator():
    check(
        FuseOps(),
        "fn (%x: Tensor[(1, 2, 5, 5), float32]) { nn.conv2d(nn.relu(%x), $w) }",
        """
        fn (%x: Tensor[(1, 2, 5, 5), float32]) {
          %0 = fn (%p0: Tensor[(1, 2, 5, 5), float32], Primitive=1) {
            nn.relu(%p0)
          };
          %1 = fn (%p0: Tensor[(1, 2, 5, 5), float32], %p1: Tensor[(4, 2, 3, 3), float32], Primitive=1) {
            nn.conv2d(%p0, %p1)
          };
          %1(%0(%x), $w)
        }
        """,
        drawn(w=(4, 2, 3, 3)),
    )


def test_a_kernel_has_one_large_operator():
    check(
        FuseOps(),
        "fn (%x: Tensor[(1, 2, 5, 5), float32]) { nn.relu(add(nn.conv2d(%x, $w), nn.conv2d(%x, $w1))) }",
        """
        fn (%x: Tensor[(1, 2, 5, 5), float32]) {
          %0 = fn (%p0: Tensor[(1, 2, 5, 5), float32], %p1: Tensor[(4, 2, 3, 3), float32], Primitive=1) {
            nn.conv2d(%p0, %p1)
          };
          %1 = fn (%p0: Tensor[(1, 2, 5, 5), float32], %p1: Tensor[(4, 2, 3, 3), float32],
              %p2: Tensor[(1, 4, 3, 3), float32], Primitive=1) {
            nn.relu(add(nn.conv2d(%p0, %p1), %p2))
          };
          %1(%x, $w, %0(%x, $w1))
        }
        """,
        drawn(w=(4, 2, 3, 3), w1=(4, 2, 3, 3)),
    )


def test_a_large_operator_is_not_broadcast():
    """What follows it must have its shape."""
    check(
        FuseOps(),
        "fn (%x: Tensor[(1, 4), float32]) { add(nn.dense(%x, $w), $w1) }",
        """
        fn (%x: Tensor[(1, 4), float32]) {
          %0 = fn (%p0: Tensor[(1, 4), float32], %p1: Tensor[(4, 4), float32], Primitive=1) {
            nn.dense(%p0, %p1)
          };
          %1 = fn (%p0: Tensor[(1, 4), float32], %p1: Tensor[(3, 4), float32], Primitive=1) {
            add(%p0, %p1)
          };
          %1(%0(%x, $w), $w1)
        }
        """,
        drawn(w=(4, 4), w1=(3, 4)),
    )


def test_a_large_operator_does_not_take_injective_ones():
    check(
        FuseOps(),
        "fn (%x: Tensor[(2, 4), float32]) { transpose(nn.dense(%x, $w)) }",
        """
        fn (%x: Tensor[(2, 4), float32]) {
          %0 = fn (%p0: Tensor[(2, 4), float32], %p1: Tensor[(4, 4), float32], Primitive=1) {
            nn.dense(%p0, %p1)
          };
          %1 = fn (%p0: Tensor[(2, 4), float32], Primitive=1) {
            transpose(%p0)
          };
          %1(%0(%x, $w))
        }
        """,
        drawn(w=(4, 4)),
    )


def test_element_wise_operators_join_a_reduction():
    check(
        FuseOps(),
        "fn (%x: Tensor[(3, 4), float32]) { sum(abs(add(%x, %x)), axis=1) }",
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            sum(abs(add(%p0, %p0)), axis=1)
          };
          %0(%x)
        }
        """,
    )


def test_nothing_follows_a_reduction():
    check(
        FuseOps(),
        "fn (%x: Tensor[(3, 4), float32]) { abs(sum(%x, axis=1)) }",
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            sum(%p0, axis=1)
          };
          %1 = fn (%p0: Tensor[(3), float32], Primitive=1) {
            abs(%p0)
          };
          %1(%0(%x))
        }
        """,
    )


def test_injective_operators_do_not_join_a_reduction():
    check(
        FuseOps(),
        "fn (%x: Tensor[(3, 4), float32]) { sum(transpose(%x), axis=1) }",
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            transpose(%p0)
          };
          %1 = fn (%p0: Tensor[(4, 3), float32], Primitive=1) {
            sum(%p0, axis=1)
          };
          %1(%0(%x))
        }
        """,
    )


def test_injective_operators_are_one():
    check(
        FuseOps(),
        "fn (%x: Tensor[(3, 4), float32]) { abs(transpose(reshape(%x, newshape=[4, 3]))) }",
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            abs(transpose(reshape(%p0, newshape=[4, 3])))
          };
          %0(%x)
        }
        """,
    )


def test_a_tuple_that_is_joined():
    """What a concatenation reads is computed as it is read."""
    check(
        FuseOps(),
        "fn (%x: Tensor[(3, 4), float32]) { concatenate((abs(%x), negative(%x))) }",
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            concatenate((abs(%p0), negative(%p0)))
          };
          %0(%x)
        }
        """,
    )


def test_a_tuple_of_large_operators():
    check(
        FuseOps(),
        "fn (%x: Tensor[(2, 4), float32]) { concatenate((nn.relu(nn.dense(%x, $w)), abs(%x)), axis=1) }",
        """
        fn (%x: Tensor[(2, 4), float32]) {
          %0 = fn (%p0: Tensor[(2, 4), float32], %p1: Tensor[(4, 4), float32], Primitive=1) {
            nn.relu(nn.dense(%p0, %p1))
          };
          %1 = fn (%p0: Tensor[(2, 4), float32], %p1: Tensor[(2, 4), float32], Primitive=1) {
            concatenate((%p1, abs(%p0)), axis=1)
          };
          %1(%x, %0(%x, $w))
        }
        """,
        drawn(w=(4, 4)),
    )


def test_a_tuple_that_is_returned():
    check(
        FuseOps(),
        "fn (%x: Tensor[(3, 4), float32]) { (abs(%x), negative(%x)) }",
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            abs(%p0)
          };
          %1 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            negative(%p0)
          };
          (%0(%x), %1(%x))
        }
        """,
    )


def test_fields_of_an_operator_of_several_results():
    check(
        FuseOps(),
        """
        fn (%x: Tensor[(4, 4), float32]) {
          %0 = split(%x, indices_or_sections=2);
          add(%0.0, %0.1)
        }
        """,
        """
        fn (%x: Tensor[(4, 4), float32]) {
          %0 = fn (%p0: Tensor[(4, 4), float32], Primitive=1) {
            %1 = split(%p0, indices_or_sections=2);
            add(%1.0, %1.1)
          };
          %0(%x)
        }
        """,
    )


def test_opaque_operators_are_alone():
    check(
        FuseOps(),
        "fn (%x: Tensor[(3, 4), float32]) { abs(argsort(negative(%x))) }",
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            negative(%p0)
          };
          %1 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            argsort(%p0)
          };
          %2 = fn (%p0: Tensor[(3, 4), int32], Primitive=1) {
            abs(%p0)
          };
          %2(%1(%0(%x)))
        }
        """,
    )


def test_shapes_decide_whether_a_broadcast_is_element_wise():
    """Two operands of the result's own shape: as in a residual network."""
    check(
        FuseOps(),
        "fn (%x: Tensor[(1, 2, 5, 5), float32]) { add(nn.conv2d(%x, $w), %x) }",
        """
        fn (%x: Tensor[(1, 2, 5, 5), float32]) {
          %0 = fn (%p0: Tensor[(1, 2, 5, 5), float32], %p1: Tensor[(2, 2, 1, 1), float32], Primitive=1) {
            add(nn.conv2d(%p0, %p1), %p0)
          };
          %0(%x, $w)
        }
        """,
        drawn(w=(2, 2, 1, 1)),
    )


def test_stop_fusion():
    check(
        FuseOps(),
        "fn (%x: Tensor[(3, 4), float32]) { abs(annotation.stop_fusion(negative(%x))) }",
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            negative(%p0)
          };
          %1 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            abs(%p0)
          };
          %1(%0(%x))
        }
        """,
    )


def test_numbers_are_parts_of_kernels_and_arrays_are_not():
    check(
        FuseOps(),
        "fn (%x: Tensor[(3, 4), float32]) { add(multiply(%x, 2f), $c) }",
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = fn (%p0: Tensor[(3, 4), float32], %p1: Tensor[(4), float32], Primitive=1) {
            add(multiply(%p0, 2f), %p1)
          };
          %0(%x, $c)
        }
        """,
        drawn(c=(4,)),
    )


def test_identical_arguments_share_a_parameter():
    check(
        FuseOps(),
        "fn (%x: Tensor[(3, 4), float32]) { add(abs(%x), negative(%x)) }",
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            add(abs(%p0), negative(%p0))
          };
          %0(%x)
        }
        """,
    )


def test_link_params_keeps_constants_inside():
    with PassContext(config={"relay.FuseOps.link_params": True}):
        check(
            FuseOps(),
            "fn (%x: Tensor[(3, 4), float32]) { add(%x, $c) }",
            """
            fn (%x: Tensor[(3, 4), float32]) {
              %0 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
                add(%p0, $c)
              };
              %0(%x)
            }
            """,
            drawn(c=(4,)),
        )


def test_level_0_puts_each_alone():
    with PassContext(opt_level=0):
        check(
            FuseOps(),
            "fn (%x: Tensor[(3, 4), float32]) { abs(add(%x, %x)) }",
            """
            fn (%x: Tensor[(3, 4), float32]) {
              %0 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
                add(%p0, %p0)
              };
              %1 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
                abs(%p0)
              };
              %1(%0(%x))
            }
            """,
        )


def test_the_greatest_depth():
    with PassContext(config={"relay.FuseOps.max_depth": 4}):
        check(
            FuseOps(),
            "fn (%x: Tensor[(3, 4), float32]) { abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(%x)))))))))) }",
            """
            fn (%x: Tensor[(3, 4), float32]) {
              %0 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
                abs(abs(abs(abs(%p0))))
              };
              %1 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
                abs(abs(abs(abs(%p0))))
              };
              %2 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
                abs(abs(%p0))
              };
              %2(%1(%0(%x)))
            }
            """,
        )


def test_the_most_arguments():
    with PassContext(config={"relay.FuseOps.max_args": 4}):
        check(
            FuseOps(),
            """
            fn (%x: Tensor[(3, 4), float32], %y0: Tensor[(3, 4), float32], %y1: Tensor[(3, 4), float32],
                %y2: Tensor[(3, 4), float32], %y3: Tensor[(3, 4), float32], %y4: Tensor[(3, 4), float32],
                %y5: Tensor[(3, 4), float32]) {
              add(add(add(add(add(add(%x, %y0), %y1), %y2), %y3), %y4), %y5)
            }
            """,
            """
            fn (%x: Tensor[(3, 4), float32], %y0: Tensor[(3, 4), float32], %y1: Tensor[(3, 4), float32],
                %y2: Tensor[(3, 4), float32], %y3: Tensor[(3, 4), float32], %y4: Tensor[(3, 4), float32],
                %y5: Tensor[(3, 4), float32]) {
              %0 = fn (%p0: Tensor[(3, 4), float32], %p1: Tensor[(3, 4), float32], %p2: Tensor[(3, 4), float32],
                  Primitive=1) {
                add(add(%p0, %p1), %p2)
              };
              %1 = fn (%p0: Tensor[(3, 4), float32], %p1: Tensor[(3, 4), float32], %p2: Tensor[(3, 4), float32],
                  Primitive=1) {
                add(add(%p0, %p1), %p2)
              };
              %2 = fn (%p0: Tensor[(3, 4), float32], %p1: Tensor[(3, 4), float32], %p2: Tensor[(3, 4), float32],
                  Primitive=1) {
                add(add(%p0, %p1), %p2)
              };
              %2(%1(%0(%x, %y0, %y1), %y2, %y3), %y4, %y5)
            }
            """,
        )


def test_reshapes_alone_are_marked():
    check(
        FuseOps(),
        "fn (%x: Tensor[(1, 4), float32]) { reshape(%x, newshape=[4]) }",
        """
        fn (%x: Tensor[(1, 4), float32]) {
          %0 = fn (%p0: Tensor[(1, 4), float32], Primitive=1, relay.reshape_only=1) {
            reshape(%p0, newshape=[4])
          };
          %0(%x)
        }
        """,
    )
    check(
        FuseOps(),
        "fn (%x: Tensor[(1, 4), float32]) { squeeze(%x) }",
        """
        fn (%x: Tensor[(1, 4), float32]) {
          %0 = fn (%p0: Tensor[(1, 4), float32], Primitive=1, relay.reshape_only=1) {
            squeeze(%p0)
          };
          %0(%x)
        }
        """,
    )
    check(
        FuseOps(),
        "fn (%x: Tensor[(1, 4), float32]) { expand_dims(%x, axis=0) }",
        """
        fn (%x: Tensor[(1, 4), float32]) {
          %0 = fn (%p0: Tensor[(1, 4), float32], Primitive=1, relay.reshape_only=1) {
            expand_dims(%p0, axis=0)
          };
          %0(%x)
        }
        """,
    )
    check(
        FuseOps(),
        "fn (%x: Tensor[(1, 4), float32]) { abs(reshape(%x, newshape=[4])) }",
        """
        fn (%x: Tensor[(1, 4), float32]) {
          %0 = fn (%p0: Tensor[(1, 4), float32], Primitive=1) {
            abs(reshape(%p0, newshape=[4]))
          };
          %0(%x)
        }
        """,
    )
    check(
        FuseOps(),
        "fn (%x: Tensor[(1, 4), float32]) { abs(squeeze(%x)) }",
        """
        fn (%x: Tensor[(1, 4), float32]) {
          %0 = fn (%p0: Tensor[(1, 4), float32], Primitive=1) {
            abs(squeeze(%p0))
          };
          %0(%x)
        }
        """,
    )
    check(
        FuseOps(),
        "fn (%x: Tensor[(1, 4), float32]) { abs(expand_dims(%x, axis=0)) }",
        """
        fn (%x: Tensor[(1, 4), float32]) {
          %0 = fn (%p0: Tensor[(1, 4), float32], Primitive=1) {
            abs(expand_dims(%p0, axis=0))
          };
          %0(%x)
        }
        """,
    )


def test_branches_and_functions_are_fused_by_themselves():
    check(
        FuseOps(),
        """
        fn (%c: bool, %x: Tensor[(3, 4), float32]) {
          %0 = negative(%x);
          if (%c) {
            abs(sign(%0))
          } else {
            %0
          }
        }
        """,
        """
        fn (%c: bool, %x: Tensor[(3, 4), float32]) {
          %0 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            negative(%p0)
          };
          %1 = %0(%x);
          if (%c) {
            %2 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
              abs(sign(%p0))
            };
            %2(%1)
          } else {
            %1
          }
        }
        """,
    )
    check(
        FuseOps(),
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = fn (%z: Tensor[(3, 4), float32]) {
            abs(sign(%z))
          };
          %0(negative(%x))
        }
        """,
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            negative(%p0)
          };
          %1 = fn (%z: Tensor[(3, 4), float32]) {
            %2 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
              abs(sign(%p0))
            };
            %2(%z)
          };
          %1(%0(%x))
        }
        """,
    )


def test_a_let_ends_a_kernel():
    check(
        FuseOps(),
        """
        fn (%x: Tensor[(3, 4), float32]) {
          let %v = abs(negative(%x));
          sign(%v)
        }
        """,
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            abs(negative(%p0))
          };
          let %v = %0(%x);
          %1 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            sign(%p0)
          };
          %1(%v)
        }
        """,
    )


def test_kernels_stay_kernels():
    check(
        FuseOps(),
        "fn (%x: Tensor[(3, 4), float32]) { abs(negative(%x)) }",
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            abs(negative(%p0))
          };
          %0(%x)
        }
        """,
    )
    check_unchanged(
        FuseOps(),
        """
        fn (%x: Tensor[(3, 4), float32]) {
          %0 = fn (%p0: Tensor[(3, 4), float32], Primitive=1) {
            abs(negative(%p0))
          };
          %0(%x)
        }
        """,
    )


def test_defuse():
    check_unchanged(
        [FuseOps(), DefuseOps()],
        "fn (%x: Tensor[(1, 2, 5, 5), float32]) { sum(abs(nn.relu(add(nn.conv2d(%x, $w), $c))), axis=1) }",
        drawn(w=(4, 2, 3, 3), c=(4, 1, 1)),
    )


def test_long_chains():
    body = x = relay.var("x", shape=(3, 4))
    for _ in range(2000):
        body = relay.abs(body)
    fused = apply(FuseOps(), relay.Function([x], body))
    assert sum(isinstance(each, relay.Function) for each in post_order(fused.body)) == 8
