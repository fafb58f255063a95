"""EvaluatorConfig and RPCConfig: how often a candidate runs, and where."""

from __future__ import annotations

import os
from typing import NamedTuple

from loopwright.meta_schedule.errors import MissingTrackerSettings


class EvaluatorConfig(NamedTuple):
    """`repeat` measurements, each the mean of `number` calls, or of as many as take `min_repeat_ms`."""

    number: int = 3
    repeat: int = 1
    min_repeat_ms: int = 100
    enable_cpu_cache_flush: bool = False

    @staticmethod
    def _normalized(config: EvaluatorConfig | None) -> EvaluatorConfig:
        return EvaluatorConfig() if config is None else EvaluatorConfig(*config)


class RPCConfig(NamedTuple):
    """Where a tracker is; what is not given comes from TVM_TRACKER_HOST, TVM_TRACKER_PORT and TVM_TRACKER_KEY."""

    tracker_host: str | None = None
    tracker_port: int | str | None = None
    tracker_key: str | None = None
    session_priority: int = 1
    session_timeout_sec: int = 10

    def _sanity_check(self) -> None:
        for name in ("tracker_host", "tracker_port", "tracker_key"):
            if getattr(self, name) is None:
                raise MissingTrackerSettings(name)

    @staticmethod
    def _normalized(config: RPCConfig | None) -> RPCConfig:
        given = RPCConfig() if config is None else RPCConfig(*config)
        port = given.tracker_port or os.environ.get("TVM_TRACKER_PORT")
        result = RPCConfig(
            given.tracker_host or os.environ.get("TVM_TRACKER_HOST"),
            None if port is None else int(port),
            given.tracker_key or os.environ.get("TVM_TRACKER_KEY"),
            given.session_priority,
            given.session_timeout_sec,
        )
        result._sanity_check()
        return result
