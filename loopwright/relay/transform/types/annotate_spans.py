"""AnnotateSpans: every value knows its line in the text of its module.

The module is written and read back, so that messages about a value (`expr.span`) can name a line that the reader finds
in `mod.astext()`. What comes back is another module of the same meaning: its names are new objects.
"""

from __future__ import annotations

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.passes import ModulePass
from loopwright.relay.text import astext, parse


def annotate_spans(mod: IRModule, context: PassContext) -> IRModule:
    """The module, read from its own text, with places in it."""
    return parse(astext(mod), "GeneratedSource", spans=True)


def AnnotateSpans() -> ModulePass:
    """Have every value know its place in the text of the module."""
    return ModulePass(annotate_spans, PassInfo(0, "AnnotateSpans"))
