"""Parameters of tests as values of the test's module or class.

batch = testing.parameter(1, 8)                                  tests that take `batch` run twice
height, width = testing.parameters((8, 8), (1, 31))              together: two runs, not four

@testing.fixture(cache_return_value=True)
def reference(batch, height, width): ...                         computed once for each combination
"""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from loopwright.runtime.errors import LoopwrightError
from loopwright.testing.marks import Test, add_mark, load_pytest

if TYPE_CHECKING:
    import pytest

P = ParamSpec("P")
R = TypeVar("R")
_groups = itertools.count()
# Function of a fixture made by `parameters` → its group, its position in it, the group's values and their names.
Group: TypeAlias = tuple[int, int, Sequence[Sequence[object]], Sequence[str] | None]
GROUPS: dict[Callable[..., object], Group] = {}


class BadParameters(LoopwrightError, ValueError):
    """Parameters that cannot be given to tests: sets of different lengths, or two ways of naming them at once.

    For example:

        from loopwright import testing

        height, width = testing.parameters((8, 8), (1, 31, 2))
    """

    code = "LW0043"


class PluginNotLoaded(LoopwrightError):
    """A test takes values of `testing.parameters`, which need the pytest plugin to go together.

    For example:

        from loopwright.testing.fixtures import PluginNotLoaded

        raise PluginNotLoaded  # what such a test raises
    """

    code = "LW0044"

    def __init__(self) -> None:
        super().__init__(
            "testing.parameters needs the pytest plugin loopwright.testing.plugin",
            hint='write pytest_plugins = ["loopwright.testing.plugin"] in conftest.py, or run pytest with '
            "-p loopwright.testing.plugin",
        )


def parameter(
    *values: object,
    ids: Sequence[str] | Callable[[Any], str] | None = None,
    by_dict: Mapping[str, object] | None = None,
) -> Any:
    """A fixture: tests that take it run once for each value. `by_dict` gives names and values."""
    if by_dict is not None:
        if values or ids:
            raise BadParameters("parameter: give values or by_dict, not both")
        ids, values = list(by_dict), tuple(by_dict.values())

    def value(*_self: object, request: pytest.FixtureRequest) -> object:  # with a self where it is a value of a class
        # Each test gets a copy, so that one which changes its argument does not change the next one's.
        return copy.deepcopy(request.param) if _is_container(request.param) else request.param

    return load_pytest().fixture(params=list(values), ids=ids)(value)


def parameters(*value_sets: Sequence[object], ids: Sequence[str] | None = None) -> list[Any]:
    """One fixture for each position of the sets: tests that take any of them run once for each set."""
    lengths = {len(values) for values in value_sets}
    if len(lengths) > 1:
        raise BadParameters(f"parameters: the sets have different lengths: {', '.join(map(str, sorted(lengths)))}")
    group = next(_groups)
    fixtures = []
    for position in range(next(iter(lengths), 0)):

        def value(*_self: object, request: pytest.FixtureRequest) -> object:
            if not hasattr(request, "param"):
                raise PluginNotLoaded
            return request.param

        GROUPS[value] = (group, position, value_sets, ids)
        fixtures.append(load_pytest().fixture()(value))
    return fixtures


def fixture(func: Callable[..., object] | None = None, *, cache_return_value: bool = False) -> Any:
    """A pytest fixture; with `cache_return_value`, computed once for equal arguments, and each test gets a copy."""
    if func is None:
        return functools.partial(fixture, cache_return_value=cache_return_value)
    return load_pytest().fixture()(_cached(func) if cache_return_value else func)


def xfail_parameterizations(*xfail_params: object, reason: str) -> Callable[[Test], Test]:
    """Expect a test to fail with these parameters, named as pytest names them."""
    return lambda test: add_mark(test, "loopwright_failing_parameters", xfail_params, reason=reason)


def _cached(func: Callable[P, R]) -> Callable[P, R]:
    if inspect.isgeneratorfunction(func):
        raise BadParameters(f"fixture {func.__name__} yields, so that its value cannot be kept")
    kept: dict[bytes, R] = {}

    @functools.wraps(func)
    def value(*args: P.args, **kwargs: P.kwargs) -> R:
        key = pickle.dumps((args, sorted(kwargs.items())))  # never read back: equal arguments have equal bytes
        if key not in kept:
            kept[key] = func(*args, **kwargs)
        return copy.deepcopy(kept[key])

    return value


def _is_container(value: object) -> bool:
    return isinstance(value, (list, dict, set, bytearray))
