"""CompilationConfig: the targets that a program is compiled for, and the devices that follow from them.

    config = make_compilation_config(PassContext(), ["llvm", "cuda"])
    config.host_virtual_device                      runs the program, and has sizes and conditions
    config.default_primitive_virtual_device         runs the kernels of which nothing else is said
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loopwright.runtime.errors import LoopwrightError
from loopwright.target.target import Target, TargetLike
from loopwright.target.virtual_device import VirtualDevice

_CPU = 1
_UNKNOWN = -1


class NoTargetForDevice(LoopwrightError, ValueError):
    """A program names a kind of device that none of the targets it is compiled for runs on.

    For example:

        from loopwright.ir.pass_context import PassContext
        from loopwright.target import VirtualDevice, make_compilation_config

        config = make_compilation_config(PassContext(), "llvm")
        config.canonical(VirtualDevice.of(2))
    """

    code = "LW0617"

    def __init__(self, kind: int, targets: Sequence[Target]) -> None:
        super().__init__(
            f"no target is given for the device type {kind}",
            why=f"the targets are {', '.join(map(str, targets))}",
            hint="give a target for each kind of device that the program names",
            fields={"device_type": kind},
        )


class CompilationConfig:
    """The targets of one compilation. `primitive_targets` are those of kernels; each knows the host."""

    def __init__(self, targets: Sequence[Target], fallback_device_type: int | None = None) -> None:
        hosts = [target.host for target in targets if target.host is not None]
        cpus = [target for target in targets if target.get_target_device_type() == _CPU]
        self.host_target = (hosts + cpus + [Target("llvm")])[0]
        self.primitive_targets = [one if one.host is not None else one.with_host(self.host_target) for one in targets]
        alone = len(self.primitive_targets) == 1
        self.optional_homogeneous_target = self.primitive_targets[0] if alone else None
        kind = fallback_device_type
        if kind is None:
            kind = self.primitive_targets[0].get_target_device_type() if alone else _CPU
        self.default_primitive_virtual_device = self.canonical(VirtualDevice.of(kind))
        host = VirtualDevice.of(self.host_target.get_target_device_type(), 0, self.host_target)
        # A CPU that is the only target is the host too, and nothing is copied between the two.
        only_cpu = alone and self.default_primitive_virtual_device.device_type == host.device_type
        self.host_virtual_device = self.default_primitive_virtual_device if only_cpu else host

    def find_primitive_target(self, device_type: int) -> Target:
        """The first target that runs on this kind of device."""
        for target in self.primitive_targets:
            if target.get_target_device_type() == device_type:
                return target
        raise NoTargetForDevice(device_type, self.primitive_targets)

    def canonical(self, device: VirtualDevice) -> VirtualDevice:
        """The device with what follows from its kind: its target, and the first of that kind where none is named."""
        kind = device.device_type
        if kind == _UNKNOWN and device.target is not None:
            kind = device.target.get_target_device_type()
        if kind == _UNKNOWN:
            return device
        target = device.target if device.target is not None else self.find_primitive_target(kind)
        return VirtualDevice.of(kind, max(device.virtual_device_id, 0), target, device.memory_scope)

    def __repr__(self) -> str:
        return f"CompilationConfig({', '.join(map(str, self.primitive_targets))}; host {self.host_target})"


def make_compilation_config(ctxt: Any, target: Any, target_host: TargetLike | None = None) -> CompilationConfig:
    """The devices that follow from a target, a list of them or a map by device, and the settings of a PassContext."""
    chosen = target if target is not None else Target.current(allow_none=True)
    fallback = ctxt.config.get("relay.fallback_device_type")
    return CompilationConfig(
        Target.canon_multi_target_and_host(chosen, target_host), None if fallback is None else int(fallback)
    )
