"""ignored_arguments: arguments of operators that TVM's searches fill in; scripts may pass them, and we ignore them.

They say how a search has rewritten the layout of a weight. There is no search, so every layout is as it is written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, TypeVar

T = TypeVar("T")

_LAYOUT: Final = ("auto_scheduler_rewritten_layout", "meta_schedule_original_shape")

# Path → operator → the index at which the first of them stands in TVM's signature, and their names.
IGNORED: Final[dict[str, dict[str, tuple[int, tuple[str, ...]]]]] = {
    "topi.nn": {
        "batch_matmul": (6, _LAYOUT),
        "conv": (9, (*_LAYOUT, "auto_scheduler_should_rewrite_layout")),
        "conv2d_nhwc": (6, _LAYOUT),
        "conv2d_winograd_nchw": (7, _LAYOUT),
        "conv2d_winograd_nchw_without_weight_transform": (6, _LAYOUT),
        "conv2d_winograd_nhwc": (7, _LAYOUT),
        "conv2d_winograd_nhwc_without_weight_transform": (6, _LAYOUT),
        "conv3d_ndhwc": (7, _LAYOUT),
        "dense": (4, _LAYOUT),
        "matmul": (6, _LAYOUT),
    }
}


@functools.cache  # a function has one identity
def _without(operator: Callable[..., T], first: int, names: tuple[str, ...]) -> Callable[..., T]:
    @functools.wraps(operator)
    def call(*args: object, **kwargs: object) -> T:
        kept = {name: value for name, value in kwargs.items() if name not in names}
        return operator(*args[:first], *args[first + len(names) :], **kept)

    return call


def forgiving(path: str) -> dict[str, property]:
    """For the class of the opened module of that path: its operators, which take the ignored arguments too."""

    def attribute(name: str, first: int, names: tuple[str, ...]) -> property:
        def get(module: ModuleType) -> Callable[..., Any]:
            return _without(vars(module)[name], first, names)

        return property(get)

    return {name: attribute(name, *row) for name, row in IGNORED.get(path, {}).items()}
