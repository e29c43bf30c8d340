"""The tables of a document are made from a database, and those of RESULTS.md from the one that ships."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from algolen import registry
from algolen.errors import UserError
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
    assert capsys.readouterr().out.splitlines()[1].endswith("1 block, nothing new")
    assert document.read_text(encoding="utf-8") == made


def test_trials_show_every_score_and_what_was_chosen(shipped: Path) -> None:
    with Store.open(shipped) as store:
        made = fill("<!-- trials parity-scratchpad -->\n<!-- end -->", store, registry.load())
    rows = [line for line in made.splitlines() if line.startswith("| ")][2:]
    assert len(rows) == 5
    assert all(len(re.findall(r"\*\*0\.\d{3}\*\*", row)) == 1 for row in rows)
    assert "- wide: `model.layers=1`" in made


GOOD = "<!-- study selective-copy -->\nold\n<!-- end -->\n"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (f"{GOOD}<!-- study nonesuch -->\n<!-- end -->", "nonesuch"),
        (f"{GOOD}<!-- study -->\n<!-- end -->", "study"),
        (
            f"<!-- study selective-copy -->\nmine\n{GOOD}",
            "line 3: `<!-- study selective-copy -->` stands within the block of line 1",
        ),
        (
            f"{GOOD}<!-- trials selective-copy -->\nmine\n",
            "line 4: the block of trials selective-copy has no `<!-- end -->`",
        ),
        (f"{GOOD}mine\n<!-- end -->\n", "line 5: `<!-- end -->` ends nothing"),
        ("<!-- trials mine.toml -->\n<!-- end -->\n", "mine.toml"),
        (b"\xff\xfe", "cannot read"),
        (None, "cannot read"),
    ],
)
def test_what_cannot_be_made_is_said_and_the_document_stays(
    document: str | bytes | None, message: str, shipped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.md"
    before = document.encode() if isinstance(document, str) else document
    if before is not None:
        path.write_bytes(before)
    assert main([str(path), str(shipped)]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
    assert (path.read_bytes() if path.exists() else None) == before
    assert {found.name for found in tmp_path.iterdir()} <= {"notes.md", "shipped.sqlite"}


def test_markers_are_read_however_they_are_spaced_and_line_ends_stay(
    shipped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.md"
    path.write_bytes(b"mine\r\n  <!--study  selective-copy-->\t\r\nold\r\n<!--end-->\r\nmine too")
    assert main([str(path), str(shipped)]) == 0
    assert capsys.readouterr().out.endswith(": 1 block\n")
    made = path.read_bytes()
    assert made.startswith(b"mine\r\n  <!--study  selective-copy-->\t\r\n**selective-copy** ")
    assert made.endswith(b"\r\n<!--end-->\r\nmine too")
    assert made.count(b"\n") == made.count(b"\r\n")


def test_a_link_to_a_document_stays_a_link(shipped: Path, tmp_path: Path) -> None:
    (tmp_path / "real.md").write_text(GOOD, encoding="utf-8")
    (tmp_path / "link.md").symlink_to("real.md")
    assert main([str(tmp_path / "link.md"), str(shipped)]) == 0
    assert (tmp_path / "link.md").is_symlink()
    assert "old" not in (tmp_path / "real.md").read_text(encoding="utf-8")


def test_trials_that_nobody_has_made_are_no_table(shipped: Path) -> None:
    with Store.open(shipped) as store:
        store.db.execute("DELETE FROM counts")
        with pytest.raises(UserError, match="holds no finished trial of selective-copy"):
            fill("<!-- trials selective-copy -->\n<!-- end -->", store, registry.load())


def test_without_two_files_the_usage_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["RESULTS.md"]) == 2
    assert "DOCUMENT DATABASE" in capsys.readouterr().err
