"""Convert RGB pictures to the planes of video encoders: BT.709, limited range, chroma at half resolution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import kernel

Plane = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Planes:
    """A picture as an encoder takes it."""

    luma: Plane  # (h, w), both even
    blue: Plane  # (h / 2, w / 2)
    red: Plane


# Luma and chroma of BT.709 scaled to 219 and 224 steps, in 1/65536: integers give the same bytes on every machine. With
# 32 bits, the compiler vectorizes twice as many at a time as with 64.
_Y_RED, _Y_GREEN, _Y_BLUE = np.int32(11966), np.int32(40254), np.int32(4064)
_U_RED, _U_GREEN, _U_BLUE = np.int32(-6596), np.int32(-22189), np.int32(28784)
_V_RED, _V_GREEN, _V_BLUE = np.int32(28784), np.int32(-26145), np.int32(-2639)
_BLACK, _NO_COLOR = np.int32(16), np.int32(128)
# Half of the bits that are shifted out, to round results. Chroma adds up four pixels, hence two more bits.
_HALF, _BITS = np.int32(32768), np.int32(16)
_HALF_OF_FOUR, _BITS_OF_FOUR = np.int32(131072), np.int32(18)


@kernel
def to_yuv420(image, luma, blue_chroma, red_chroma):
    """Fill luma (h, w) and chroma planes (h / 2, w / 2), rows possibly padded, from a contiguous image (h, w, 3)."""
    height, width = image.shape[0] // 2 * 2, image.shape[1] // 2 * 2
    rows = image.reshape(image.shape[0], 3 * image.shape[1])
    for y in range(0, height, 2):
        two_rows_to_yuv420(
            rows[y, : 3 * width],
            rows[y + 1, : 3 * width],
            luma[y, :width],
            luma[y + 1, :width],
            blue_chroma[y // 2, : width // 2],
            red_chroma[y // 2, : width // 2],
        )


@kernel
def two_rows_to_yuv420(upper, lower, upper_luma, lower_luma, blue_chroma, red_chroma):
    """Do the same for two rows (3 w,) of red, green, blue, red and so on."""
    _fill_luma(upper, upper_luma)
    _fill_luma(lower, lower_luma)
    _fill_chroma(upper, lower, blue_chroma, red_chroma)


@kernel
def _fill_luma(row, luma):
    for column in range(len(luma)):
        red, green, blue = np.int32(row[3 * column]), np.int32(row[3 * column + 1]), np.int32(row[3 * column + 2])
        luma[column] = np.uint8(_BLACK + ((_Y_RED * red + _Y_GREEN * green + _Y_BLUE * blue + _HALF) >> _BITS))


@kernel
def _fill_chroma(upper, lower, blue_chroma, red_chroma):
    for column in range(len(blue_chroma)):
        k = 6 * column
        red = np.int32(upper[k]) + np.int32(upper[k + 3]) + np.int32(lower[k]) + np.int32(lower[k + 3])
        green = np.int32(upper[k + 1]) + np.int32(upper[k + 4]) + np.int32(lower[k + 1]) + np.int32(lower[k + 4])
        blue = np.int32(upper[k + 2]) + np.int32(upper[k + 5]) + np.int32(lower[k + 2]) + np.int32(lower[k + 5])
        u = (_U_RED * red + _U_GREEN * green + _U_BLUE * blue + _HALF_OF_FOUR) >> _BITS_OF_FOUR
        v = (_V_RED * red + _V_GREEN * green + _V_BLUE * blue + _HALF_OF_FOUR) >> _BITS_OF_FOUR
        blue_chroma[column] = np.uint8(_NO_COLOR + u)
        red_chroma[column] = np.uint8(_NO_COLOR + v)
