"""`tir.stmt`: the statement nodes, under the names users know."""

from loopwright.ir.buffer import BufferRegion, MatchBufferRegion
from loopwright.ir.stmt import *  # noqa: F403
from loopwright.ir.stmt import stmt_list, stmt_seq
