"""Primitives that copy, move, share and prefetch memory."""
