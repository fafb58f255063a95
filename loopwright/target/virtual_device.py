"""VirtualDevice: a device of a program before it runs: which kind, which of them, for which target, in which memory."""

from __future__ import annotations

from dataclasses import dataclass

from loopwright.runtime.devices import Device
from loopwright.target.target import Target

_UNKNOWN = -1  # the kind of device where none is said


@dataclass(frozen=True, init=False)
class VirtualDevice:
    """Where an expression is computed, as far as that is decided."""

    device_type_int: int
    virtual_device_id: int
    target: Target | None
    memory_scope: str

    def __init__(self, device: Device | None = None, target: Target | None = None, memory_scope: str = "") -> None:
        set_field = object.__setattr__
        set_field(self, "device_type_int", _UNKNOWN if device is None else device.device_type)
        set_field(self, "virtual_device_id", _UNKNOWN if device is None else device.device_id)
        set_field(self, "target", target)
        set_field(self, "memory_scope", memory_scope)

    @property
    def device_type(self) -> int:
        """DLPack's code of the kind of device."""
        return self.device_type_int

    @property
    def is_unconstrained(self) -> bool:
        """Whether nothing is said yet."""
        return self == VirtualDevice()
