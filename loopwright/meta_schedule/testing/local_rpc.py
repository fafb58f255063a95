"""LocalRPC: a tracker and a server on this machine, which need RPC."""

from __future__ import annotations

from typing import Any

from loopwright.meta_schedule.errors import needs_rpc


class LocalRPC:
    """Not built yet."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise needs_rpc("testing.local_rpc.LocalRPC")
