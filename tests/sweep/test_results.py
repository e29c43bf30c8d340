"""The tables of a document are made from a database, and those of RESULTS.md from the one that ships."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from algolen import registry
from algolen.store import Store
from algolen.sweep.results import fill, main

ROOT = Path(__file__).parents[2]


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    return Path(shutil.copy(ROOT / "experiments.sqlite", tmp_path / "shipped.sqlite"))


def test_the_tables_of_the_results_are_what_the_shipped_database_says(shipped: Path) -> None:
    text = (ROOT / "RESULTS.md").read_text(encoding="utf-8")
    with Store.open(shipped) as store:
        assert fill(text, store, registry.load()) == text, "`make results` makes them anew"


def test_a_block_is_replaced_and_the_rest_stays(
    shipped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = tmp_path / "notes.md"
    document.write_text(
        "# Mine\n\n<!-- study parity-scratchpad -->\nold\n<!-- end -->\n\nsaid | so\n", encoding="utf-8"
    )
    assert main([str(document), str(shipped)]) == 0
    made = document.read_text(encoding="utf-8")
    assert made.startswith("# Mine\n\n<!-- study parity-scratchpad -->\n**parity** · ")
    assert made.endswith("\n<!-- end -->\n\nsaid | so\n") and "\nold\n" not in made
    assert re.search(r"^Cost: 15 runs, \d+ minutes of one process; .+, 1 thread, torch 2\.", made, re.M)
    assert main([str(document), str(shipped)]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith("1 blocks, nothing new")
    assert document.read_text(encoding="utf-8") == made


def test_trials_show_every_score_and_what_was_chosen(shipped: Path) -> None:
    with Store.open(shipped) as store:
        made = fill("<!-- trials parity-scratchpad -->\n<!-- end -->", store, registry.load())
    rows = [line for line in made.splitlines() if line.startswith("| ")][2:]
    assert len(rows) == 5
    assert all(len(re.findall(r"\*\*0\.\d{3}\*\*", row)) == 1 for row in rows)
    assert "- wide: `model.layers=1`" in made


@pytest.mark.parametrize(
    ("document", "message"),
    [("<!-- study nonesuch -->\n<!-- end -->", "nonesuch"), (None, "there is no document")],
)
def test_what_cannot_be_made_is_said_and_the_document_stays(
    document: str | None, message: str, shipped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.md"
    if document is not None:
        path.write_text(document, encoding="utf-8")
    assert main([str(path), str(shipped)]) == 2
    assert message in capsys.readouterr().err
    assert (path.read_text(encoding="utf-8") if path.exists() else None) == document


def test_without_two_files_the_usage_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["RESULTS.md"]) == 2
    assert "DOCUMENT DATABASE" in capsys.readouterr().err
