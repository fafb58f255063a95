"""Passes about functions, lets and control flow: inlining, lifting, normal forms, partial evaluation, gradients.

`clone.py` is what they share.
"""
