"""From RGB pictures to the planes that video encoders take: BT.709, limited range, colour at half resolution."""

from __future__ import annotations

from roadworthy.compile import kernel

# Luma and chroma of BT.709 scaled to 219 and 224 steps, in 1/65536: integers give the same bytes on every machine.
_Y_RED, _Y_GREEN, _Y_BLUE = 11966, 40254, 4064
_U_RED, _U_GREEN, _U_BLUE = -6596, -22189, 28784
_V_RED, _V_GREEN, _V_BLUE = 28784, -26145, -2639


@kernel
def to_yuv420(image, luma, blue_chroma, red_chroma):
    """Fill luma (h, w) and chroma planes (h / 2, w / 2), rows possibly padded, from an image (h, w, 3)."""
    columns = image.shape[1] // 2
    for row in range(image.shape[0] // 2):
        upper, lower = image[2 * row], image[2 * row + 1]
        _fill_luma(upper[: 2 * columns], luma[2 * row])
        _fill_luma(lower[: 2 * columns], luma[2 * row + 1])
        for column in range(columns):
            left, right = 2 * column, 2 * column + 1
            red = upper[left, 0] + upper[right, 0] + lower[left, 0] + lower[right, 0]
            green = upper[left, 1] + upper[right, 1] + lower[left, 1] + lower[right, 1]
            blue = upper[left, 2] + upper[right, 2] + lower[left, 2] + lower[right, 2]
            # Four pixels were added up, hence 1/262144; 128 is no colour.
            blue_chroma[row, column] = 128 + ((_U_RED * red + _U_GREEN * green + _U_BLUE * blue + 131072) >> 18)
            red_chroma[row, column] = 128 + ((_V_RED * red + _V_GREEN * green + _V_BLUE * blue + 131072) >> 18)


@kernel
def _fill_luma(pixels, luma):
    for column in range(len(pixels)):
        red, green, blue = pixels[column, 0], pixels[column, 1], pixels[column, 2]
        luma[column] = 16 + ((_Y_RED * red + _Y_GREEN * green + _Y_BLUE * blue + 32768) >> 16)
