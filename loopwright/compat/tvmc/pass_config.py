"""Settings of passes as the command line writes them: `name=value`.

`tir.add_lower_pass=LEVEL,MODULE.FUNCTION,…` names functions that make passes; several such settings add up.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from loopwright.cli.compiled_model import BadOption, read_config
from loopwright.compat.tvmc.model import TVMCException
from loopwright.ir.pass_config import find_key

_LOWER_PASSES = "tir.add_lower_pass"


def parse_configs(input_configs: Sequence[str] | None) -> dict[str, Any]:
    """The settings by name, each value in its type."""
    configs: dict[str, Any] = {}
    for text in input_configs or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise TVMCException(f"Invalid format for pass config {text!r}: write NAME=VALUE")
        if name == _LOWER_PASSES:
            configs.setdefault(name, []).extend(_lower_passes(value))
            continue
        if find_key(name) is None:
            raise TVMCException(f"The pass config {name!r} does not exist")
        try:
            configs |= read_config([text])
        except BadOption as error:
            raise TVMCException(str(error)) from None
    return configs


def _lower_passes(text: str) -> list[tuple[int, Any]]:
    parts = text.split(",")
    if len(parts) % 2 or any(not level.isdigit() for level in parts[::2]):
        raise TVMCException(f"Invalid format for {_LOWER_PASSES}={text}: write LEVEL,MODULE.FUNCTION,…")
    return [(int(level), _made(path)) for level, path in zip(parts[::2], parts[1::2], strict=True)]


def _made(path: str) -> Any:
    """The pass that the function at `path` makes; `tir.transform.X` means that of this package."""
    module, _, name = path.rpartition(".")
    for prefix in ("", "tvm."):
        if prefix or not path.startswith(("tir.", "relay.")):
            found = importlib.import_module(f"{prefix}{module}")
            if not hasattr(found, name):
                raise TVMCException(f"{_LOWER_PASSES}: {module} has no function {name}")
            return getattr(found, name)()
    raise TVMCException(f"{_LOWER_PASSES}: there is no module {module}")
