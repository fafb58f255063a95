"""Warp roles: what `specialize_warps` is made of. Start with `nest.py`.

    nest.py     what all roles run, each by itself: the loops of roles, and the loops around them
    loop.py     one loop of roles: memory in slots, which mbarriers hand on
    part.py     what a role does in one place, and the memory that it touches
    places.py   before the first and behind the last access of some memory
"""

from __future__ import annotations

from loopwright.transform.warp_roles.errors import CannotSpecialize
from loopwright.transform.warp_roles.nest import in_kernel
from loopwright.transform.warp_roles.part import Launch

__all__ = ["CannotSpecialize", "Launch", "in_kernel"]
