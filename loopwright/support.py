"""`support`: what this installation consists of, under the names scripts ask by. `loopwright doctor` shows more."""

from __future__ import annotations

import platform
import sys

__all__ = ["describe", "libinfo"]


def libinfo() -> dict[str, str]:
    """What was built in, by the names the peer's build has; ON and OFF where it is a switch."""
    from llvmlite import binding

    from loopwright import __version__
    from loopwright.target.availability import BUILDABLE

    missing = ("cuda", "hexagon", "metal", "micro", "opencl", "rocm", "vulkan")
    switches = {f"USE_{name.upper()}": "OFF" for name in missing}
    # Kernels for CUDA are generated and emulated; scripts that ask mean that they run on a GPU.
    switches.update({f"USE_{name.upper()}": "ON" for name in BUILDABLE if name != "cuda"})
    return {
        **switches,
        "LLVM_VERSION": ".".join(map(str, binding.llvm_version_info)),
        "LOOPWRIGHT_VERSION": __version__,
        "GIT_COMMIT_HASH": "NOT-FOUND",
        "USE_RELAY_DEBUG": "OFF",
    }


def describe() -> None:
    """Print the system, the Python and `libinfo`, for a bug report."""
    print(f"Python {sys.version.split()[0]} on {platform.platform()}")
    for name, value in sorted(libinfo().items()):
        print(f"  {name}: {value}")
