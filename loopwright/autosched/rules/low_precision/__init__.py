"""low_precision: products and convolutions of bytes and halves, on the instructions made for them.

Open `operands.py` (what is multiplied), `units.py` (which instructions there are, and what operands must become for
them), then `sizes.py` (the sizes, by a cost model), `steps.py` (the schedule) and `rule.py`. `row_band.py`,
`row_band_sizes.py` and `row_band_steps.py` are convolutions that read their windows from the image itself;
`im2col.py` makes any other convolution a product, `plain_product.py` takes zero points out of one, and `explain.py`
says what was chosen.
"""

from loopwright.autosched.rules.low_precision.rule import LowPrecision

__all__ = ["LowPrecision"]
