"""What operators share: the forms of axes, sizes, padding and options; row-major order; checked indices."""
