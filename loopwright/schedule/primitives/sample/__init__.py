"""Primitives that draw decisions for a search."""
