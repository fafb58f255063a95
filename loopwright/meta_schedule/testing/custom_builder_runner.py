"""run_module_via_rpc: running a module on another machine, which needs RPC."""

from __future__ import annotations

from typing import Any

from loopwright.meta_schedule.errors import needs_rpc


def run_module_via_rpc(*args: Any, **kwargs: Any) -> Any:
    """Not built yet."""
    raise needs_rpc("testing.custom_builder_runner.run_module_via_rpc")
