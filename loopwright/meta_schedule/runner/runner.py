"""Runner: times what a builder made. What goes wrong is a message in the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from loopwright.meta_schedule.arg_info import ArgInfo
from loopwright.meta_schedule.database.record import Seconds
from loopwright.meta_schedule.derived import Part
from loopwright.meta_schedule.errors import MethodNotDefined, UnknownKind, needs_rpc


@dataclass
class RunnerInput:
    """A file that a builder made, the kind of device, and the arguments."""

    artifact_path: str
    device_type: str
    args_info: Sequence[ArgInfo]


class RunnerResult(Part):
    """Seconds of one call, one for each measurement; or why there are none."""

    def __init__(self, run_secs: Sequence[float] | None, error_msg: str | None) -> None:
        self.run_secs = None if run_secs is None else [Seconds(getattr(one, "value", one)) for one in run_secs]
        self.error_msg = error_msg

    def __str__(self) -> str:
        return f"RunnerResult({self.run_secs}, {self.error_msg!r})"


class RunnerFuture(Part):
    """A result that will be there."""

    def __init__(self, f_done: Callable[[], bool], f_result: Callable[[], RunnerResult]) -> None:
        self._f_done, self._f_result = f_done, f_result

    def done(self) -> bool:
        return self._f_done()

    def result(self) -> RunnerResult:
        return self._f_result()


class PyRunnerFuture(RunnerFuture):
    """What futures of the user's derive from."""

    def __init__(self) -> None:
        """Nothing to keep: the methods are the user's."""

    def done(self) -> bool:
        raise MethodNotDefined(f"{type(self).__name__}'s done is not defined")

    def result(self) -> RunnerResult:
        raise MethodNotDefined(f"{type(self).__name__}'s result is not defined")


class Runner(Part):
    """Derive from `PyRunner` to run elsewhere or otherwise."""

    RunnerType = object
    kinds: ClassVar[dict[str, Callable[..., Any]]] = {}  # by name; each kind enters itself

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """A future for each, in order."""
        raise MethodNotDefined(f"{type(self).__name__}'s run is not defined")

    @staticmethod
    def create(kind: Any = "local", *args: Any, **kwargs: Any) -> Runner:
        """A runner of a kind; there is "local"."""
        if isinstance(kind, Runner):
            return kind
        if kind == "rpc":
            raise needs_rpc("runner.RPCRunner")
        if kind not in Runner.kinds:
            raise UnknownKind("runner", kind, list(Runner.kinds))
        made: Runner = Runner.kinds[kind](*args, **kwargs)
        return made


create = Runner.create


class PyRunner(Runner):
    """What runners of the user's derive from."""
