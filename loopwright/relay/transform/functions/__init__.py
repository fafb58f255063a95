"""Passes about functions, lets and control flow: inlining, lifting, normal forms, partial evaluation, gradients.

`scopes.py` and `clone.py` are what they share.
"""
