"""named_pass: a plain function from PrimFunc to PrimFunc as the pass that scripts know by a name of theirs."""

from __future__ import annotations

import functools
from collections.abc import Callable

from loopwright.ir import PrimFunc
from loopwright.ir.pass_context import PassInfo
from loopwright.ir.passes import PrimFuncPass


def named_pass(name: str, skips_te: bool = False) -> Callable[[Callable[[PrimFunc], PrimFunc]], PrimFuncPass]:
    """The decorator for the pass `tir.name`: that is what instruments see, and what `disabled_pass` means.

    With `skips_te` the functions of a te schedule stay as they are: scripts lower those with `StorageFlatten`.
    """

    def make(change: Callable[[PrimFunc], PrimFunc]) -> PrimFuncPass:
        def run(func: PrimFunc) -> PrimFunc:
            return func if skips_te and func.attrs.get("from_legacy_te_schedule") else change(func)

        result = PrimFuncPass(lambda func, mod, context: run(func), PassInfo(0, f"tir.{name}"))
        functools.update_wrapper(result, change)
        return result

    return make
