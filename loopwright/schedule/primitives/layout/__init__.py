"""Primitives that change how a buffer lies in memory, or the axes of a block with it."""
