"""
Float8 storage. Source: Micikevicius et al., arXiv:2209.05433, table 1 (exponent bias 7 and 15; the bytes of E4M3 and E5M2):

    E4M3: no infinities; NaN is S.1111.111; max normal S.1111.110 = 1.75 * 2^8 = 448; min subnormal S.0000.001 = 2^-9
    E4M3FNUZ (openxla/stablehlo, rfcs/20230321-fp8_fnuz.md): bias 8; NaN is 1.0000.000 alone; max normal S.1111.111 = 240; no -0
    E5M2: infinities S.11111.00; NaN S.11111.{01, 10, 11}; max normal S.11110.11 = 1.75 * 2^15; min subnormal S.00000.01 = 2^-16

A value is (-1)^S * 2^(e - bias) * 1.m, or (-1)^S * 2^(1 - bias) * 0.m where e is 0. Rounding gives the nearest of all finite
bytes, of two that are equally near the even one, so the last beyond the range (SATFINITE in vllm-project/vllm@0492a43,
csrc/quantization/w8a8/fp8/nvidia/quant_utils.cuh).
"""

from typing import Any

from mpmath import ldexp

from .lists import at, build, shape

# bits of the mantissa, bias, the last finite byte
MANTISSA = {"e4m3fn": (3, 7, 0x7E), "e5m2": (2, 15, 0x7B), "e4m3fnuz": (3, 8, 0x7F)}


def to_float8(x: Any, scale: Any, format: str, direction: str) -> Any:
    """Return the values of the bytes that are stored for x (..., heads, d)."""
    values = [_value(byte, format) for byte in range(MANTISSA[format][2] + 1)]

    def stored(*index: int) -> Any:
        s = at(scale, _place(index, shape(scale), shape(x)))
        v = at(x, index) / s if direction == "divide" else at(x, index) * s
        byte = _nearest(abs(v), values)
        return -values[byte] if v < 0 else values[byte]

    return build(shape(x), stored)


def _place(index: Any, scales: Any, sizes: Any) -> Any:
    """Return which scale a number has: that of its head, of its token and head, or of its block of channels."""
    if len(scales) == len(sizes):
        return (*index[:-1], index[-1] * scales[-1] // sizes[-1])
    return index[:-1] if len(scales) > 1 else index[-2:-1]


def _value(byte: int, format: str) -> Any:
    bits, bias, _ = MANTISSA[format]
    e, m = byte >> bits, byte & ((1 << bits) - 1)
    return ldexp((1 << bits) + m, e - bias - bits) if e else ldexp(m, 1 - bias - bits)


def _nearest(size: Any, values: list[Any]) -> int:
    """Return the byte of the nearest value, by bisection, and of two that are equally near the even one."""
    low, high = 0, len(values) - 1
    if size >= values[high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if values[middle] <= size else (low, middle)
    below, above = size - values[low], values[high] - size
    return low if below < above or (below == above and low % 2 == 0) else high
