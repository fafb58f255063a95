"""topi.random: numbers that are drawn, from a state that says which.

`threefry.py` makes random bits, `distributions.py` numbers of them.
"""

from loopwright.topi.random.distributions import multinomial, normal, uniform
from loopwright.topi.random.threefry import (
    threefry_generate,
    threefry_key,
    threefry_split,
    threefry_test_wrapping,
)

__all__ = [
    "multinomial",
    "normal",
    "threefry_generate",
    "threefry_key",
    "threefry_split",
    "threefry_test_wrapping",
    "uniform",
]
