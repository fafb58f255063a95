"""Warp roles: what `specialize_warps` is made of. Start with `nest.py`.

    nest.py       what all roles run, each by itself: the loops of roles, and the loops around them
    loop.py       one loop of roles: memory in slots, which mbarriers hand on
    around.py     memory that is handed on beside loops of roles
    slots.py      memory of which several iterations are under way
    registers.py  registers of warps that load, for those that multiply
    kernel.py     the threads of roles
    part.py       what a role does in one place, and the memory that it touches
    places.py     before the first and behind the last access of some memory

Others import from here alone.
"""

from __future__ import annotations

from loopwright.transform.warp_roles.errors import CannotSpecialize
from loopwright.transform.warp_roles.kernel import Launch
from loopwright.transform.warp_roles.nest import in_kernel

__all__ = ["CannotSpecialize", "Launch", "in_kernel"]
