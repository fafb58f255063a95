"""The scheduling rules, a file or folder each. `RULES` is the list of them, asked in order: adding one edits this list.

`plain.py` is the shortest, `injective.py` the best to read first. `around.py` is about the blocks before and after that
rules take along, `whole_blocks.py` about blocks that rules make beside their own work.
"""

from __future__ import annotations

from typing import Final

from loopwright.autosched.rule import Rule, names_of
from loopwright.autosched.rules.contraction import Contraction
from loopwright.autosched.rules.convolution import Convolution
from loopwright.autosched.rules.depthwise import Depthwise
from loopwright.autosched.rules.injective import Injective
from loopwright.autosched.rules.interleaved import Interleaved
from loopwright.autosched.rules.low_precision import LowPrecision
from loopwright.autosched.rules.plain import Plain
from loopwright.autosched.rules.pooling import Pooling
from loopwright.autosched.rules.reduction import Reduction
from loopwright.autosched.rules.repeated_rows import RepeatedRows
from loopwright.autosched.rules.row_gather import MovedRows
from loopwright.autosched.rules.row_group import RowGroup
from loopwright.autosched.rules.scan import Scan
from loopwright.autosched.rules.transpose import Transpose
from loopwright.autosched.rules.winograd import Winograd

RULES: Final[list[Rule]] = [
    Winograd(),  # before all that compute convolutions directly: it takes only what it should make faster
    Depthwise(),  # before those for products: without a sum over channels there is nothing to pack
    Pooling(),
    LowPrecision(),  # before the others for products: bytes and halves have instructions of their own
    Convolution(),  # before products: a window is one, of which no line is a matrix
    Contraction(),  # before reductions: a product is one, but one that is worth packing
    RowGroup(),  # before those for single blocks: what blocks pass to each other stays near the core
    Reduction(),
    Scan(),
    Transpose(),  # before Injective: it is one whose loads cross the stores
    MovedRows(),  # or whose loads jump from row to row
    Interleaved(),  # or whose neighbours come from several rows in turn
    RepeatedRows([MovedRows(), Injective()]),  # or whose rows are read again and again
    Injective(),
    Plain(),  # last: it takes whatever is left
]

_BUILT_IN: Final = tuple(RULES)


def rules_in_use() -> str | None:
    """What says which rules schedule CPUs, for keys of caches; None where a user's rule is one: it may change."""
    return "" if tuple(RULES) == _BUILT_IN else names_of(RULES, __name__)  # the built-in ones are in the sources


__all__ = ["RULES", "rules_in_use"]
