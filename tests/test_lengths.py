"""Lengths and seeds as users write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algolen import lengths
from algolen.errors import UserError

SETS = st.sets(st.integers(1, lengths.LARGEST), min_size=1, max_size=40).map(sorted)
RANGES = st.tuples(st.integers(1, 99), st.integers(1, 99), st.integers(1, 9)).map(
    lambda drawn: list(range(drawn[0], drawn[0] + drawn[1], drawn[2]))
)


@given(st.one_of(SETS, RANGES, st.tuples(RANGES, RANGES).map(lambda two: sorted({*two[0], *two[1]}))))
def test_what_is_shown_is_read_back(several: list[int]) -> None:
    assert lengths.parse(lengths.show(several), "--test-lengths") == tuple(several)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("7", (7,)),
        ("1-3", (1, 2, 3)),
        ("5:20:5", (5, 10, 15, 20)),
        ("5:21:5", (5, 10, 15, 20)),
        ("5:7", (5, 6, 7)),
        ("4-4", (4,)),
        ("30, 10 ,20", (10, 20, 30)),
        ("1-3,2-5,5", (1, 2, 3, 4, 5)),
    ],
)
def test_ranges_hold_both_ends_and_every_length_once_in_order(text: str, meant: tuple[int, ...]) -> None:
    assert lengths.parse(text, "--test-lengths") == meant


@pytest.mark.parametrize(
    ("several", "text"),
    [
        ((1, 2, 3, 4), "1-4"),
        ((5, 10, 15), "5:15:5"),
        ((1, 2), "1,2"),
        ((1, 2, 3, 10, 20, 30, 7000), "1-3,10:30:10,7000"),
    ],
)
def test_shown_lengths_are_short(several: tuple[int, ...], text: str) -> None:
    assert lengths.show(several) == text


@pytest.mark.parametrize("text", ["", " ", "-", "1-", "-3", "1--3", "5:", "1:2:3:4", "1-3-5", "1e3", "+5", "1_0"])
def test_what_is_no_range_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UserError, match="write 1-20, 5:40:5 or 5,10,20"):
        lengths.parse(text, "--test-lengths")


@pytest.mark.parametrize(("text", "meant"), [("0", (0,)), ("0-2", (0, 1, 2)), ("7, 3", (3, 7)), ("1,1,0-1", (0, 1))])
def test_seeds_count_from_0_and_come_once_in_order(text: str, meant: tuple[int, ...]) -> None:
    assert lengths.seeds(text) == meant


@pytest.mark.parametrize("text", ["", "a", "2-1", "-1", "1:3", "1.5", "9" * 16])
def test_what_is_no_seed_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UserError, match="write 0, 0-4 or 0,2,5"):
        lengths.seeds(text)


def test_a_great_many_seeds_are_refused_before_they_fill_the_memory() -> None:
    with pytest.raises(UserError, match="10,000"):
        lengths.seeds("0-99999999999999")
