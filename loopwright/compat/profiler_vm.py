"""`runtime.profiler_vm`: an executable of relay run with a clock around every kernel."""

from __future__ import annotations

from typing import Any

from loopwright.compat.profiling import Report, report_of
from loopwright.relay.built import BuiltModule
from loopwright.relay.vm import VirtualMachine
from loopwright.runtime.errors import NotBuilt

__all__ = ["VirtualMachineProfiler", "enabled"]


def enabled() -> bool:
    """Whether there is a profiler: always."""
    return True


class VirtualMachineProfiler(VirtualMachine):
    """Runs an executable, and says what each of its kernels took."""

    def profile(self, *args: Any, func_name: str = "main", collectors: object = None, **named: Any) -> Report:
        """One run of a function on these inputs."""
        built: BuiltModule | None = getattr(self.exec, "mod", None)
        if func_name != "main" or built is None:
            raise NotBuilt(f"profiling the function {func_name} of an executable", "profile main, compiled to kernels")
        given: Any = self._given(func_name, args, named)
        arguments = built.arguments((), given)
        return report_of(built.compiled.profile(*arguments, repeat=3), "VM")
