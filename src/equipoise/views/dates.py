"""Read columns of dates as seconds since 1970, and find how many characters are needed to show such dates."""

from __future__ import annotations

import datetime
import re
from typing import Any

import numpy as np

from .._types import Array

# ISO 8601, with a space or T before the time, and with / for - in the date.
DATE = re.compile(
    r"(?P<date>\d{4}([-/])\d\d\2\d\d)(?:[T ](?P<time>\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?)?"
)
DAY = 86_400.0  # seconds
YEARS = (
    np.datetime64("0001-01-01", "s"),
    np.datetime64("9999-12-31T23:59:59", "s"),
)  # the range of `datetime`


def read_dates(values: Array, missing: Array) -> Array | None:
    """Return dates as seconds since 1970 (UTC), NaN where missing.

    Return None if all values are missing, or if a value that is present is not a date in the years 1 to 9999.
    """
    known = values[~missing]
    if not len(known):
        return None
    stamps: Array | None
    if values.dtype.kind == "M":
        stamps = known
    elif values.dtype.kind == "O" and all(isinstance(value, datetime.date) for value in known):
        stamps = _stamps([_in_utc(value) for value in known])
    elif values.dtype.kind in "UO" and all(isinstance(value, str) for value in known):
        stamps = _parse(known)
    else:
        return None
    if stamps is None:
        return None
    seconds = np.full(len(values), np.nan)
    whole = stamps.astype("datetime64[s]")
    if (whole < YEARS[0]).any() or (whole > YEARS[1]).any():
        return None
    seconds[~missing] = whole.astype(np.float64) + (stamps - whole) / np.timedelta64(1, "s")
    return seconds


def _stamps(texts: list[Any]) -> Array | None:
    try:
        return np.array(texts, dtype="datetime64[us]")
    except ValueError:  # a day or an hour that does not exist
        return None


def _in_utc(value: datetime.date) -> datetime.date:
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return value


def _parse(texts: Array) -> Array | None:
    """Return texts as datetime64 in UTC; None if one of them is not a date."""
    found = [DATE.fullmatch(text.strip()) for text in texts.tolist()]
    if any(match is None for match in found):
        return None
    stamps = _stamps([f"{m['date'].replace('/', '-')}T{m['time'] or '00:00'}" for m in found if m is not None])
    if stamps is None:
        return None
    minutes = [_offset(match["zone"]) for match in found if match is not None]
    return stamps - np.array(minutes, dtype="timedelta64[m]")


def _offset(zone: str | None) -> int:
    """Return the minutes by which a time zone is ahead of UTC."""
    if zone is None or zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    return (60 * hours + minutes) * (-1 if zone[0] == "-" else 1)


def iso_length(seconds: Array) -> int:
    """Return how many characters of times such as 2024-05-31T12:00:00.000 are needed to show all of `seconds`.

    The result is 10 if all are whole days, 16 if whole minutes, 19 if whole seconds, and otherwise 23 (milliseconds).
    """
    known = seconds[np.isfinite(seconds)]
    for unit, length in ((DAY, 10), (60.0, 16), (1.0, 19)):
        if (known % unit == 0).all():
            return length
    return 23
