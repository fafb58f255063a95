from __future__ import annotations

import pickle

import pytest
from native_call import raising

from loopwright.runtime import call_errors
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.module import Module

CODES = {
    "ArgumentCountMismatch": ("LW0110", TypeError),
    "ArgumentKindMismatch": ("LW0111", TypeError),
    "RankMismatch": ("LW0112", ValueError),
    "ShapeMismatch": ("LW0113", ValueError),
    "DtypeMismatch": ("LW0114", TypeError),
    "StrideMismatch": ("LW0115", ValueError),
    "DeviceMismatch": ("LW0116", ValueError),
    "OverlappingArguments": ("LW0117", ValueError),
    "MisalignedArgument": ("LW0118", ValueError),
    "NullArgument": ("LW0119", ValueError),
    "RecursionTooDeep": ("LW0157", RecursionError),
    "AssertionFailed": ("LW0120", AssertionError),
    "SizesDoNotFit": ("LW0150", ValueError),
    "IndexOutOfRange": ("LW0151", IndexError),
    "WorkspaceExhausted": ("LW0121", MemoryError),
    "ReadOnlyArgument": ("LW0122", ValueError),
    "ResultOutOfRange": ("LW0128", OverflowError),
    "UnregisteredFunction": ("LW0130", ValueError),
    "PackedResultMismatch": ("LW0131", TypeError),
    "KernelStopped": ("LW0172", RuntimeError),
}


@pytest.mark.parametrize("kind", call_errors.KINDS)
def test_every_kind_arrives_as_its_class(kind: str):
    code, builtin = CODES[kind]
    with pytest.raises(call_errors.KINDS[kind], match="main: something is off") as caught:
        raising(kind, "main: something is off")()
    assert isinstance(caught.value, (LoopwrightError, builtin))
    assert isinstance(caught.value, builtin)
    assert caught.value.code == code


def test_the_anatomy_shows_problem_call_reason_and_hint():
    check = raising("ShapeMismatch", "main: B has shape (3, 4), expected (4, 4)\x1fbuilt for n = 4\x1ftranspose B")
    with pytest.raises(call_errors.ShapeMismatch) as caught:
        check(1, 2)
    lines = str(caught.value).splitlines()
    assert lines[0] == "main: B has shape (3, 4), expected (4, 4) [LW0113]"
    assert lines[1].startswith("  call: check(1, 2) at test_call_errors.py:")
    assert lines[2:] == ["  why: built for n = 4", "  hint: transpose B"]


def test_the_call_shown_is_the_users_also_through_a_module():
    module = Module({"main": raising("RankMismatch", "main: A has 1 axis, expected 2")})
    with pytest.raises(call_errors.RankMismatch, match=r"call: module\(5\) at test_call_errors.py"):
        module(5)


def test_parts_may_be_missing_or_empty():
    with pytest.raises(call_errors.DtypeMismatch) as caught:
        raising("DtypeMismatch", "main: A is float64\x1f\x1fcast it")()
    assert (caught.value.problem, caught.value.why, caught.value.hint) == ("main: A is float64", None, "cast it")


def test_errors_survive_pickling():
    error = pickle.loads(pickle.dumps(call_errors.ShapeMismatch("p\x1fw\x1fh")))
    assert type(error) is call_errors.ShapeMismatch
    assert (error.problem, error.why, error.hint) == ("p", "w", "h")


def test_every_class_explains_itself():
    for kind in call_errors.KINDS.values():
        assert kind.__doc__
        assert LoopwrightError.codes[kind.code] is kind
