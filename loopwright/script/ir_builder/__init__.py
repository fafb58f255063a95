"""Programs put together by calls from Python, frame by frame, where no script is read.

    from loopwright.script.ir_builder import IRBuilder, ir as I, tir as T

    with IRBuilder() as builder:
        with T.prim_func():
            T.func_name("double")
            A = T.arg("A", T.Buffer((16,)))
            with T.serial(16) as i:
                T.buffer_store(A, A[i] * 2.0, [i])
    func = builder.get()

`builder.py` holds the frames; `tir.py` and `ir.py` the words, which are those of the script. The rules are the
parser's own: the frames act through the same code, and errors name the line that called.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from loopwright.script.ir_builder.builder import BuilderFrame, IRBuilder

if TYPE_CHECKING:
    from loopwright.script.ir_builder import ir, tir

__all__ = ["BuilderFrame", "IRBuilder", "ir", "tir"]


def __getattr__(name: str) -> Any:
    if name in ("ir", "tir"):
        return importlib.import_module(f"loopwright.script.ir_builder.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
