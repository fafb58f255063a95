"""AnnotateUsedMemory: the bytes in use at each call."""

import pytest

from loopwright import relay
from loopwright.relay.transform import AnnotateUsedMemory, InferType, Sequential, ToANormalForm


def annotated(body, *params):
    mod = relay.IRModule.from_expr(relay.Function(params, body))
    return Sequential([InferType(), ToANormalForm(), InferType(), AnnotateUsedMemory()])(mod)["main"]


def primitive(shape=(2, 4)):
    x = relay.var("x", shape=shape, dtype="int16")
    return relay.Function([x], relay.abs(x)).with_attr("Primitive", 1)


def used(function):
    result = []
    relay.analysis.post_order_visit(
        function.body, lambda e: result.append([int(n) for n in e.attrs["used_memory"]]) if is_primitive(e) else None
    )
    return result


def is_primitive(expression):
    return isinstance(expression, relay.Function) and "Primitive" in expression.attrs


def test_what_is_needed_later_counts():
    x, f, g = relay.var("x", shape=(2, 4), dtype="int16"), primitive(), primitive()
    first = relay.Call(f, [x])
    second = relay.Call(g, [first])
    main = annotated(relay.Tuple([first, relay.Call(g, [second])]), x)
    assert main.attrs["io_used_memory"] == 48
    assert used(main) == [[32], [32, 48]]


def test_sizes_have_to_be_known():
    x = relay.var("x", shape=(2, relay.Any()), dtype="int16")
    with pytest.raises(relay.errors.CannotCompile, match="AnnotateUsedMemory does not support dynamic shapes"):
        annotated(relay.abs(x), x)
