"""Builder: makes candidates into files that a runner can load. What goes wrong is a message in the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from loopwright.ir import IRModule
from loopwright.meta_schedule.derived import Part
from loopwright.meta_schedule.errors import MethodNotDefined, UnknownKind
from loopwright.target import Target


@dataclass
class BuilderInput:
    """A scheduled program and what it is built for; `params` are values of parameters that the build takes in."""

    mod: IRModule
    target: Target
    params: Mapping[str, Any] | None = None


@dataclass
class BuilderResult:
    """The file that was built, or why there is none."""

    artifact_path: str | None
    error_msg: str | None


class Builder(Part):
    """Derive from `PyBuilder` to build elsewhere or otherwise."""

    BuilderType = object
    kinds: ClassVar[dict[str, Callable[..., Any]]] = {}  # by name; each kind enters itself

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """A result for each, in order."""
        raise MethodNotDefined(f"{type(self).__name__}'s build is not defined")

    @staticmethod
    def create(kind: Any = "local", *args: Any, **kwargs: Any) -> Builder:
        """A builder of a kind; there is "local"."""
        if isinstance(kind, Builder):
            return kind
        if kind not in Builder.kinds:
            raise UnknownKind("builder", kind, list(Builder.kinds))
        made: Builder = Builder.kinds[kind](*args, **kwargs)
        return made


create = Builder.create


class PyBuilder(Builder):
    """What builders of the user's derive from."""
