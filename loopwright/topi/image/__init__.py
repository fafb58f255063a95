"""topi.image: pictures resized, cropped and warped.

Start with `resize.py`; `coordinates.py` says where pixels come from, `sampling.py` what lies between them.
"""

from loopwright.topi.image.crop_and_resize import crop_and_resize
from loopwright.topi.image.dilation2d import dilation2d_nchw, dilation2d_nhwc
from loopwright.topi.image.grid_sample import affine_grid, grid_sample
from loopwright.topi.image.resize import resize1d, resize2d, resize3d

__all__ = [
    "affine_grid",
    "crop_and_resize",
    "dilation2d_nchw",
    "dilation2d_nhwc",
    "grid_sample",
    "resize1d",
    "resize2d",
    "resize3d",
]
