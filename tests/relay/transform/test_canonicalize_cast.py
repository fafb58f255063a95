"""CanonicalizeCast: element-wise users convert for themselves."""

from __future__ import annotations

from loopwright import relay
from loopwright.relay.transform import CanonicalizeCast
from tests.relay.transform.graphs import assert_becomes, assert_unchanged


def test_each_user_converts():
    x, y = relay.var("x", shape=(3, 4), dtype="int8"), relay.var("y", shape=(3, 4), dtype="int32")
    wide = relay.cast(x, "int32")
    after = relay.Tuple([relay.cast(x, "int32") + y, relay.cast(x, "int32") * y])
    assert_becomes(CanonicalizeCast(), relay.Tuple([wide + y, wide * y]), after)


def test_narrowing_and_other_users_stay():
    x = relay.var("x", shape=(3, 4), dtype="float32")
    narrow = relay.cast(x, "float16")
    assert_unchanged(CanonicalizeCast(), relay.Tuple([relay.exp(narrow), relay.abs(narrow)]))
    wide = relay.cast(x, "float64")
    assert_unchanged(CanonicalizeCast(), relay.Tuple([relay.sum(wide), relay.argmax(wide)]))


def test_an_argument_given_twice_is_converted_once():
    x = relay.var("x", shape=(3,), dtype="int8")
    wide, other = relay.cast(x, "int32"), relay.cast(x, "int32")
    assert_becomes(CanonicalizeCast(), wide * wide, other * other)
