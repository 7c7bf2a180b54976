"""Step functions: Erdős's minimum overlap and the three autocorrelation inequalities.

A function is given by its n values on equal steps. `*_direct` are the definitions by direct
convolution, `*_fast` go through an FFT. Sources: the arena's verifiers; Haugland 2016;
Matolcsi and Vinuesa 2010.
"""

from __future__ import annotations

import numpy as np

from milo.suites.arena.problems.problem import Array, Rejected, numbers, unit_scale

NEGATIVE_ALLOWED = 1e-6
SMALLEST_INTEGRAL_SQUARED = 1e-9


def fft_length(least: int) -> int:
    """A length of at least `least` of the form 2^k, 3·2^k or 5·2^k, quick to transform."""
    return min(factor << max(0, (-(-least // factor) - 1).bit_length()) for factor in (1, 3, 5))


def convolution(a: Array, b: Array) -> Array:
    """The full convolution by FFT, of length len(a) + len(b) − 1."""
    size = len(a) + len(b) - 1
    length = fft_length(size)
    product = np.fft.rfft(a, length) * np.fft.rfft(b, length)
    return np.asarray(np.fft.irfft(product, length)[:size])


# --- Erdős minimum overlap ---------------------------------------------------------------------


def read_overlap(value: object) -> Array:
    """h in [0, 1], rescaled so that its sum is n/2; still in [0, 1] then."""
    h = numbers(value)
    if h.min() < 0 or h.max() > 1:
        raise Rejected("expected values in [0, 1]")
    total, wanted = float(h.sum()), len(h) / 2
    if total != wanted:
        with np.errstate(all="ignore"):
            h = h * np.divide(wanted, total)
        if not np.isfinite(h).all() or h.min() < 0 or h.max() > 1:
            raise Rejected("the values leave [0, 1] when their sum is made n/2")
    return h


def overlap_direct(h: Array) -> float:
    """max over shifts of Σ h(x)(1 − h(x + k)) · 2/n."""
    return float(np.correlate(h, 1.0 - h, "full").max() * 2 / len(h))


def overlap_fast(h: Array) -> float:
    """The same by FFT."""
    return float(convolution(h, (1.0 - h)[::-1]).max()) * 2 / len(h)


# --- autocorrelation inequalities --------------------------------------------------------------


def read_first(value: object) -> Array:
    """f ≥ 0 with a sum that is not zero."""
    f = numbers(value)
    if f.min() < 0:
        raise Rejected("expected values of at least 0")
    if f.sum() == 0:
        raise Rejected("the sum is zero")
    return f


def first_direct(f: Array) -> float:
    """2n · max(f*f) / (Σf)², on a copy of f of unit scale."""
    g = unit_scale(f)
    return float(2 * len(g) * np.convolve(g, g).max() / g.sum() ** 2)


def first_fast(f: Array) -> float:
    """The same by FFT, on f as it is."""
    return float(2 * len(f) * convolution(f, f).max() / f.sum() ** 2)


def read_second(value: object) -> Array:
    """f ≥ −1e-6, clipped at 0, and not zero everywhere."""
    f = numbers(value)
    if f.min() < -NEGATIVE_ALLOWED:
        raise Rejected(f"expected values of at least -{NEGATIVE_ALLOWED:g}")
    f = np.maximum(f, 0.0)
    if f.sum() == 0:
        raise Rejected("the sum is zero")
    return f


def _second_of(c: Array) -> float:
    """∥f*f∥₂² / (∥f*f∥₁ ∥f*f∥∞), the square integrated piecewise linearly; c has length m."""
    step = 1.0 / (len(c) + 1)
    y = np.concatenate(([0.0], c, [0.0]))
    left, right = y[:-1], y[1:]
    square = (left * left + left * right + right * right).sum() * step / 3
    return float(square / (np.abs(c).sum() * step * np.abs(c).max()))


def second_direct(f: Array) -> float:
    """The second inequality's ratio by direct convolution, on a copy of unit scale."""
    g = unit_scale(f)
    return _second_of(np.convolve(g, g))


def second_fast(f: Array) -> float:
    """The same ratio by FFT and by summing terms apart, on f as it is."""
    c = convolution(f, f)
    square = (2 * (c @ c) + c[:-1] @ c[1:]) / 3
    return float(square / (np.abs(c).sum() * np.abs(c).max()))


def read_third(value: object) -> Array:
    """Signed f whose integral over an interval of length 1/2 is not next to zero."""
    f = numbers(value)
    with np.errstate(all="ignore"):
        square = np.square(f.sum() * 0.5 / len(f))
    if not square >= SMALLEST_INTEGRAL_SQUARED:
        raise Rejected(f"expected a squared integral of at least {SMALLEST_INTEGRAL_SQUARED:g}")
    return f


def third_direct(f: Array) -> float:
    """|max(f*f)| · 2n / (Σf)² (the maximum, then its absolute value), on unit scale."""
    g = unit_scale(f)
    return float(abs(np.convolve(g, g).max()) * 2 * len(g) / g.sum() ** 2)


def third_fast(f: Array) -> float:
    """The same by FFT, on f as it is."""
    return float(abs(convolution(f, f).max()) * 2 * len(f) / f.sum() ** 2)
