"""Passes about types and shapes: inference, names for sizes that values decide, shapes that become known.

`shape_values.py` is what DynamicToStatic knows about the shapes that a graph computes.
"""
