"""Passes that change the number type of operators: integers for quantized values, float16 and bfloat16.

`fake_quantization/` has the rules of FakeQuantizationToInteger.
"""
