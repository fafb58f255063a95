"""tag_scope: give one tag to every operation made in a block of Python code (or by a decorated function)."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import ParamSpec, TypeVar

from loopwright.runtime.errors import LoopwrightError

P = ParamSpec("P")
R = TypeVar("R")


class TagConflict(LoopwrightError, ValueError):
    """An operation would get two tags: scopes do not nest, and inside one an operation takes no tag of its own.

    For example:

        from loopwright import te

        with te.tag_scope("outer"):
            te.compute((4,), lambda i: i, name="A", tag="own")
    """

    code = "LW0415"

    def __init__(self, problem: str) -> None:
        super().__init__(problem, hint="leave out one of the two tags")


class TagScope:
    """`with te.tag_scope("conv"): …` or `@te.tag_scope("conv")`."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.used = False
        self._tokens: list[Token[TagScope | None]] = []

    def __enter__(self) -> TagScope:
        outer = _current.get()
        if outer is not None:
            raise TagConflict(f"tag_scope {self.tag!r} is opened inside tag_scope {outer.tag!r}")
        self.used = False
        self._tokens.append(_current.set(self))
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        _current.reset(self._tokens.pop())
        if not self.used and kind is None:
            warnings.warn(f"tag {self.tag!r} is declared by te.tag_scope, but nothing was made inside", stacklevel=2)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def tagged(*args: P.args, **kwargs: P.kwargs) -> R:
            with TagScope(self.tag):
                return function(*args, **kwargs)

        return tagged


_current: ContextVar[TagScope | None] = ContextVar("loopwright_te_tag_scope", default=None)


def tag_scope(tag: str) -> TagScope:
    """Set `op.tag` of every operation made inside; works as a context manager and as a decorator."""
    return TagScope(tag)


def default_tag(tag: str) -> str:
    """`tag` for an operation that the user did not make by hand: inside a scope, the scope's tag stands."""
    return tag if _current.get() is None else ""


def resolve_tag(name: str, tag: str) -> str:
    """The tag of a new operation: its own, or that of the scope around it."""
    scope = _current.get()
    if scope is None:
        return tag
    if tag:
        raise TagConflict(f"{name} has the tag {tag!r}, but is made inside tag_scope {scope.tag!r}")
    scope.used = True
    return scope.tag
