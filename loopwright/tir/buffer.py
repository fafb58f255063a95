"""`tir.buffer`: buffers and the data type of their pointers."""

from loopwright.ir import Buffer, BufferLoad, BufferRegion, decl_buffer

__all__ = ["Buffer", "BufferLoad", "BufferRegion", "decl_buffer"]
