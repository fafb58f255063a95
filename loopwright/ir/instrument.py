"""Instruments: objects that watch passes run, and may keep one from running.

    with PassContext(instruments=[ShowAfterEach()]):        print the program after every pass that changed it
        lower(func, "llvm")

    timing = PassTimingInstrument()
    with PassContext(instruments=[timing]):
        lower(func, "llvm")
    print(timing.render())

`passes.py` tells them what runs.
"""

from __future__ import annotations

import difflib
import sys
import time
from collections.abc import Callable, Sequence
from typing import overload

from loopwright.ir.function import IRModule
from loopwright.ir.pass_aliases import own_name
from loopwright.ir.pass_context import PassInfo, PassInstrument


@overload
def pass_instrument(cls: type) -> type: ...
@overload
def pass_instrument(cls: None = None) -> Callable[[type], type]: ...
def pass_instrument(cls: type | None = None) -> type | Callable[[type], type]:
    """Decorator: a plain class with some of the methods of `PassInstrument` becomes an instrument."""

    def decorate(plain: type) -> type:
        made = type(plain.__name__, (plain, PassInstrument), {"__doc__": plain.__doc__, "__module__": plain.__module__})
        made.__qualname__ = plain.__qualname__
        return made

    return decorate if cls is None else decorate(cls)


class _Timed:
    """One run of a pass, with the passes it ran itself."""

    def __init__(self, name: str) -> None:
        self.name, self.seconds, self.parts = name, 0.0, list[_Timed]()


class PassTimingInstrument(PassInstrument):
    """How long each pass took, and the passes inside it. Entering a context starts afresh."""

    def __init__(self) -> None:
        self._root = _Timed("")
        self._open = [self._root]

    def enter_pass_ctx(self) -> None:
        self._root = _Timed("")
        self._open = [self._root]

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        entry = _Timed(info.name)
        self._open[-1].parts.append(entry)
        self._open.append(entry)
        entry.seconds = time.perf_counter()

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        entry = self._open.pop()
        entry.seconds = time.perf_counter() - entry.seconds

    def seconds(self) -> dict[str, float]:
        """Time by pass name, summed over its runs."""
        total: dict[str, float] = {}
        pending = list(self._root.parts)
        while pending:
            entry = pending.pop()
            total[entry.name] = total.get(entry.name, 0.0) + entry.seconds
            pending += entry.parts
        return total

    def render(self) -> str:
        """A table: one line a pass, inner passes indented, each with its own share."""
        whole = sum(entry.seconds for entry in self._root.parts) or 1.0
        lines: list[str] = []

        def add(entry: _Timed, depth: int) -> None:
            own = entry.seconds - sum(part.seconds for part in entry.parts)
            shown = f"{entry.seconds * 1e6:10.0f} us [{own * 1e6:10.0f} us] ({entry.seconds / whole:6.1%})"
            lines.append(f"{'  ' * depth}{entry.name}: {shown}")
            for part in entry.parts:
                add(part, depth + 1)

        for entry in self._root.parts:
            add(entry, 0)
        return "\n".join(lines)


class PrintBeforeAll(PassInstrument):
    """Print the program before each pass."""

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        sys.stdout.write(f"# before {info.name}\n{mod.script()}\n\n")


class PrintAfterAll(PassInstrument):
    """Print the program after each pass, changed or not."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        sys.stdout.write(f"# after {info.name}\n{mod.script()}\n\n")


class PassPrintingInstrument(PassInstrument):
    """Print the program before and after the passes that are named."""

    def __init__(self, print_before_pass_names: Sequence[str] = (), print_after_pass_names: Sequence[str] = ()) -> None:
        self.before = frozenset([own_name(name) for name in print_before_pass_names])
        self.after = frozenset([own_name(name) for name in print_after_pass_names])

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if info.name in self.before:
            sys.stdout.write(f"# before {info.name}\n{mod.script()}\n\n")

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        if info.name in self.after:
            sys.stdout.write(f"# after {info.name}\n{mod.script()}\n\n")


class ShowAfterEach(PassInstrument):
    """Write the script after each pass that changed something; with `diff`, only the lines that changed."""

    def __init__(self, diff: bool = False, write: Callable[[str], object] | None = None) -> None:
        self.diff = diff
        self.write = write
        self._before: list[IRModule] = []

    def enter_pass_ctx(self) -> None:
        self._before = []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._before.append(mod)

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        before = self._before.pop()
        # What a sequence changed was shown by its members.
        if mod is before or info.is_sequence:
            return
        text = mod.script()
        if self.diff:
            lines = difflib.unified_diff(before.script().splitlines(), text.splitlines(), lineterm="", n=2)
            text = "\n".join(list(lines)[2:])
        (self.write or sys.stdout.write)(f"# after {info.name}\n{text}\n\n")
