"""Decimal numbers in a buffer of bytes, all at once: to the last bit what float() makes of each."""

from __future__ import annotations

import numpy as np

from ..._types import Array

WORD = 8  # bytes looked at together, as digits of one number
WORDS = 3  # words of a number; longer ones are left to float()
ROOM = WORD * WORDS + 1  # bytes that must stand before the first number
DOT, PLUS, MINUS = b".+-"
ZEROS = np.uint64(0x3030303030303030)  # "00000000"
PAST_NINE = np.uint64(0x7676767676767676)  # lifts a byte above 9 to 0x80
HIGH_BITS = np.uint64(0x8080808080808080)
LAST = np.array([(1 << 64) - (1 << 8 * (WORD - count)) for count in range(WORD + 1)], dtype=np.uint64)  # `count` bytes
TENS = 10.0 ** np.arange(23)  # powers that are exact in double precision
SPLIT = 2.0**27 + 1  # Veltkamp's: parts a number into two of 26 bits
DIGITS = 10**18  # below this a whole number fits in int64


def decimals(buffer: Array, starts: Array, ends: Array, dots: Array) -> tuple[Array, Array]:
    """Return numbers (m,) written in bytes [start, end) of a buffer, and which of them (m,) could not be told.

    `dots` has the place of the point of each, or its end where there is none. Told are an optional sign and digits
    with at most one point among them; exponents, spaces, very long ones and those too near the middle between two
    numbers of double precision are not. Before the first number stand ROOM bytes of anything.
    """
    sign = buffer[starts]
    negative = sign == MINUS
    starts = starts + (negative | (sign == PLUS))
    pointed = dots < ends
    digits = ends - starts - pointed
    decimal = np.where(pointed, ends - dots - 1, 0)  # digits after the point
    whole, unknown = _whole(buffer, ends, digits, np.where(pointed, decimal, ROOM))
    unknown |= (digits < 1) | (digits > WORD * WORDS) | (decimal >= len(TENS)) | (whole >= DIGITS)
    values, doubtful = _divided(np.where(unknown, 0, whole).view(np.int64), np.where(unknown, 0, decimal))
    return np.where(negative, -values, values), unknown | doubtful


def _whole(buffer: Array, ends: Array, digits: Array, decimal: Array) -> tuple[Array, Array]:
    """Return the digits of each number as one whole number, without the point, and where others than digits stood."""
    # Any eight neighbouring bytes as one number, the first the lowest.
    words = np.ndarray((len(buffer) - WORD + 1,), dtype="<u8", buffer=buffer, strides=(1,))
    whole, bad = np.zeros(len(ends), dtype=np.uint64), np.zeros(len(ends), dtype=np.uint64)
    for k in range(min(WORDS, -(-int(digits.max(initial=1)) // WORD))):
        those = np.flatnonzero(digits > WORD * k) if k else slice(None)
        # What stands behind the point is in its place, what stands before it one byte further ahead.
        behind = LAST[np.clip(decimal[those] - WORD * k, 0, WORD)]
        at = ends[those] - WORD * (k + 1)
        word = (words[at] & behind) | (words[at - 1] & ~behind)
        word = (word ^ ZEROS) & LAST[np.clip(digits[those] - WORD * k, 0, WORD)]
        bad[those] |= ((word + PAST_NINE) | word) & HIGH_BITS
        if k == WORDS - 1:
            bad[those] |= word & ~LAST[2]  # more than 18 digits
        whole[those] += _eight_digits(word) * np.uint64(10 ** (WORD * k))
    return whole, bad != 0


def _eight_digits(word: Array) -> Array:
    """Return the number of eight digits, one a byte: pairs, then fours, then all (Lemire, parse_eight_digits)."""
    pairs = word * np.uint64(10) + (word >> np.uint64(8))
    every_other = np.uint64(0x000000FF000000FF)
    high = (pairs & every_other) * np.uint64(100 + (1_000_000 << 32))
    low = ((pairs >> np.uint64(16)) & every_other) * np.uint64(1 + (10_000 << 32))
    return np.asarray((high + low) >> np.uint64(32))


def _divided(whole: Array, decimal: Array) -> tuple[Array, Array]:
    """Return whole/10^decimal rounded to the nearest, and where the nearest is in doubt.

    Both are exact in double precision below 2⁵³, and then one division is (Clinger 1990). Beyond, the quotient has a
    correction, whose own error moves the sum only near the middle between two numbers (Ziv 1991).
    """
    tens = TENS[decimal]
    high = whole.astype(np.float64)
    quotient = high / tens
    long = np.flatnonzero(whole >= 1 << 53)
    doubtful = np.zeros(len(whole), dtype=bool)
    if long.size:
        low = (whole[long] - high[long].astype(np.int64)).astype(np.float64)
        q, p = quotient[long], tens[long]
        correction = (_remainder(high[long], q, p) + low) / p
        error = np.abs(correction) * 2.0**-50  # two roundings are 2⁻⁵² of it
        quotient[long] = q + (correction - error)
        doubtful[long] = quotient[long] != q + (correction + error)
    return quotient, doubtful


def _remainder(a: Array, q: Array, p: Array) -> Array:
    """Return a − q p exactly, for q = a/p rounded (Dekker 1971)."""
    product = q * p
    q1, p1 = _upper(q), _upper(p)
    q2, p2 = q - q1, p - p1
    return np.asarray((a - product) - (((q1 * p1 - product) + q1 * p2 + q2 * p1) + q2 * p2))


def _upper(a: Array) -> Array:
    return np.asarray(SPLIT * a - (SPLIT * a - a))
