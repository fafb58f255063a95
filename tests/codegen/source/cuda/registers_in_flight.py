"""Whether machine code touches registers that tensor cores still write: what ptxas does not know, a test has to see."""

from __future__ import annotations

import re

_MULTIPLY = re.compile(r"[HIQ]GMMA\.64x(\d+)x\d+\S* R(\d+), ")
_WAIT = re.compile(r"WARPGROUP\.DEPBAR\.LE gsb0, 0x(\d+)")
_REGISTER = re.compile(r"\bR(\d+)\b(\.64|\.128)?")


def touched_in_flight(sass: str) -> list[str]:
    """The instructions, in the order of the text, that touch results of groups which have not been waited for.

    A loop is read once: what its first instructions do while the last group of the iteration before is under way is
    not seen.
    """
    groups: list[set[int]] = []  # registers of each group that is under way, the last one still open
    is_open = False
    found = []
    for line in sass.splitlines():
        multiply, wait = _MULTIPLY.search(line), _WAIT.search(line)
        if multiply is not None:
            first = int(multiply[2])
            if not is_open:
                groups.append(set())
            groups[-1] |= set(range(first, first + int(multiply[1]) // 2))
            is_open = "gsb0" not in line
        elif wait is not None:
            count = int(wait[1], 16)
            groups = groups[len(groups) - count :] if count else []
        elif " EXIT" in line:
            groups, is_open = [], False
        else:
            under_way = set().union(*groups)
            for register, wide in _REGISTER.findall(line):
                many = {".64": 2, ".128": 4}.get(wide, 1)
                if under_way & set(range(int(register), int(register) + many)):
                    found.append(line.strip())
                    break
    return found
