"""Several values of an axis at one length stand beside each other."""

from __future__ import annotations

import re

import pytest
from report_examples import Filled, printed

from algolen.report import report


def sweep(filled: Filled, pe: str, by_value: dict[float, list[float]], **changes: object) -> None:
    """A run a seed, tested at length 16 at each value of `blanks`."""
    hash = filled.config(pe=pe, **changes)
    for value, seeds in by_value.items():
        for seed, exact in enumerate(seeds):
            filled.run(hash, seed, {16: exact}, key={"axis": "blanks", "axis_value": value})


def lines(filled: Filled) -> list[str]:
    return [re.sub(r"\s+", " ", line).strip() for line in printed(report(filled.store), 100).splitlines()]


def test_values_of_an_axis_at_one_length_are_columns_and_the_best_encoding_comes_first(filled: Filled) -> None:
    sweep(filled, "rope", {1: [0.0, 0.2], 2: [1.0, 1.0], 4.5: [0.004, 0.004]})
    sweep(filled, "cope", {1: [1.0, 0.9], 2: [1.0, 1.0], 4.5: [0.5, 0.5]})
    shown = lines(filled)
    assert shown[0] == "addition · trained on lengths 1-20 · tested at length 16"
    begin = shown.index("exact match at blanks 1 2 4.5")
    assert shown[begin + 2 : begin + 6] == [
        "cope 0.95 1.00 0.50",
        ".90–1 all 1 all .50",
        "rope 0.10 1.00 <.01",
        "0–.20 all 1 all <.01",
    ]
    assert "Seeds of each: 2." in shown
    assert not any("horizon" in line.lower() for line in shown)


def test_the_value_of_training_is_in_the_title_where_it_is_an_option_of_the_task(filled: Filled) -> None:
    hash = filled.config(task="selective-copy", task_options={"blanks": 2.0})
    for value in (1, 2):
        filled.run(hash, 0, {16: 1.0}, key={"axis": "blanks", "axis_value": value})
    assert lines(filled)[0] == "selective-copy · trained on lengths 1-20 with blanks 2 · tested at length 16"


def test_a_recipe_has_the_same_mark_at_every_value(filled: Filled) -> None:
    sweep(filled, "rope", {1: [0.0], 2: [1.0]}, width=64)
    sweep(filled, "rope", {1: [1.0], 2: [0.5]}, width=128)
    tables = report(filled.store).tables
    assert [{row.mark: row.recipe["model.width"] for row in table.rows} for table in tables] == [
        {"a": "128", "b": "64"},
        {"a": "128", "b": "64"},
    ]


def test_lost_seeds_and_values_that_were_not_tested_are_said(filled: Filled) -> None:
    sweep(filled, "rope", {1: [0.5], 2: [0.5]})
    sweep(filled, "cope", {1: [1.0]})
    filled.run(filled.config(pe="cope"), 1, status="diverged")
    shown = lines(filled)
    assert any(line.startswith("cope 1.00 ·") for line in shown)
    assert "Seeds: cope 2, 1 diverged; rope 1." in shown


def test_several_lengths_keep_a_table_for_each_value(filled: Filled) -> None:
    hash = filled.config()
    for value in (1, 2):
        filled.run(hash, 0, {8: 1.0, 16: 1.0}, key={"axis": "blanks", "axis_value": value})
    assert sum("exact match at length" in line for line in lines(filled)) == 2


@pytest.mark.parametrize("width", [40, 60])
def test_many_values_go_on_in_further_blocks(filled: Filled, width: int) -> None:
    sweep(filled, "rope", {value: [0.5] for value in range(1, 13)})
    text = printed(report(filled.store), width)
    assert max(map(len, text.splitlines())) <= width
    headers = " ".join(line for line in text.splitlines() if line.startswith("exact match at"))
    assert [int(n) for n in re.findall(r"\d+", headers)] == list(range(1, 13))


def test_an_axis_whose_option_is_none_in_training_is_shown(filled: Filled) -> None:
    hash = filled.config(task="flip-flop", task_options={"write": None})
    for value in (0.05, 0.1):
        filled.run(hash, 0, {16: 1.0}, key={"axis": "write", "axis_value": value})
    assert lines(filled)[0] == "flip-flop · trained on lengths 1-20 · tested at length 16"
    assert "exact match at write 0.05 0.1" in lines(filled)


def test_seeds_that_were_tested_at_different_values_all_count(filled: Filled) -> None:
    hash = filled.config(pe="alibi")
    for seed, values in {0: (1, 2), 1: (2, 4), 2: (2, 4)}.items():
        for value in values:
            filled.run(hash, seed, {16: 0.25 * (seed + 1)}, key={"axis": "blanks", "axis_value": value})
    shown = lines(filled)
    begin = next(index for index, line in enumerate(shown) if line.startswith("alibi"))
    assert shown[begin : begin + 2] == ["alibi 0.25 0.50 0.62", "1 of 3 .25–.75 2 of 3"]
    assert "Seeds of each: 3." in shown


def test_tables_of_different_tests_or_settings_keep_their_columns(filled: Filled) -> None:
    for width, seed in ((64, 0), (128, 0)):
        for value in (1, 2, 4):
            key = {"axis": "blanks", "axis_value": value}
            filled.run(filled.config(width=width), seed, {16: 1.0}, key=key)
            filled.run(filled.config(width=width), seed, {16: 1.0}, key=key, test_seed=9)
    for same_recipe, tables in ((False, 2), (True, 4)):
        text = printed(report(filled.store, same_recipe=same_recipe), 100)
        headers = [re.sub(r"\s+", " ", line).strip() for line in text.splitlines() if line.startswith("exact match at")]
        assert headers == ["exact match at blanks 1 2 4"] * tables


def test_two_rows_of_one_encoding_are_told_apart_at_every_value(filled: Filled) -> None:
    sweep(filled, "alibi", {1: [0.5], 2: [0.5]}, pe_options={"steepness": 1.0})
    sweep(filled, "alibi", {2: [0.4], 4: [0.4]}, pe_options={"steepness": 0.5})
    labels = {row.label for table in report(filled.store).tables for row in table.rows}
    assert labels == {"alibi (alibi.steepness=1.0)", "alibi (alibi.steepness=0.5)"}


def test_the_trained_value_is_told_from_the_tested_one_in_every_title(filled: Filled) -> None:
    hash = filled.config(task="selective-copy", task_options={"blanks": 2.0})
    for value in (1, 4):
        filled.run(hash, 0, {8: 1.0, 16: 1.0}, key={"axis": "blanks", "axis_value": value})
    titles = [line for line in lines(filled) if line.startswith("selective-copy")]
    assert titles == [
        "selective-copy · trained on lengths 1-20 with blanks 2 · tested at blanks 1",
        "selective-copy · trained on lengths 1-20 with blanks 2 · tested at blanks 4",
    ]
