"""RPCRunner: measuring on other machines, which needs RPC."""

from __future__ import annotations

from typing import Any

from loopwright.meta_schedule.errors import needs_rpc
from loopwright.meta_schedule.runner.runner import PyRunner


class RPCRunner(PyRunner):
    """Not built yet."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise needs_rpc("runner.RPCRunner")
