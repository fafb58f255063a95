"""Hybrid functions that have no meaning: what is said, and the line that is shown."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import LoopwrightError, te
from loopwright.te.hybrid import (
    HybridCallError,
    HybridError,
    HybridLoopError,
    HybridModule,
    HybridNameError,
    HybridReturnError,
    HybridTypeError,
    MixedArguments,
)


def _read(body, *parameters, **outside):
    """Read a hybrid function with this body on tensors of shape (4, 4), named after its parameters."""
    lines = ["    b = output_tensor((4, 4), 'float32')", *["    " + line for line in body.splitlines()], "    return b"]
    return _read_text("\n".join(["def f(a):", *lines]), **outside)


def _read_text(text, **outside):
    module = HybridModule(text)
    module.func_.func.__globals__.update(outside)
    return module(te.placeholder((4, 4), name="a"))


CASES = [
    # Names
    (HybridNameError, "b[0, 0] = c", r"c has no value here"),
    (HybridNameError, "for i in range(4):\n    s = a[i, 0]\nb[0, 0] = s", r"s is used outside the loop over i"),
    (HybridNameError, "for i in range(4):\n    b[i, 0] = 0.0\nb[0, 0] = i", r"i is used outside the loop over i"),
    (HybridNameError, "for i in range(4):\n    i = 3", r"the loop variable i is assigned"),
    (HybridNameError, "for i in range(4):\n    i += 3", r"the loop variable i is assigned"),
    (HybridNameError, "for i in range(4):\n    for i in range(4):\n        b[i, i] = 0.0", r"i has a value already"),
    (HybridNameError, "s += 1.0", r"s is changed before it has a value"),
    (HybridNameError, "a = 1.0", r"a stands for something else already"),
    (HybridNameError, "b[0, 0] = weird", r"weird is object .* which a hybrid function cannot use"),
    (HybridNameError, "b[0, 0] = pair[0]", r"pair is object"),
    # Loops
    (HybridLoopError, "for i in range(0, 4, 2):\n    b[i, 0] = 0.0", r"range takes an end.*got 3 arguments"),
    (HybridLoopError, "for i in a:\n    b[i, 0] = 0.0", r"a loop cannot run over a"),
    (HybridLoopError, "for i in zip(a, b):\n    pass", r"a loop cannot run over zip\(a, b\)"),
    (HybridLoopError, "for i, j in range(4):\n    pass", r"a loop has one variable"),
    (HybridLoopError, "for i in range(4):\n    pass\nelse:\n    pass", r"else of a loop has no meaning"),
    (HybridLoopError, "for i in range(2.5):\n    pass", r"a bound of the loop has type float32"),
    (HybridLoopError, "for i in range(4):\n    for j in const_range(i):\n        pass", r"const_range are not"),
    (HybridLoopError, "for i in range(4):\n    for j in vectorize(i):\n        pass", r"vectorize are not constant"),
    (HybridLoopError, "for i in bind(4):\n    pass", r"bind takes the name of the threads and their number"),
    (
        HybridLoopError,
        "for i in bind('threadIdx.x', 4):\n    pass\nfor j in bind('threadIdx.x', 5):\n    pass",
        r"threadIdx\.x is bound to loops of 5 and of 4 iterations",
    ),
    # Calls
    (HybridCallError, "b[0, 0] = max(1.0, 2.0, 3.0)", r"max takes 2 arguments, got 3"),
    (HybridCallError, "b[0, 0] = sqrt()", r"sqrt takes 1 argument, got 0"),
    (HybridCallError, "b[0, 0] = unknown(1.0)", r"unknown is no function that a hybrid function may call"),
    (HybridCallError, "b[0, 0] = np.sqrt(1.0)", r"np\.sqrt is not called by a plain name"),
    (HybridCallError, "b[0, 0] = sqrt(x=1.0)", r"sqrt takes no keywords"),
    (HybridCallError, "b[0, 0] = len(a)", r"len of a, which has 2 dimensions, has no one answer"),
    (HybridCallError, "b[0, 0] = exp(a)", r"an argument of exp is the whole tensor a"),
    (HybridCallError, "b[0, 0] = range(4)", r"range stands outside the head of a loop"),
    (HybridCallError, "b[0, 0] = sqrt(allocate((1,)))", r"allocate stands inside an expression"),
    (HybridCallError, "c = allocate((4,), 'float32', 'nowhere')", r"'nowhere' is no scope"),
    (HybridCallError, "c = output_tensor((4,), 'float32', 'local')", r"output_tensor takes shape, dtype"),
    (HybridCallError, "c = output_tensor((4,))", r"output_tensor needs a shape and a type"),
    (HybridCallError, "for i in range(4):\n    c = output_tensor((4,), 'int8')", r"output_tensor stands inside a loop"),
    # Types
    (HybridTypeError, "c = allocate((4,), 'string')", r"'string' is no type that tensors here have"),
    (HybridTypeError, "s = 0\nfor i in range(4):\n    s += a[i, 0]", r"s is int32, as its first value says"),
    (HybridError, "for i in range(4):\n    b[i, 0] = i / 2", r"/ divides int32 by int32"),
    (HybridError, "b[0, 0] = a", r"the value is the whole tensor a"),
    (HybridError, "b[0.5, 0] = 1.0", r"index 0 of b has type float32"),
    (HybridError, "b[0] = 1.0", r"b has 2 dimensions, but 1 are indexed"),
    (HybridError, "b[0, 0, 0] = 1.0", r"b has 2 dimensions, but 3 indices are given"),
    (HybridError, "b[0, 0] = a[0]", r"a has 2 dimensions, but 1 index was given"),
    (HybridError, "b[0, 0] = (1, 2)[i]", r"i has no value here"),
    (HybridError, "b[0, 0] = (1, 2)[2]", r"index 2 is outside a tuple of 2"),
    (HybridError, "for i in bind('threadIdx.x', 4):\n    s = a[i, 0]", r"the scalar s is made inside a loop"),
    (HybridError, "b[0, 0] = 'text'", r"the value is str 'text'"),
    (HybridError, "x, y = a.shape[0]", r"1 value cannot be given to 2 names"),
    # Python that is not hybrid script
    (HybridError, "while True:\n    pass", r"While has no meaning in a hybrid function"),
    (HybridError, "for i in range(4):\n    break", r"Break has no meaning"),
    (HybridError, "b[0, 0] = [x for x in (1, 2)]", r"ListComp has no meaning"),
    (HybridError, "b[0, 0] = b[1, 0] = 1.0", r"a value is assigned to several targets"),
    (HybridError, "c: int = 3", r"annotations have no meaning"),
    (HybridError, "a[0, 0]", r"an expression stands alone"),
    (HybridError, "sqrt(1.0)", r"the result of sqrt is not used"),
    (HybridError, "b[0, 0] = a.size", r"a\.size has no meaning here"),
    (HybridError, "b[0, 0] = 1 in (1, 2)", r"is tuple|In has no meaning"),
    (HybridError, "b[0, 0] = None", r"the literal None has no meaning"),
    (HybridError, "assert a[0, 0] > 0.0, 3", r"the message of assert is no text"),
    (HybridError, "a.shape = 3", r"this cannot be assigned"),
]


@pytest.mark.parametrize(("error", "body", "message"), CASES, ids=[body.replace("\n", "; ") for _, body, _ in CASES])
def test_what_has_no_meaning(error, body, message):
    with pytest.raises(error, match=message) as caught:
        _read(body, weird=object(), pair=(object(),), np=np)
    assert isinstance(caught.value, ValueError)
    shown = str(caught.value)
    assert "\n  > " in shown and "^" in shown  # the line, and the place in it


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(a):\n    b = output_tensor((4,), 'int8')", r"f returns nothing"),
        ("def f(a):\n    b = output_tensor((4,), 'int8')\n    return b, b", r"b is returned twice"),
        ("def f(a):\n    return a", r"a is returned, but was not made by output_tensor"),
        ("def f(a):\n    b = allocate((4,))\n    return b", r"b is returned, but was not made by output_tensor"),
        ("def f(a):\n    return 3", r"returns something that is no tensor"),
        ("def f(a):\n    return", r"returns something that is no tensor"),
        (
            "def f(a):\n    b = output_tensor((4,), 'int8')\n    for i in range(4):\n        return b",
            r"return stands inside a loop",
        ),
        (
            "def f(a):\n    b = output_tensor((4,), 'int8')\n    if a[0, 0] > 0.0:\n        return b\n    return b",
            r"return stands inside a condition",
        ),
        ("def f(a):\n    b = output_tensor((4,), 'int8')\n    return b\n    b[0] = 1", r"a statement follows"),
    ],
)
def test_returns(text, message):
    with pytest.raises(HybridReturnError, match=message):
        _read_text(text)


@te.hybrid.script
def _add(a, b):
    c = output_tensor((4,), "float32")
    for i in range(4):
        c[i] = a[i] + b[i]
    return c


@te.hybrid.script
def _calls_itself(a):
    b = _calls_itself(a)
    return b


@te.hybrid.script
def _collects(*a):
    return a


def test_arguments():
    A, a = te.placeholder((4,), name="A"), np.zeros(4, "float32")
    with pytest.raises(MixedArguments, match=r"_add is called on te tensor A and on ndarray"):
        _add(A, a)
    with pytest.raises(HybridCallError, match=r"_add takes 2 arguments \(a, b\), got 1"):
        _add(A)
    with pytest.raises(HybridCallError, match=r"argument b is object"):
        _add(A, object())
    with pytest.raises(HybridCallError, match=r"_collects collects arguments in \*a"):
        _collects(A)
    with pytest.raises(HybridCallError, match=r"_calls_itself calls itself without end"):
        _calls_itself(A)
    with pytest.raises(HybridCallError, match=r"is no function written in Python"):
        te.hybrid.script(len)
    with pytest.raises(HybridCallError, match=r"_add takes 2 arguments \(a, b\), got 3"):
        _read("c = _add(a, a, a)", _add=_add)


def test_functions_without_source():
    made = te.hybrid.script(eval("lambda a: a", {}))
    with pytest.raises(LoopwrightError, match=r"the source of function '<lambda>' cannot be found"):
        made(te.placeholder((4,), name="A"))
