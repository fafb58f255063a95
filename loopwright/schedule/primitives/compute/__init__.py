"""Primitives that change what a block computes, where, and over which axes."""
