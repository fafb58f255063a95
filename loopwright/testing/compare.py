"""CompareBeforeAfter: a test that says what a pass makes of a program.

    class TestRemovesOne(CompareBeforeAfter):
        transform = transform.simplify

        def before(A: T.Buffer((4,), "float32")):
            for i in range(4):
                A[i * 1] = T.float32(0)

        def expected(A: T.Buffer((4,), "float32")):
            for i in range(4):
                A[i] = T.float32(0)

`before` and `expected` are programs (a PrimFunc, an IRModule), functions and classes in the script language as above,
which are parsed when the test runs, or methods and fixtures that return a program. `expected` may be an exception
class: the pass must raise it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from loopwright.ir import IRModule, PrimFunc, assert_structural_equal
from loopwright.testing.marks import load_pytest


class CompareBeforeAfter:
    """Subclass it and define `before`, `expected` and `transform`; the test is `test_compare`."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in ("before", "expected", "transform"):
            if name in cls.__dict__:
                setattr(cls, name, _as_fixture(name, cls.__dict__[name]))

    @classmethod
    def _normalize_before(cls, func: object) -> Any:
        """A program, however it is given, as a fixture: for tests that compare something else."""
        return _as_fixture(None, func)

    def test_compare(self, before: object, expected: Any, transform: Callable[[Any], object]) -> None:
        """The pass makes `expected` of `before`, or raises it."""
        if inspect.isclass(expected) and issubclass(expected, Exception):
            with load_pytest().raises(expected):
                transform(_as_given(before, transform))
            return
        after = transform(_as_given(before, transform))
        if isinstance(expected, PrimFunc) or isinstance(after, PrimFunc):
            after, expected = _only_function(after), _only_function(expected)
            # The name of a function is where it stands; one that was not decorated has another than the other side.
            after, expected = after.without_attr("global_symbol"), expected.without_attr("global_symbol")
        assert_structural_equal(after, expected)


def _as_fixture(name: str | None, value: object) -> Any:
    """A fixture that gives what `value` stands for; without a name it has that of the attribute it becomes."""
    pytest = load_pytest()
    if hasattr(value, "_pytestfixturefunction") or type(value).__name__ == "FixtureFunctionDefinition":
        return value
    if name != "transform" and _is_script(value):

        def script(self: object) -> object:
            return _parse(value)

        return pytest.fixture(name=name)(script)
    if isinstance(value, FunctionType) and next(iter(inspect.signature(value).parameters), None) == "self":
        return pytest.fixture(name=name)(value)
    plain = value.__func__ if isinstance(value, staticmethod) else value

    def constant(self: object) -> object:
        return plain

    return pytest.fixture(name=name)(constant)


def _is_script(value: object) -> bool:
    """Whether it is a function or a class that still has to be parsed."""
    if inspect.isclass(value):
        return not issubclass(value, BaseException)
    return isinstance(value, FunctionType) and next(iter(inspect.signature(value).parameters), None) != "self"


def _parse(value: Any) -> object:
    from loopwright.script import ir as I
    from loopwright.script import tir as T

    return I.ir_module(value) if inspect.isclass(value) else T.prim_func(value)


def _as_given(program: object, transform: object) -> object:
    """A pass takes a module; what a user wrote as a function takes what it takes."""
    if isinstance(program, PrimFunc) and not isinstance(transform, FunctionType):
        name = str(program.attrs.get("global_symbol", "main"))
        return IRModule({name: program.with_attr("global_symbol", name)})
    return program


def _only_function(program: object) -> Any:
    if isinstance(program, IRModule):
        functions = [function for _, function in program.functions_items()]
        if len(functions) == 1:
            return functions[0]
    return program
