"""A report as Markdown says what it says on a terminal."""

from __future__ import annotations

from report_examples import BAD, GOOD, Filled

from algolen.report import report


def table(text: str) -> dict[str, list[str]]:
    """The cells of each line of a table, by its first."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    return {first: rest for first, *rest in rows}


def test_a_table_has_medians_ranges_horizons_and_solved_seeds(filled: Filled) -> None:
    hash = filled.config(pe="coupling")
    for seed, last in enumerate((0.5, 0.98, 0.999)):
        filled.run(hash, seed, {**GOOD, 40: last})
    filled.run(filled.config(pe="nope"), 0, BAD)
    text = report(filled.store).to_markdown()
    assert text.startswith("**addition** · trained on lengths 1-20\n\n| exact match at length | 5 |")
    cells = table(text)
    assert cells["exact match at length"] == ["5", "10", "20", "30", "40", "horizon", "solved at 40", "seeds"]
    assert cells["coupling"] == ["1.00", "1.00", "0.99", "0.97", "0.98 (.50–.99)", "≥40 = 2×", "2/3 (0.21–0.94)", "3"]
    assert cells["nope"] == ["1.00", "0.99", "0.60", "<.01", "0.00", "10 = 0.5×", "0/1 (0.00–0.79)", "1"]
    assert cells["*chance*"][:5] == ["1e-06", "1e-11", "1e-21", "1e-31", "1e-41"]
    assert len({len(row) for row in cells.values()}) == 1
    assert "\n- Exact match: every token" in text and "│" not in text


def test_what_was_not_tested_lost_or_is_not_greedy_is_marked(filled: Filled) -> None:
    hash = filled.config(pe="coupling")
    filled.run(hash, 0, {5: 1.0, 40: 1.0}, greedy=False)
    filled.run(hash, 1, {5: 1.0}, greedy=False)
    filled.run(filled.config(pe="nope"), 0, status="diverged")
    cells = table(report(filled.store).to_markdown())
    assert cells["coupling †"][:2] == ["1.00", "1.00 (1 of 2)"]
    assert cells["nope"] == ["·", "·", "·", "0/1 (0.00–0.79)", "1, 1 diverged"]


def test_recipes_are_marked_and_explained_in_the_notes(filled: Filled) -> None:
    filled.run(filled.config(width=64), 0, GOOD)
    filled.run(filled.config(width=128), 0, BAD)
    text = report(filled.store).to_markdown()
    assert list(table(text))[2:4] == ["nope [a]", "nope [b]"]
    assert "\n- [a] width=64.\n- [b] width=128.\n" in text


def test_values_of_an_axis_are_columns(filled: Filled) -> None:
    hash = filled.config(pe="rope")
    for value in (1, 2):
        filled.run(hash, 0, {16: value / 2}, key={"axis": "blanks", "axis_value": value})
    text = report(filled.store).to_markdown()
    assert table(text)["exact match at blanks"] == ["1", "2", "seeds"]
    assert table(text)["rope"] == ["0.50", "1.00", "1"]


def test_several_tables_are_parted_by_a_blank_line(filled: Filled) -> None:
    for task in ("addition", "copy"):
        filled.run(filled.config(task=task), 0, GOOD)
    first, second = report(filled.store).to_markdown().split("\n\n**copy**")
    assert first.startswith("**addition**") and second.endswith(".\n")
