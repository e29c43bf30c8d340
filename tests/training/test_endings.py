"""Runs that do not end well are recorded as what they are, with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from algolen.store import RunRow, Store
from tests.conftest import CommandLine

BROKEN = '''
from __future__ import annotations

from algolen.encodings.base import Encoding


class Broken(Encoding):
    """Fails, or gives what is not a number, from the tenth batch on."""

    name, kind, paper = "broken", "embedding", "a test"
    batches = 0

    def embed(self, h_BTD, drawn, ctx):
        if self.training and h_BTD.requires_grad:
            Broken.batches += 1
        if Broken.batches >= 10:
            WHAT
        return h_BTD
'''


def train(algolen: CommandLine, tmp_path: Path, what: str) -> tuple[int, str, RunRow]:
    plugin = tmp_path / "broken.py"
    plugin.write_text(BROKEN.replace("WHAT", what))
    said = algolen(
        "train", "--task", "addition", "--pe", "broken", "--preset", "smoke", "--plugin", plugin, "--db", "x.sqlite"
    )
    with Store.open(Path("x.sqlite")) as store:
        (run,) = store.runs()
    return said.code, said.stderr, run


def test_a_run_that_raises_is_recorded_as_failed_with_its_reason_and_exits_1(
    algolen: CommandLine, tmp_path: Path
) -> None:
    code, err, run = train(algolen, tmp_path, "raise RuntimeError('no more')")
    assert code == 1
    assert (run.status, run.error) == ("failed", "RuntimeError: no more")
    assert "failed: RuntimeError: no more" in err


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_loss_that_is_no_number_is_recorded_as_diverged_with_its_step(
    algolen: CommandLine, tmp_path: Path, value: str
) -> None:
    code, err, run = train(algolen, tmp_path, f"return h_BTD * float('{value}')")
    assert code == 1
    assert (run.status, run.error) == ("diverged", "the loss was not finite at step 10")
    assert "diverged" in err
    assert run.step == 9


def test_a_failed_run_is_tried_again_by_the_same_command(algolen: CommandLine, tmp_path: Path) -> None:
    train(algolen, tmp_path, "raise RuntimeError('no more')")
    code, _, run = train(algolen, tmp_path, "raise RuntimeError('no more')")
    assert (code, run.status, run.attempt) == (1, "failed", 2)
