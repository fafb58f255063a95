"""How operators compute on stored integers, for FakeQuantizationToInteger: `affine.py` says what an integer stands for,
`rules.py` has a rule for each operator.
"""
