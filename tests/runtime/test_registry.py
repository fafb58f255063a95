from __future__ import annotations

import pytest

from loopwright import error, nd
from loopwright.runtime import get_global_func, list_global_func_names, register_func, remove_global_func
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.registry import FunctionNameTaken, UnknownGlobalFunction, convert


@pytest.fixture(autouse=True)
def clean():
    yield
    for name in list_global_func_names():
        if name.startswith("test."):
            remove_global_func(name)


def test_register_find_and_remove():
    function = register_func("test.twice", lambda x: 2 * x)
    assert function(4) == 8
    assert get_global_func("test.twice")(5) == 10
    assert "test.twice" in list_global_func_names()
    remove_global_func("test.twice")
    assert get_global_func("test.twice", allow_missing=True) is None


def test_decorators():
    @register_func("test.plus")
    def plus(a, b):
        return a + b

    assert plus(1, 2) == 3
    assert get_global_func("test.plus")(1, 2) == 3


def test_a_taken_name_needs_override():
    register_func("test.f", lambda: 1)
    with pytest.raises(FunctionNameTaken, match=r"already registered as 'test\.f'"):
        register_func("test.f", lambda: 2)
    register_func("test.f", lambda: 2, override=True)
    assert get_global_func("test.f")() == 2


def test_an_unknown_name_suggests_near_ones():
    register_func("test.matmul", lambda: 1)
    with pytest.raises(ValueError, match=r"no function is registered as 'test\.matmull'") as caught:
        get_global_func("test.matmull")
    assert isinstance(caught.value, UnknownGlobalFunction)
    assert "did you mean test.matmul" in str(caught.value)
    with pytest.raises(UnknownGlobalFunction):
        remove_global_func("test.nothing")


class Peculiar(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


@pytest.mark.parametrize("thrown", [ValueError("v"), Peculiar(1, 2), LoopwrightError("p", why="w", hint="h")])
def test_exceptions_come_through_native_code_as_the_same_object(thrown: Exception):
    def fail() -> None:
        raise thrown

    inner = convert(fail)
    outer = convert(lambda: inner())
    for function in (inner, outer, register_func("test.fail", fail)):
        with pytest.raises(type(thrown)) as caught:
            function()
        assert caught.value is thrown


def test_convert():
    assert list(convert([1, "a", [2]])[2]) == [2]
    assert convert({"a": 1})["a"] == 1
    assert convert("text") == "text"
    assert convert(None) is None
    tensor = nd.empty((1,))
    assert convert(tensor) is tensor


def test_registered_errors_arrive_as_their_class():
    from native_call import raising

    @error.register_error
    class PlainKind(RuntimeError):
        pass

    with pytest.raises(PlainKind, match="hello"):
        raising("PlainKind", "hello")()


def test_the_error_facade():
    assert error.TVMError is LoopwrightError
    assert issubclass(error.InternalError, error.TVMError)
    assert issubclass(error.DiagnosticError, error.TVMError)
    assert issubclass(error.OpAttributeRequired, AttributeError)
    with pytest.raises(NotImplementedError, match=r"no op \[LW0006\]"):
        raise error.OpNotImplemented("no op")
