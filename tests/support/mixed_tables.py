"""Small tables of mixed columns, and the distance of Gower by loops over its definition."""

from __future__ import annotations

import numpy as np
import pandas as pd


def small_table(n, seed=0):
    """Return a data frame of numbers, a date, booleans, categories and an ordered category, with gaps."""
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "income": rng.lognormal(10, 1, n),
            "city": rng.choice(["Bern", "Oslo", "Rome"], n),
            "member": rng.random(n) < 0.3,
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n), categories=["S", "M", "L"], ordered=True),
        }
    )
    df.loc[rng.random(n) < 0.2, "age"] = np.nan
    df.loc[rng.random(n) < 0.1, "city"] = None
    df.loc[rng.random(n) < 0.1, "when"] = pd.NaT
    return df


def gower_by_loops(df, categories=(), weights=None):
    """Return all distances (n, n): the weighted mean of the differences of two rows in the columns both have."""
    weights = weights or {}
    n, values = len(df), {}
    for name in df.columns:
        column = df[name]
        if name in categories:
            values[name] = [None if pd.isna(v) else str(v) for v in column]
            continue
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = column.cat.codes
        elif column.dtype.kind == "M":
            column = (column - pd.Timestamp("1970-01-01")).dt.total_seconds()
        numbers = column.astype(float)
        numbers = (numbers - numbers.min()) / (numbers.max() - numbers.min())
        values[name] = [None if pd.isna(v) else v for v in numbers]
    D = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            total = weight = 0.0
            for name, column in values.items():
                a, b, w = column[i], column[j], weights.get(name, 1.0)
                if a is None or b is None:
                    continue
                total += w * (float(a != b) if name in categories else abs(a - b))
                weight += w
            D[i, j] = total / weight if weight else 1.0
    return D
