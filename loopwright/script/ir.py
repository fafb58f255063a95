"""`I`: the words for modules. `from loopwright.script import ir as I`."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright.ir import GlobalVar
from loopwright.script.parser.directives import AttributesSpec
from loopwright.script.parser.entry import ir_module

__all__ = ["GlobalVar", "ir_module", "module_attrs"]


def module_attrs(attrs: Mapping[str, object]) -> AttributesSpec:
    """Attributes of the module."""
    return AttributesSpec("module_attrs", attrs)
