"""What a sweep's counts say: exact match, horizon, solved or not, over seeds. Pure Python; the seed is the unit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

THRESHOLD = 0.95
"""The exact match from which a length counts as solved, unless said otherwise."""

Z_95 = 1.959964
"""The normal quantile of a two-sided 95 % interval."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """The largest tested length up to which a run holds; None where it fails at the first.

    `at_end` says that no longer length was tested: the true horizon may lie further, and it is printed with ≥.
    """

    length: int | None
    at_end: bool

    def __str__(self) -> str:
        if self.length is None:
            return "none"
        return f"≥{self.length}" if self.at_end else str(self.length)


def exact_match(exact: int, units: int) -> float:
    """The fraction of scored units that are right in every token."""
    if not 0 <= exact <= units or units == 0:
        raise ValueError(f"{exact} of {units} is not a fraction")
    return exact / units


def wilson(successes: int, n: int, z: float = Z_95) -> tuple[float, float]:
    """The Wilson score interval of a proportion; honest at 0 of n and n of n, and (0, 1) where nothing was tried."""
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} of {n} is not a proportion")
    if n == 0:
        return 0.0, 1.0
    p = successes / n
    centre = p + z * z / (2 * n)
    spread = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if successes == 0 else (centre - spread) / scale
    high = 1.0 if successes == n else (centre + spread) / scale
    return low, high


def horizon(curve: Mapping[int, float], train: tuple[int, int], threshold: float = THRESHOLD) -> Horizon:
    """The largest tested L with exact match at or above `threshold` at every tested length from `train[0]` to L.

    `curve` gives exact match by tested length; lengths below the shortest trained one are ignored.
    """
    tested = sorted(length for length in curve if length >= train[0])
    held: int | None = None
    for length in tested:
        if not curve[length] >= threshold:
            return Horizon(held, at_end=False)
        held = length
    return Horizon(held, at_end=held is not None)


def target_length(train: tuple[int, int], target: int | None = None) -> int:
    """The length that `solved` asks about: twice the longest trained one unless said otherwise."""
    return 2 * train[1] if target is None else target


def solved(
    curve: Mapping[int, float], train: tuple[int, int], target: int | None = None, threshold: float = THRESHOLD
) -> bool | None:
    """Whether a run holds at every tested length from the shortest trained to `target`.

    None where the tested lengths cannot tell: they end before the target, or the target itself was not tested and the
    next longer length failed.
    """
    goal = target_length(train, target)
    tested = sorted(length for length in curve if length >= train[0])
    if not tested or tested[-1] < goal:
        return None
    if any(not curve[length] >= threshold for length in tested if length <= goal):
        return False
    first_reaching = next(length for length in tested if length >= goal)
    return True if curve[first_reaching] >= threshold else None


def median(values: Iterable[float]) -> float:
    """The middle value, or the mean of the two middle ones."""
    ordered = _ordered(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def value_range(values: Iterable[float]) -> tuple[float, float]:
    """The smallest and the largest value: what seeds are shown with beside their median."""
    ordered = _ordered(values)
    return ordered[0], ordered[-1]


def ordered_horizons(horizons: Iterable[Horizon]) -> list[Horizon]:
    """Horizons from the shortest to the longest; none at all comes first, and 40 before ≥40."""
    return sorted(horizons, key=lambda h: (-1 if h.length is None else h.length, h.at_end))


def median_horizon(horizons: Iterable[Horizon]) -> Horizon:
    """The middle horizon over seeds; of two middle ones the shorter, so that it is a length that was tested."""
    ordered = ordered_horizons(horizons)
    if not ordered:
        raise ValueError("no horizons to take a median of")
    return ordered[(len(ordered) - 1) // 2]


def _ordered(values: Iterable[float]) -> Sequence[float]:
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    return ordered
