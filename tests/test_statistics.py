from __future__ import annotations

import math
import statistics as stdlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algolen import statistics
from algolen.statistics import Horizon, exact_match, horizon, median_horizon, solved, wilson

curves = st.dictionaries(st.integers(1, 60), st.sampled_from([0.0, 0.5, 0.94, 0.95, 1.0]), max_size=12)
trained = st.tuples(st.integers(1, 20), st.integers(0, 20)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(3, 3, 0.44, 1), (5, 5, 0.57, 1), (8, 8, 0.68, 1), (10, 10, 0.72, 1), (0, 5, 0, 0.43), (5, 10, 0.24, 0.76)],
)
def test_wilson_gives_the_published_intervals(successes: int, n: int, low: float, high: float) -> None:
    found = wilson(successes, n)
    assert found == pytest.approx((low, high), abs=0.0051)


@pytest.mark.parametrize(("n", "bound"), [(100, 0.037), (500, 0.0076), (1000, 0.0038)])
def test_wilson_bounds_what_was_never_right(n: int, bound: float) -> None:
    low, high = wilson(0, n)
    assert low == 0.0
    assert high == pytest.approx(bound, rel=0.02)


@given(st.integers(0, 300), st.integers(0, 300))
def test_wilson_holds_the_fraction_is_symmetric_and_solves_its_equation(successes: int, failures: int) -> None:
    n = successes + failures
    low, high = wilson(successes, n)
    assert 0 <= low <= high <= 1
    if n == 0:
        assert (low, high) == (0, 1)
        return
    p = successes / n
    assert low <= p <= high
    assert wilson(failures, n) == pytest.approx((1 - high, 1 - low))
    for bound in {low, high} - {0.0, 1.0}:
        assert abs(p - bound) == pytest.approx(statistics.Z_95 * math.sqrt(bound * (1 - bound) / n))


@pytest.mark.parametrize("bad", [(-1, 3), (4, 3)])
def test_what_is_no_proportion_is_refused(bad: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="of 3"):
        wilson(*bad)
    with pytest.raises(ValueError, match="of 3"):
        exact_match(*bad)
    with pytest.raises(ValueError, match="0 of 0"):
        exact_match(0, 0)


@pytest.mark.parametrize(
    ("curve", "expected", "shown"),
    [
        ({5: 1.0, 20: 0.95, 30: 0.949, 40: 1.0}, Horizon(20, False), "20"),
        ({5: 1.0, 20: 1.0, 30: 0.96}, Horizon(30, True), "≥30"),
        ({5: 0.9, 20: 1.0}, Horizon(None, False), "none"),
        ({2: 0.0, 5: 1.0, 20: 0.5}, Horizon(5, False), "5"),
        ({2: 1.0}, Horizon(None, False), "none"),
        ({}, Horizon(None, False), "none"),
        ({5: 1.0, 20: math.nan}, Horizon(5, False), "5"),
    ],
    ids=[
        "a later recovery does not count",
        "to the end",
        "fails at once",
        "shorter than trained",
        "only shorter",
        "nothing",
        "nan",
    ],
)
def test_the_horizon_ends_before_the_first_length_that_fails(
    curve: dict[int, float], expected: Horizon, shown: str
) -> None:
    assert horizon(curve, (5, 20)) == expected
    assert str(expected) == shown


@given(curves, trained)
def test_the_horizon_is_the_largest_length_with_nothing_failing_up_to_it(
    curve: dict[int, float], train: tuple[int, int]
) -> None:
    tested = [n for n in curve if n >= train[0]]
    holding = [n for n in tested if all(curve[m] >= 0.95 for m in tested if m <= n)]
    found = horizon(curve, train)
    assert found.length == max(holding, default=None)
    assert found.at_end == (bool(tested) and holding == tested)


@given(curves, trained, st.integers(1, 60))
def test_solved_is_told_by_the_lengths_tested_alone(
    curve: dict[int, float], train: tuple[int, int], target: int
) -> None:
    verdict = solved(curve, train, target)
    tested = {n: v for n, v in curve.items() if n >= train[0]}
    if not tested or max(tested) < target:
        assert verdict is None
    elif verdict is None:
        assert target not in tested
        assert all(v >= 0.95 for n, v in tested.items() if n < target)
    else:
        held = horizon(curve, train).length
        assert verdict == (held is not None and held >= target)
        assert (solved(curve, train, target, threshold=0.0)) is True


def test_solved_asks_about_twice_the_longest_trained_length_unless_told_otherwise() -> None:
    curve = {10: 1.0, 20: 1.0, 40: 0.5, 50: 1.0}
    assert solved(curve, (1, 20)) is False
    assert solved(curve, (1, 10)) is True
    assert solved(curve, (1, 30)) is None
    assert solved(curve, (1, 20), target=20) is True
    assert solved(curve, (1, 20), threshold=0.5) is True


@given(st.lists(st.floats(0, 1), min_size=1))
def test_the_median_is_the_middle_and_the_range_the_ends(values: list[float]) -> None:
    assert statistics.median(values) == stdlib.median(values)
    assert statistics.value_range(values) == (min(values), max(values))


def test_nothing_has_no_median() -> None:
    for of_nothing in (statistics.median, statistics.value_range, median_horizon):
        with pytest.raises(ValueError, match="no "):
            of_nothing([])


@pytest.mark.parametrize(
    ("horizons", "middle"),
    [
        ([(20, False), (None, False), (40, True)], (20, False)),
        ([(40, True), (40, False)], (40, False)),
        ([(None, False), (10, False)], (None, False)),
        ([(20, False), (30, False)], (20, False)),
    ],
    ids=["odd", "40 comes before ≥40", "none comes first", "even: the shorter"],
)
def test_the_median_horizon_is_one_that_was_seen(
    horizons: list[tuple[int | None, bool]], middle: tuple[int | None, bool]
) -> None:
    assert median_horizon(Horizon(*h) for h in horizons) == Horizon(*middle)
