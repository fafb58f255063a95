"""Operators that compute: element-wise, with broadcasting, along axes (reductions and scans), matmuls, Fourier."""
