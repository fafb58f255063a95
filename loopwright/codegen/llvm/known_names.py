"""known_names: refuse CPU and feature names that LLVM does not know, instead of compiling slow code with a warning.

LLVM prints the warning to standard error and goes on. Names in our own table and those of this machine are known to be
good (a test asks LLVM about the table); any other name is tried in a short process of its own, whose standard error
can be read without touching ours.
"""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Final

from loopwright.runtime.errors import LoopwrightError
from loopwright.target import detect_host
from loopwright.target.architectures import architecture_of

_TUNING: Final = frozenset({"prefer-128-bit", "prefer-256-bit"})

_TRIAL: Final = """
import sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
machine = llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu=sys.argv[2], features=sys.argv[3])
module = llvm.parse_assembly("define void @f() { ret void }")
module.triple = sys.argv[1]
machine.emit_assembly(module)
"""


class UnknownMachineName(LoopwrightError, ValueError):
    """`-mcpu` or `-mattr` has a name that LLVM does not know for this triple.

    LLVM would warn and ignore it; a misspelled feature would quietly give slow code.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4, 8), "float32")):
            A[0, 0] = T.float32(1)

        loopwright.build(f, target="llvm -mattr=+no-such-feature")
    """

    code = "LW0645"

    def __init__(self, triple: str, kind: str, names: list[str]) -> None:
        super().__init__(
            f"LLVM does not know the {kind} {', '.join(names)} for {triple}",
            hint="check the spelling: features are LLVM's (avx512f, fullfp16), not the kernel's (avx512_vnni, asimdhp)",
            fields={"triple": triple, "kind": kind, "names": names},
        )


def require_known_names(triple: str, cpu: str, features: str) -> None:
    """Raise `UnknownMachineName` if LLVM does not know the CPU or one of the features (`+a,-b`) for `triple`."""
    architecture, host = architecture_of(triple), detect_host()
    known = {*architecture.baseline, *architecture.implies, *architecture.brings, *_TUNING}
    if architecture is architecture_of(host.triple):
        known |= set(host.features)
    doubtful = [feature for feature in features.split(",") if feature and feature[1:] not in known]
    is_known_cpu = cpu in ("", "generic", host.cpu) or cpu in architecture.cpus
    if is_known_cpu and not doubtful:
        return
    command = [sys.executable, "-c", _TRIAL, triple, cpu, ",".join(doubtful)]
    trial = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    for kind, word in (("CPU", "processor"), ("feature", "feature")):
        names = re.findall(rf"'([^']*)' is not a recognized {word}", trial.stderr)
        if names:
            raise UnknownMachineName(triple, kind, list(dict.fromkeys(names)))
