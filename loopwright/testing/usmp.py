"""testing.usmp: whether the memory of a model is planned as a whole."""

from __future__ import annotations

from loopwright.runtime.module import Module


def is_tvm_backendallocworkspace_calls(mod: Module) -> bool:
    """Whether a module, or one that it imports, asks the runtime for memory call by call; a planned one does not."""
    modules = (mod, *mod.all_imports())
    texts = [one.get_source(form) for one in modules for form in ("c", "ll") if form in one.source_forms]
    return any("TVMBackendAllocWorkspace" in text for text in texts)
