"""LocalBuilder: builds in processes of its own, with a time limit; a crash costs one candidate."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from loopwright.analysis import check_program
from loopwright.ir import IRModule
from loopwright.meta_schedule.builder.builder import Builder, BuilderInput, BuilderResult, PyBuilder
from loopwright.meta_schedule.hooks import Hook, checked, hook
from loopwright.runtime import thread_pool
from loopwright.target import Target, describe
from loopwright.transform import lower
from loopwright.tune.measure import Failure
from loopwright.tune.measure.children import Report, run_children
from loopwright.tune.measure.limits import Limits

_MEMORY: Final = 4 << 30

Build = Callable[[IRModule, Target, Mapping[str, Any] | None], Any]
Export = Callable[[Any], str]


class LocalBuilder(PyBuilder):
    """`f_build` makes a module of a program, `f_export` a file of it: functions, or names of registered ones."""

    def __init__(
        self,
        *,
        max_workers: int | None = None,
        timeout_sec: float = 30.0,
        f_build: Hook = None,
        f_export: Hook = None,
        initializer: Callable[[], None] | None = None,
    ) -> None:
        self.max_workers = max_workers or thread_pool.num_threads()
        self.timeout_sec, self.initializer = timeout_sec, initializer
        self.f_build, self.f_export = f_build, f_export
        checked(initializer, [f_build, f_export])

    @property
    def is_usual(self) -> bool:
        """Whether it builds as the search itself does."""
        return self.f_build is None and self.f_export is None and self.initializer is None

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        works = [self._work(one) for one in build_inputs]
        outcomes = run_children(works, Limits(self.timeout_sec, _MEMORY), "build", self.max_workers)
        return [self._result(outcome) for outcome in outcomes]

    def _work(self, given: BuilderInput) -> Callable[[Report], str]:
        def work(_report: Report) -> str:
            if self.initializer is not None:
                self.initializer()
            built = hook(self.f_build, default_build)(given.mod, given.target, given.params)
            return str(hook(self.f_export, default_export)(built))

        return work

    def _result(self, outcome: str | Failure) -> BuilderResult:
        if isinstance(outcome, str):
            return BuilderResult(outcome, None)
        if outcome.kind == "build timeout":
            return BuilderResult(None, f"LocalBuilder: Timeout, killed after {self.timeout_sec} seconds")
        return BuilderResult(None, f"LocalBuilder: An exception occurred\n{outcome.message}\n{outcome.detail}")


def default_build(mod: IRModule, target: Target, params: Mapping[str, Any] | None) -> Any:
    """The program compiled as it is scheduled."""
    # Loaded when needed: it loads LLVM.
    from loopwright.codegen.llvm.make_module import make_module

    lowered = lower(check_program(mod), target)
    names = [str(one.attrs.get("global_symbol", name)) for name, one in mod.functions_items()]
    return make_module(lowered, describe(target), names[0] if len(names) == 1 else None)


def default_export(mod: Any) -> str:
    """A shared library in a folder of its own."""
    path = os.path.join(tempfile.mkdtemp(), "module.so")
    mod.export_library(path)
    return path


Builder.kinds["local"] = LocalBuilder
