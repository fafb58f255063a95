"""Helpers for tests of schedules: a trace must give the same program again, however it travelled."""

from __future__ import annotations

import json
from collections.abc import Sequence

from loopwright.ir import IRModule, PrimFunc
from loopwright.ir.structural import assert_structural_equal
from loopwright.runtime.description import UNPROVED
from loopwright.schedule.engine.schedule import Schedule
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.trace.trace import Trace


def assert_structural_equal_ignore_global_symbol(
    lhs: PrimFunc | IRModule, rhs: PrimFunc | IRModule, map_free_vars: bool = False
) -> None:
    """Both are the same program, whatever their functions are called, and whether their schedules are proved."""
    assert_structural_equal(_unnamed(lhs), _unnamed(rhs), map_free_vars)


def _unnamed(program: PrimFunc | IRModule) -> PrimFunc | IRModule:
    if isinstance(program, PrimFunc):
        return program.without_attr("global_symbol").without_attr(UNPROVED)
    return IRModule(
        {name: f.without_attr("global_symbol").without_attr(UNPROVED) for name, f in program.functions_items()}
    )


def verify_trace_roundtrip(
    sch: Schedule,
    mod: PrimFunc | IRModule,
    *,
    debug_mask: str | int = "all",
    text_format: str | Sequence[str] = ("python", "json"),
) -> Schedule:
    """Replay the steps of `sch` on `mod` from their text: the program and the text come out the same."""
    formats = [text_format] if isinstance(text_format, str) else list(text_format)
    again = sch
    for name in formats:
        again = Schedule(mod, debug_mask=debug_mask)
        if name == "json":
            Trace.apply_json_to_schedule(json.dumps(sch.trace.as_json()), again)
        elif name == "python":
            exec("\n".join(sch.trace.as_python()), {"sch": again})
        else:
            raise BadStepArgument("verify_trace_roundtrip", f"there is no format {name!r}", hint='"python" or "json"')
        assert_structural_equal_ignore_global_symbol(again.mod, sch.mod)
        assert str(again.trace) == str(sch.trace)
    return again
