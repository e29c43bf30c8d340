"""What the stored counts say, for people and for machines. Reads the store; computes nothing that needs a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from algolen.errors import UserError, unknown
from algolen.report.comparison import LOST, Comparison, compare
from algolen.report.export import to_csv, to_json
from algolen.report.markdown import to_markdown
from algolen.report.tables import render
from algolen.statistics import THRESHOLD
from algolen.store import TRIAL_SEEDS_FROM, CurveRow, RunRow, Store

__all__ = ["Comparison", "Report", "report"]


@dataclass(frozen=True)
class Report:
    """Comparisons of encodings, one for everything else that differs, and the runs that are in none of them."""

    tables: tuple[Comparison, ...]
    left_out: tuple[RunRow, ...]
    test_set: str
    checkpoint: str
    trials_left_out: int = 0

    def print(self, console: Console) -> None:
        """Print the tables, as wide as the console."""
        for part in render(self.tables, console.width):
            console.print(part, highlight=False)
        for note in self.omissions():
            console.print(note, style="dim", highlight=False, markup=False, soft_wrap=True)

    def omissions(self) -> list[str]:
        """What is in none of the tables, a sentence each."""
        said = [f"Left out: {_said(self.left_out)}."] if self.left_out else []
        if self.trials_left_out:
            trials = f"{self.trials_left_out:,} trial{'s' * (self.trials_left_out > 1)}"
            said.append(f"Left out: {trials} (seeds from {TRIAL_SEEDS_FROM} up); --trials shows them alone.")
        return said

    def to_json(self) -> list[dict[str, Any]]:
        """For JSON, one object a row: its measures, and raw counts by run and length."""
        return to_json(self.tables, self.test_set, self.checkpoint)

    def to_markdown(self) -> str:
        """Tables in Markdown, with their titles and notes."""
        return to_markdown(self.tables)

    def to_csv(self) -> str:
        """CSV with one line a run and length."""
        return to_csv(self.tables, self.test_set, self.checkpoint)


def report(
    store: Store,
    task: str | None = None,
    pe: str | None = None,
    test_set: str = "random",
    checkpoint: str = "last",
    threshold: float = THRESHOLD,
    configs: Collection[str] = (),
    run: str | None = None,
    trials: bool = False,
    same_recipe: bool = False,
) -> Report:
    """Compare the stored runs of a task and an encoding (all of them unless named) on one kind of test set.

    `pe` is an encoding as it was typed or expanded, and with `@` one test-time extension of it; `configs` are hashes,
    none for all of them, `run` the id of one run or its beginning. Trials (seeds from 100 up, tested on development
    sets) are left out, or shown alone. With `same_recipe`, tables part what differs in model and training. Raises
    UserError where nothing matches, with the nearest stored name.
    """
    if checkpoint == "training":
        raise UserError("--checkpoint training: what is looked at while training is never reported; last or best are")
    if not 0 < threshold <= 1:
        raise UserError(f"--threshold {threshold:g} is not an exact match; give a number above 0 and up to 1")
    encoding, at, extension = (pe or "").partition("@")
    if run:
        named = store.run(run)
        run, trials = named.id, named.trial
    one = store.config(next(iter(configs))).hash if len(configs) == 1 else None
    purpose = "development" if trials else "report"
    found = store.length_curves(task, encoding or None, test_set, checkpoint, purpose, config=one, run=run)
    found = [curve for curve in found if not configs or curve.run.config_hash in configs]
    if not found:
        raise _nothing_stored(store, task, encoding or None)
    curves = [curve for curve in found if curve.run.trial == trials]
    trials_left_out = 0 if trials else len({curve.run.id for curve in found if curve.run.trial})
    if not curves:
        raise _other_seeds(store, trials, len({curve.run.id for curve in found}))
    if at:
        curves = [curve for curve in curves if curve.evaluation and curve.evaluation.extension == extension]
    tables = compare(curves, store.configs({curve.run.config_hash for curve in curves}), threshold, same_recipe)
    if not tables:
        raise _nothing_tested(store, curves, pe, test_set, checkpoint)
    return Report(tuple(tables), _left_out(curves), test_set, checkpoint, trials_left_out)


def _left_out(curves: Sequence[CurveRow]) -> tuple[RunRow, ...]:
    tested = {curve.run.id for curve in curves if curve.evaluation}
    runs = {curve.run.id: curve.run for curve in curves}.values()
    return tuple(run for run in runs if not _used(run, run.id in tested) and run.status not in ("pending", "cancelled"))


def _used(run: RunRow, tested: bool) -> bool:
    return run.status in LOST or (run.status == "done" and tested)


def _said(runs: Sequence[RunRow]) -> str:
    statuses = Counter("done but not tested so" if run.status == "done" else run.status for run in runs)
    return f"{len(runs):,} run{'s' * (len(runs) > 1)} ({', '.join(f'{n} {s}' for s, n in sorted(statuses.items()))})"


def _nothing_stored(store: Store, task: str | None, pe: str | None) -> UserError:
    tasks = store.known("task")
    if not tasks:
        return UserError(f"{store.path} holds no runs yet; `algolen train` adds some")
    if task is not None and task not in tasks:
        return unknown("task", task, tasks)
    encodings = {*store.known("pe"), *store.known("expansion")}
    if pe is not None and pe not in encodings:
        return unknown("encoding", pe, encodings)
    here = sorted({run.pe for run in store.runs(task)})
    asked = f"{task or 'any task'} with {pe}" if pe else f"{task}"
    return UserError(f"{store.path} holds no run of {asked}; with: {', '.join(here) or 'none'}")


def _other_seeds(store: Store, trials: bool, found: int) -> UserError:
    if trials:
        return UserError(f"{store.path} holds no such trials, which have seeds from {TRIAL_SEEDS_FROM} up")
    return UserError(
        f"all {found:,} such runs in {store.path} are trials (seeds from {TRIAL_SEEDS_FROM} up); --trials shows them"
    )


def _nothing_tested(
    store: Store, curves: Sequence[CurveRow], pe: str | None, test_set: str, checkpoint: str
) -> UserError:
    for kind, name, known in (
        ("test set", test_set, store.known("test_set")),
        ("checkpoint", checkpoint, store.known("checkpoint")),
    ):
        # What is looked at while training is never reported.
        known = [one for one in known if one != "training"]
        if known and name not in known:
            return unknown(kind, name, known)
    if pe and "@" in pe:
        extensions = [f"{pe.partition('@')[0]}@{name}" for name in store.known("extension") if name]
        return UserError(f"no run was tested as '{pe}'; extensions tested: {', '.join(extensions) or 'none'}")
    return UserError(
        f"none of {_said(_left_out(curves)) if _left_out(curves) else 'these runs'} is done and was tested on "
        f"'{test_set}' from its {checkpoint} checkpoint; `algolen runs` lists them"
    )
