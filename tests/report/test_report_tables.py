"""What people see of a report."""

from __future__ import annotations

import json
import re

import pytest
from report_examples import BAD, GOOD, Filled, printed
from rich.cells import cell_len

from algolen.errors import UserError
from algolen.report import report
from algolen.report.colour import heat
from algolen.report.text import fraction, probability, spread


def lines_of(text: str, beginning: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(beginning)]


def three_seeds(filled: Filled) -> None:
    good, bad = filled.config(pe="coupling"), filled.config(pe="nope")
    for seed, change in enumerate((0.0, 0.01, -0.03)):
        filled.run(good, seed, {n: max(0.0, min(1.0, v + change)) for n, v in GOOD.items()})
        filled.run(bad, seed, BAD)


def test_cells_are_medians_over_seeds_with_their_range_and_the_longest_horizon_comes_first(filled: Filled) -> None:
    three_seeds(filled)
    text = printed(report(filled.store), 120)
    lines = text.splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith("coupling"))
    assert re.sub(r"\s+", " ", lines[first]).strip() == "coupling 1.00 1.00 0.99 │ 0.97 0.50"
    assert re.sub(r"\s+", " ", lines[first + 1]).strip() == ".97–1 .97–1 .96–1 │ .94–.98 .47–.51"
    assert re.sub(r"\s+", " ", lines[first + 2]).strip() == "nope 1.00 0.99 0.60 │ <.01 0.00"


def test_the_summary_gives_horizons_solved_seeds_and_their_interval(filled: Filled) -> None:
    three_seeds(filled)
    text = printed(report(filled.store), 120)
    over = text[text.index("over seeds") :]
    row, below = (re.sub(r"\s+", " ", line).strip() for line in over.splitlines()[2:4])
    assert row == "coupling 0.99 30 = 1.5× 0/3 0.00–0.56 3"
    assert below == ".96–1 20 to 30"
    assert "at 40" in text
    lower = report(filled.store, threshold=0.4)
    assert re.search(r"coupling .*≥40 = 2× +3/3 +0\.44–1\.00", printed(lower, 120))


def test_baselines_stand_beneath_the_lengths_however_small(filled: Filled) -> None:
    three_seeds(filled)
    text = printed(report(filled.store), 120)
    assert re.search(r"^chance +1e-06 +1e-11 +1e-21 +│ +1e-31 +1e-41", text, re.M)
    assert re.search(r"^best input-blind answer +0\.25", text, re.M)


def test_seeds_that_failed_or_diverged_are_attempted_and_not_solved(filled: Filled) -> None:
    hash = filled.config(pe="coupling")
    filled.run(hash, 0, {5: 1.0, 20: 1.0, 40: 1.0})
    filled.run(hash, 1, status="diverged")
    filled.run(hash, 2, status="failed")
    lost = filled.config(pe="learned")
    filled.run(lost, 0, status="failed")
    made = report(filled.store)
    (table,) = made.tables
    by_name = {row.name: row for row in table.rows}
    assert (by_name["coupling"].attempted, by_name["coupling"].solved) == (3, (1, 3))
    assert (by_name["learned"].attempted, by_name["learned"].solved) == (1, (0, 1))
    text = printed(made)
    assert "1 diverged" in text
    assert "1 failed" in text


def test_what_is_not_finished_is_left_out_and_said(filled: Filled) -> None:
    three_seeds(filled)
    filled.run(filled.config(pe="nope"), 7, {5: 1.0}, status="interrupted")
    filled.run(filled.config(pe="coupling"), 8)
    made = report(filled.store)
    assert [len(row.seeds) for row in made.tables[0].rows] == [3, 3]
    assert "Left out: 2 runs (1 done but not tested so, 1 interrupted)." in printed(made)


@pytest.mark.parametrize("width", [36, 40, 48, 50, 80, 120, 200])
@pytest.mark.parametrize("color", [None, "truecolor"])
def test_nothing_is_wider_than_the_terminal_cut_or_missing(filled: Filled, width: int, color: str | None) -> None:
    lengths = range(5, 205, 5)
    names = {"coupling": {"start": "clipped"}, "abacus+fire+randomized+logn": {}}
    for pe, options in names.items():
        for seed in range(3):
            filled.run(filled.config(pe=pe, pe_options=options), seed, {n: (n * 7 + seed) % 100 / 100 for n in lengths})
    filled.run(filled.config(pe="coupling", pe_options={"start": "uniform"}), 0, dict.fromkeys(lengths, 0.123))
    text = printed(report(filled.store), width, color_system=color, force_terminal=color is not None)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert max(cell_len(line) for line in plain.splitlines()) <= width
    assert "…" not in plain
    headers = " ".join(lines_of(plain, "exact match at"))
    assert [int(n) for n in re.findall(r"\d+", headers)] == list(lengths)


def test_colour_is_only_an_addition_to_the_same_text(filled: Filled) -> None:
    three_seeds(filled)
    coloured = printed(report(filled.store), color_system="truecolor", force_terminal=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == printed(report(filled.store))


@pytest.mark.parametrize("step", range(0, 101, 5))
def test_every_colour_can_be_read(step: int) -> None:
    def luminance(colour: object) -> float:
        parts = [(c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4) for c in colour.get_truecolor()]  # type: ignore[attr-defined]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    style = heat(step / 100)
    dark, bright = sorted((luminance(style.color), luminance(style.bgcolor)))
    assert (bright + 0.05) / (dark + 0.05) >= 4.5


def test_a_divider_parts_trained_lengths_from_shorter_and_longer_ones(filled: Filled) -> None:
    filled.run(filled.config(train_lengths=[10, 20]), 0, {5: 1.0, 10: 1.0, 20: 1.0, 21: 1.0, 40: 1.0})
    text = printed(report(filled.store))
    assert re.search(r"at length +5 +│ +10 +20 +│ +21 +40", text)
    assert re.search(r"^nope +1\.00 +│ +1\.00 +1\.00 +│ +1\.00 +1\.00", text, re.M)
    narrow = [line for line in printed(report(filled.store), 42).splitlines() if line.startswith("exact match at")]
    assert narrow[-1].count("│") == 1, "a block of longer lengths alone says that they are longer"


@pytest.mark.parametrize("width", [30, 45, 53, 54, 80])
def test_every_name_has_its_seeds_and_horizon_however_narrow_the_terminal(filled: Filled, width: int) -> None:
    three_seeds(filled)
    text = " ".join(printed(report(filled.store), width).split())
    for name, horizon, shown in (("coupling", "30 = 1.5×", "0/3"), ("nope", "10 = 0.5×", "0/3")):
        assert re.search(rf"{name}(:| )[^=]*{horizon}.{{0,60}}?{shown}", text), text


def test_what_the_task_was_is_always_said(filled: Filled) -> None:
    filled.run(filled.config(task="parity", task_options={"scratchpad": True}), 0, GOOD)
    made = report(filled.store)
    assert "The task: scratchpad=true." in printed(made)
    assert "- The task: scratchpad=true." in made.to_markdown()
    assert made.to_json()[0]["task_options"] == {"scratchpad": "true"}


# What is compared with what -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [{"reverse": False}, {"train_lengths": [1, 2, 20]}, {"task_version": 2}, {"task": "copy"}],
    ids=str,
)
def test_runs_that_differ_in_their_task_or_lengths_are_in_different_tables(
    filled: Filled, change: dict[str, object]
) -> None:
    filled.run(filled.config(pe="nope"), 0, GOOD)
    filled.run(filled.config(pe="coupling"), 0, GOOD)
    filled.run(filled.config(pe="nope", **change), 0, BAD)
    made = report(filled.store)
    assert sorted(len(table.rows) for table in made.tables) == [1, 2]
    assert len({table.task + table.train_lengths + str(table.settings) for table in made.tables}) == 2


def test_rows_of_different_recipes_are_marked_and_the_marks_explained(filled: Filled) -> None:
    filled.run(filled.config(pe="nope", width=64), 0, BAD)
    filled.run(filled.config(pe="nope", width=128), 0, GOOD)
    filled.run(filled.config(pe="coupling", width=64), 0, GOOD)
    made = report(filled.store)
    (table,) = made.tables
    assert [row.label for row in table.rows] == ["coupling [a]", "nope [b]", "nope [a]"]
    text = printed(made)
    assert "\n[a] width=64.\n[b] width=128.\n" in text
    assert re.search(r"^nope \[b\] +1\.00", text, re.M)
    assert [(row["label"], row["recipe"]) for row in made.to_json()] == [
        ("coupling [a]", {"model.width": "64"}),
        ("nope [b]", {"model.width": "128"}),
        ("nope [a]", {"model.width": "64"}),
    ]


def test_rows_of_one_recipe_have_no_mark(filled: Filled) -> None:
    for pe in ("nope", "coupling"):
        filled.run(filled.config(pe=pe), 0, GOOD)
    (table,) = report(filled.store).tables
    assert ([row.mark for row in table.rows], table.recipes) == (["", ""], {})


def test_recipes_beyond_the_alphabet_go_on_with_two_letters(filled: Filled) -> None:
    for width in range(28):
        filled.run(filled.config(width=8 * (width + 1)), 0, GOOD)
    (table,) = report(filled.store).tables
    assert [row.mark for row in table.rows][-3:] == ["z", "aa", "ab"]
    assert len(table.recipes) == 28


def test_tables_can_be_parted_by_recipe(filled: Filled) -> None:
    for width, pe in ((64, "nope"), (128, "nope"), (128, "coupling")):
        filled.run(filled.config(pe=pe, width=width), 0, GOOD)
    made = report(filled.store, same_recipe=True)
    assert [[row.label for row in table.rows] for table in made.tables] == [["coupling", "nope"], ["nope"]]


def test_the_title_says_what_tells_a_table_from_its_siblings(filled: Filled) -> None:
    for width in (64, 128):
        filled.run(filled.config(width=width), 0, GOOD)
    filled.run(filled.config(width=128), 0, BAD, test_seed=9)
    text = printed(report(filled.store, same_recipe=True), 120)
    for words in ("model.width=64, test seed=0", "model.width=128, test seed=0", "model.width=128, test seed=9"):
        assert f"addition · trained on lengths 1-20 · {words}" in text


def test_how_a_step_was_compiled_is_no_difference(filled: Filled) -> None:
    for pe, compiled in (("nope", True), ("coupling", False)):
        filled.run(filled.config(pe=pe, compile=compiled), 0, GOOD)
    assert len(report(filled.store).tables) == 1


@pytest.mark.parametrize(
    ("first", "second", "labels"),
    [
        (
            {"pe_options": {"start": "uniform"}}, {"pe_options": {"start": "clipped"}},
            ["coupling (coupling.start=clipped)", "coupling (coupling.start=uniform)"],
        ),
        ({"pe_version": 1}, {"pe_version": 2}, ["coupling (coupling.version=1)", "coupling (coupling.version=2)"]),
    ],
)  # fmt: skip
def test_rows_of_one_name_say_what_differs(
    filled: Filled, first: dict[str, object], second: dict[str, object], labels: list[str]
) -> None:
    for change in (first, second):
        filled.run(filled.config(pe="coupling", **change), 0, GOOD)
    (table,) = report(filled.store).tables
    assert [row.label for row in table.rows] == labels


def test_rows_that_differ_in_nothing_with_a_name_are_told_apart_by_their_hash(filled: Filled) -> None:
    hashes = [filled.config(compile=compiled) for compiled in (True, False)]
    for hash in hashes:
        filled.run(hash, 0, GOOD)
    (table,) = report(filled.store).tables
    assert {row.label for row in table.rows} == {f"nope (config={hash})" for hash in hashes}


def test_rows_without_results_differ_from_none_by_how_they_were_tested(filled: Filled) -> None:
    filled.run(filled.config(width=64), 0, GOOD, positions="fixed")
    filled.run(filled.config(width=128), 0, status="diverged")
    (table,) = report(filled.store).tables
    assert [row.label for row in table.rows] == ["nope [a]", "nope [b]"]
    titles = [
        line
        for line in printed(report(filled.store, same_recipe=True), 120).splitlines()
        if line.startswith("addition")
    ]
    assert sorted(titles) == [f"addition · trained on lengths 1-20 · model.width={width}" for width in (128, 64)]


def test_ways_of_testing_one_run_are_rows_of_their_own(filled: Filled) -> None:
    hash = filled.config(pe="rope")
    filled.run(hash, 0, GOOD)
    filled.run(hash, 0, BAD, extension="yarn")
    filled.run(hash, 0, GOOD, positions="drawn")
    (table,) = report(filled.store).tables
    assert [row.label for row in table.rows] == ["rope (positions=)", "rope (positions=drawn)", "rope@yarn"]
    (only,) = report(filled.store, pe="rope@yarn").tables
    assert [row.name for row in only.rows] == ["rope@yarn"]


def test_values_of_an_axis_are_tables_of_their_own(filled: Filled) -> None:
    hash = filled.config()
    filled.run(hash, 0, GOOD)
    filled.run(hash, 0, BAD, key={"axis": "operands", "axis_value": 3})
    made = report(filled.store)
    assert [(table.axis, table.axis_value) for table in made.tables] == [("", 0), ("operands", 3)]
    assert "· tested at operands 3" in printed(made)


def test_what_an_encoding_stands_for_and_where_greedy_decoding_differs_is_noted(filled: Filled) -> None:
    filled.run(filled.config(pe="randomized", expansion="randomized+rope"), 0, GOOD, greedy=False)
    text = printed(report(filled.store))
    assert "randomized = randomized+rope." in text
    assert lines_of(text, "randomized†")
    assert lines_of(text, "† scored by teacher forcing")


def test_a_report_can_be_of_one_config_or_one_run(filled: Filled) -> None:
    three_seeds(filled)
    hash = filled.config(pe="coupling")
    (table,) = report(filled.store, configs=[hash]).tables
    assert [(row.name, len(row.seeds)) for row in table.rows] == [("coupling", 3)]
    (table,) = report(filled.store, run=f"{hash[:8]}-1").tables
    assert [seed.run.id for seed in table.rows[0].seeds] == [f"{hash}-1"]
    with pytest.raises(UserError, match="unknown run"):
        report(filled.store, run="none")


def test_a_seed_tested_at_fewer_lengths_is_said_where_it_is_missing(filled: Filled) -> None:
    hash = filled.config()
    filled.run(hash, 0, GOOD)
    filled.run(hash, 1, {5: 1.0})
    text = printed(report(filled.store), 120)
    assert text.count("1 of 2") == 4


# Nothing to show ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"task": "additon"}, "unknown task 'additon'; did you mean 'addition'?"),
        ({"pe": "nop"}, "unknown encoding 'nop'; did you mean 'nope'?"),
        ({"task": "copy", "pe": "nope"}, "holds no run of copy with nope; with: coupling"),
        ({"test_set": "randon"}, "unknown test set 'randon'; did you mean 'random'?"),
        ({"checkpoint": "lasst"}, "unknown checkpoint 'lasst'; did you mean 'last'?"),
        ({"pe": "nope@yarn"}, "no run was tested as 'nope@yarn'; extensions tested: none"),
        ({"task": "copy"}, "none of 1 run (1 interrupted) is done and was tested on 'random'"),
        ({"threshold": 95}, "--threshold 95 is not an exact match"),
    ],
    ids=str,
)
def test_filters_that_match_nothing_get_one_line_with_the_nearest(
    filled: Filled, filters: dict[str, object], message: str
) -> None:
    filled.run(filled.config(pe="nope"), 0, GOOD)
    filled.run(filled.config(task="copy", pe="coupling"), 0, status="interrupted")
    with pytest.raises(UserError) as caught:
        report(filled.store, **filters)  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_empty_database_says_how_to_fill_it(filled: Filled) -> None:
    with pytest.raises(UserError, match="holds no runs yet; `algolen train` adds some"):
        report(filled.store)


# Numbers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "1.00"),
        (0.9999, "0.99"),
        (0.949, "0.94"),
        (0.95, "0.95"),
        (0.29, "0.29"),
        (0.01, "0.01"),
        (0.001, "<.01"),
        (0.0, "0.00"),
    ],
)
def test_a_fraction_never_looks_better_than_it_is(value: float, shown: str) -> None:
    assert fraction(value) == shown


def test_numbers_are_as_short_as_they_can_be_said() -> None:
    assert [spread(v) for v in ([0.5, 1.0], [0.0, 0.005], [1.0, 1.0], [0.251, 0.258])] == [
        ".50–1",
        "0–<.01",
        "all 1",
        "all .25",
    ]
    assert [probability(v) for v in (0.5, 0.125, 1e-41, 0.004, 0.0)] == ["0.50", "0.12", "1e-41", "4e-03", "<1e-99"]


def test_json_is_one_object_a_row_with_raw_counts(filled: Filled) -> None:
    three_seeds(filled)
    filled.run(filled.config(pe="coupling"), 3, status="diverged")
    rows = json.loads(json.dumps(report(filled.store).to_json(), allow_nan=False))
    assert [row["pe"] for row in rows] == ["coupling", "nope"]
    row = rows[0]
    assert row["horizon"] == {"length": 30, "at_end": False}
    assert row["solved"]["of"] == row["seeds_attempted"] == 4
    assert [run["status"] for run in row["runs"]] == ["done", "done", "done", "diverged"]
    point = row["runs"][0]["lengths"][-1]
    assert (point["length"], point["units"], point["exact"], point["tokens"]) == (40, 1000, 500, 40_000)
