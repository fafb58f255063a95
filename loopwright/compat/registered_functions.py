"""Functions that scripts find by the names they are registered under (`get_global_func`), and that are ours."""

from __future__ import annotations

from loopwright.ir.node import when_used
from loopwright.runtime import register_func

for _name, _home, _function in (
    ("relay.transform.RecoverVirtualDeviceMap", "loopwright.relay.analysis.devices", "virtual_devices"),
):
    register_func(_name, when_used(_home, _function), override=True)
