"""Timing two things against each other on a machine that is not quiet."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """A ratio or a time that was measured, and what it may be: at most `most` or at least `least`."""

    what: str
    value: float
    unit: str
    most: float | None = None
    least: float | None = None
    note: str = ""

    @property
    def passed(self) -> bool:
        return (self.most is None or self.value <= self.most) and (self.least is None or self.value >= self.least)


@dataclass(frozen=True)
class Duel:
    """Two things timed in turn. ratio: the median over blocks of first / second; seconds: the median of each."""

    ratio: float
    first_seconds: float
    second_seconds: float


def duel(first: Callable[[int], object], second: Callable[[int], object], blocks: int) -> Duel:
    """Times both in every block, in alternating order, and takes medians, so that what else the machine does cancels.

    Both are called with the block's number. Processor time is taken: with one thread it is the time of an idle machine,
    but for caches that others fill.
    """
    first(0), second(0)
    firsts: list[float] = []
    seconds: list[float] = []
    for block in range(1, blocks + 1):
        turns = [(firsts, first), (seconds, second)]
        for times, call in turns if block % 2 else reversed(turns):
            started = time.process_time()
            call(block)
            times.append(time.process_time() - started)
    ratios = [mine / other for mine, other in zip(firsts, seconds, strict=True)]
    return Duel(statistics.median(ratios), statistics.median(firsts), statistics.median(seconds))
