"""The address of a tracker as the command line writes it: `host`, `host:port`, `//host:port`."""

from __future__ import annotations

from urllib.parse import urlparse

from loopwright.compat.tvmc.model import TVMCException

DEFAULT_PORT = 9090


def tracker_host_port_from_cli(rpc_tracker_str: str | None) -> tuple[str | None, int | None]:
    """(host, port); (None, None) without a tracker, and port 9090 without a port."""
    if not rpc_tracker_str:
        return None, None
    parsed = urlparse(f"//{rpc_tracker_str.removeprefix('//')}")
    try:
        return parsed.hostname, parsed.port or DEFAULT_PORT
    except ValueError as error:
        raise TVMCException(f"failed to parse the tracker {rpc_tracker_str!r}: {error}") from None
