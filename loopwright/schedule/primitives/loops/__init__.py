"""Primitives that make loops of loops, or say who runs their iterations."""
