"""`tir.ir_builder`: statements written as Python statements."""

from loopwright.ir.ir_builder import BufferVar, IRBuilder, create

__all__ = ["BufferVar", "IRBuilder", "create"]
