"""SplitArgs: concatenations of at most so many tensors."""

from loopwright.relay.transform import SplitArgs
from tests.relay.pass_check import check

FIVE = ", ".join(f"%{name}: Tensor[(1, 2), float32]" for name in "abcde")


def test_a_concatenation_of_concatenations():
    check(
        SplitArgs(2),
        f"fn ({FIVE}) {{ concatenate((%a, %b, %c, %d, %e), axis=1) }}",
        f"""
        fn ({FIVE}) {{
          %0 = annotation.stop_fusion(concatenate((%a, %b), axis=1));
          %1 = annotation.stop_fusion(concatenate((%c, %d), axis=1));
          %2 = annotation.stop_fusion(concatenate((%0, %1), axis=1));
          concatenate((%2, %e), axis=1)
        }}
        """,
    )


def test_few_tensors_stay():
    for limit in (5, 0, -1):
        text = f"fn ({FIVE}) {{ concatenate((%a, %b, %c, %d, %e), axis=1) }}"
        check(SplitArgs(limit), text, text)
