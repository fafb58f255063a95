"""VirtualDevice: a device of a program before it runs: which kind, which of them, for which target, in which memory.

Each of the four may be open. `join` makes one of two that do not disagree; `filled` answers what is open from another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loopwright.target.target import Target

if TYPE_CHECKING:  # devices load tvm_ffi
    from loopwright.runtime.devices import Device

_UNKNOWN = -1  # the kind of device where none is said


@dataclass(frozen=True, init=False)
class VirtualDevice:
    """Where an expression is computed, as far as that is decided."""

    device_type_int: int
    virtual_device_id: int
    target: Target | None
    memory_scope: str

    def __init__(self, device: Device | None = None, target: Target | None = None, memory_scope: str = "") -> None:
        kind = _UNKNOWN if device is None else device.device_type
        self._set(kind, _UNKNOWN if device is None else device.device_id, target, memory_scope)

    def _set(self, kind: int, index: int, target: Target | None, memory_scope: str) -> None:
        set_field = object.__setattr__
        set_field(self, "device_type_int", kind)
        set_field(self, "virtual_device_id", index)
        set_field(self, "target", target)
        set_field(self, "memory_scope", memory_scope)

    @staticmethod
    def of(kind: int, index: int = _UNKNOWN, target: Target | None = None, memory_scope: str = "") -> VirtualDevice:
        """One by DLPack's code of its kind, without asking for a device."""
        result = VirtualDevice()
        result._set(kind, index, target, memory_scope)
        return result

    @property
    def device_type(self) -> int:
        """DLPack's code of the kind of device."""
        return self.device_type_int

    @property
    def is_unconstrained(self) -> bool:
        """Whether nothing is said yet."""
        return self == VirtualDevice()

    @property
    def is_decided(self) -> bool:
        """Whether it is known which device this is, and what for is compiled; its memory may be the usual one."""
        return self.device_type_int != _UNKNOWN and self.virtual_device_id != _UNKNOWN and self.target is not None

    def join(self, other: VirtualDevice) -> VirtualDevice | None:
        """What both say together; None where they disagree."""
        filled = self.filled(other)
        return filled if filled == other.filled(self) else None

    def filled(self, other: VirtualDevice) -> VirtualDevice:
        """This one, and where it says nothing, what the other says."""
        return VirtualDevice.of(
            self.device_type_int if self.device_type_int != _UNKNOWN else other.device_type_int,
            self.virtual_device_id if self.virtual_device_id != _UNKNOWN else other.virtual_device_id,
            self.target if self.target is not None else other.target,
            self.memory_scope or other.memory_scope,
        )

    def in_usual_memory(self) -> VirtualDevice:
        """The device, whatever its memory."""
        return VirtualDevice.of(self.device_type_int, self.virtual_device_id, self.target)

    def export(self) -> dict[str, object]:
        """The device as a plain dict, ready for JSON; `load` reads it."""
        return {
            "device_type": self.device_type_int,
            "virtual_device_id": self.virtual_device_id,
            "target": None if self.target is None else self.target.export(),
            "memory_scope": self.memory_scope,
        }

    @staticmethod
    def load(fields: Mapping[str, Any]) -> VirtualDevice:
        target = None if fields["target"] is None else Target(fields["target"])
        kind, index = int(fields["device_type"]), int(fields["virtual_device_id"])
        return VirtualDevice.of(kind, index, target, str(fields["memory_scope"]))

    def __str__(self) -> str:
        kind = {_UNKNOWN: "any device", 1: "cpu", 2: "cuda"}.get(self.device_type_int, f"device {self.device_type_int}")
        index = f":{self.virtual_device_id}" if self.virtual_device_id > 0 else ""
        return kind + index + (f" in {self.memory_scope}" if self.memory_scope else "")
