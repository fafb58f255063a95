"""topi.sparse: products with matrices in CSR form. `csr.py` has their placeholders, `products.py` the operators."""

from loopwright.topi.sparse.csr import CSRPlaceholder, placeholder
from loopwright.topi.sparse.products import csrmm, csrmv, dense

__all__ = ["CSRPlaceholder", "csrmm", "csrmv", "dense", "placeholder"]
