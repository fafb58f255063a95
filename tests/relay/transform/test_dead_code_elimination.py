"""DeadCodeElimination: unused lets go, impure ones stay, those used once may be inlined."""

from __future__ import annotations

from loopwright import relay
from loopwright.relay.transform import DeadCodeElimination
from tests.relay.pass_check import check, check_unchanged


def test_an_unused_let_goes():
    check(
        DeadCodeElimination(),
        """
        fn (%x: Tensor[(3), float32]) {
          let %a = exp(%x);
          let %b = nn.relu(%x);
          %b
        }
        """,
        """
        fn (%x: Tensor[(3), float32]) {
          let %b = nn.relu(%x);
          %b
        }
        """,
    )


def test_what_only_an_unused_let_uses_goes_too():
    check(
        DeadCodeElimination(),
        """
        fn (%x: Tensor[(3), float32]) {
          let %a = exp(%x);
          let %b = nn.relu(%a);
          %x
        }
        """,
        "fn (%x: Tensor[(3), float32]) { %x }",
    )


def test_a_let_that_is_used_stays():
    check_unchanged(
        DeadCodeElimination(),
        """
        fn (%x: Tensor[(3), float32]) {
          let %a = exp(%x);
          add(%a, %a)
        }
        """,
    )


def test_inline_what_is_used_once():
    check(
        DeadCodeElimination(inline_once=True),
        """
        fn (%x: Tensor[(3), float32]) {
          let %a = exp(%x);
          let %b = nn.relu(%a);
          add(%b, %b)
        }
        """,
        """
        fn (%x: Tensor[(3), float32]) {
          let %b = nn.relu(exp(%x));
          add(%b, %b)
        }
        """,
    )


def test_writes_stay_unless_told_otherwise():
    check_unchanged(
        DeadCodeElimination(),
        """
        fn (%x: Tensor[(3), float32]) {
          let %r = ref(%x);
          let %u = ref_write(%r, %x);
          %x
        }
        """,
    )
    check_unchanged(
        DeadCodeElimination(inline_once=True),
        """
        fn (%x: Tensor[(3), float32]) {
          let %r = ref(%x);
          let %u = ref_write(%r, %x);
          %x
        }
        """,
    )
    check(
        DeadCodeElimination(ignore_impurity=True),
        """
        fn (%x: Tensor[(3), float32]) {
          let %r = ref(%x);
          let %u = ref_write(%r, %x);
          %x
        }
        """,
        "fn (%x: Tensor[(3), float32]) { %x }",
    )


def test_calls_of_functions_that_write_stay():
    check_unchanged(
        DeadCodeElimination(),
        """
        fn (%x: Tensor[(3), float32]) {
          let %r = ref(%x);
          let %f = fn (%y: Tensor[(3), float32]) {
            let %u = ref_write(%r, %y);
            %y
          };
          let %v = %f(%x);
          %x
        }
        """,
    )
    check(
        DeadCodeElimination(),
        """
        fn (%x: Tensor[(3), float32]) {
          let %f = fn (%y: Tensor[(3), float32]) {
            exp(%y)
          };
          let %v = %f(%x);
          %x
        }
        """,
        "fn (%x: Tensor[(3), float32]) { %x }",
    )


def test_an_unused_loop_goes():
    check(
        DeadCodeElimination(),
        """
        fn (%x: Tensor[(3), float32]) {
          let %loop = fn (%y: Tensor[(3), float32]) -> Tensor[(3), float32] {
            if (less(sum(%y), 9f)) {
              %loop(add(%y, %y))
            } else {
              %y
            }
          };
          %x
        }
        """,
        "fn (%x: Tensor[(3), float32]) { %x }",
    )


def test_a_loop_that_is_used_stays():
    check_unchanged(
        DeadCodeElimination(),
        """
        fn (%x: Tensor[(3), float32]) {
          let %loop = fn (%y: Tensor[(3), float32]) -> Tensor[(3), float32] {
            if (less(sum(%y), 9f)) {
              %loop(exp(%y))
            } else {
              %y
            }
          };
          %loop(%x)
        }
        """,
    )
    check_unchanged(
        DeadCodeElimination(inline_once=True),
        """
        fn (%x: Tensor[(3), float32]) {
          let %loop = fn (%y: Tensor[(3), float32]) -> Tensor[(3), float32] {
            if (less(sum(%y), 9f)) {
              %loop(exp(%y))
            } else {
              %y
            }
          };
          %loop(%x)
        }
        """,
    )


def test_random_numbers_go():
    # A key says which numbers are drawn: drawing them is no side effect.
    check(
        DeadCodeElimination(),
        """
        fn (%x: Tensor[(3), float32]) {
          let %a = random.uniform($key, 0f, 1f, out_shape=[3]);
          %x
        }
        """,
        "fn (%x: Tensor[(3), float32]) { %x }",
        {"key": relay.random.threefry_key(0)},
    )


def test_impurity_is_ignored_but_for_cells_that_are_read():
    check(
        DeadCodeElimination(ignore_impurity=True),
        """
        fn (%x: Tensor[(3), float32]) {
          let %read = ref(%x);
          let %same = %read;
          let %lost = ref(%x);
          let %a = ref_write(%same, exp(%x));
          let %b = ref_write(%lost, exp(%x));
          let %f = fn (%y: Tensor[(3), float32]) { ref_write(%read, %y) };
          let %c = %f(%x);
          ref_read(%read)
        }
        """,
        """
        fn (%x: Tensor[(3), float32]) {
          let %read = ref(%x);
          let %same = %read;
          let %a = ref_write(%same, exp(%x));
          let %f = fn (%y: Tensor[(3), float32]) { ref_write(%read, %y) };
          let %c = %f(%x);
          ref_read(%read)
        }
        """,
    )


def test_a_cell_that_somebody_else_gave():
    check_unchanged(
        DeadCodeElimination(ignore_impurity=True),
        """
        fn (%r: ref(Tensor[(3), float32]), %x: Tensor[(3), float32]) {
          let %a = ref_write(%r, %x);
          %x
        }
        """,
    )
