"""Keeps the tables of a document equal to what a database says.

A document says where they go: what stands between `<!-- study NAME -->` or `<!-- trials NAME -->` and `<!-- end -->` is
replaced by the reports of that study and its cost, or by the scores its recipes were chosen by.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from algolen import registry as registries
from algolen.errors import UserError
from algolen.registry import Registry
from algolen.report import report
from algolen.report.markdown import table
from algolen.store import RunRow, Store
from algolen.sweep import study as studies
from algolen.sweep.plan import Planned, plan, runs
from algolen.sweep.trials import SCORE, choices

_MARKER = re.compile(r"^[ \t]*<!--[ \t]*(study|trials|end)\b[ \t]*(.*?)[ \t]*-->[ \t]*$")


def fill(text: str, store: Store, registry: Registry) -> str:
    """The document with its tables made anew.

    Raises UserError for markers that do not pair up, and for a study that isn't there or has no results yet.
    """
    made: list[str] = []
    opened: tuple[int, str, str] | None = None
    for number, line in enumerate(text.split("\n"), 1):
        found = _MARKER.match(line)
        kind, name = found.groups() if found else ("", "")
        if kind == "end":
            if opened is None:
                raise UserError(f"line {number}: `{line.strip()}` ends nothing")
            made += [_content(*opened[1:], store, registry), line]
            opened = None
        elif opened is not None:
            if kind:
                raise UserError(f"line {number}: `{line.strip()}` stands within the block of line {opened[0]}")
        else:
            made.append(line)
            opened = (number, kind, name) if kind else None
    if opened is not None:
        raise UserError(f"line {opened[0]}: the block of {opened[1]} {opened[2]} has no `<!-- end -->`")
    return "\n".join(made)


def _content(kind: str, name: str, store: Store, registry: Registry) -> str:
    planned = plan(studies.load(name), registry, trials=kind == "trials")
    return _reports(store, planned) if kind == "study" else _trials(store, planned)


def _reports(store: Store, planned: Sequence[Planned]) -> str:
    study = planned[0].study
    hashes = [one.hash for one in planned]
    kinds = planned[0].experiment.evaluation.test_sets
    parts = [report(store, study.task, test_set=kind, configs=hashes).to_markdown().strip() for kind in kinds]
    return "\n\n".join([*parts, _cost(store, planned)])


def _trials(store: Store, planned: Sequence[Planned]) -> str:
    names = [trial.name for trial in planned[0].study.trials]
    found = choices(store, planned)
    if all(trial.score is None for choice in found for trial in choice.trials):
        raise UserError(f"{store.path} holds no finished trial of {planned[0].study.name}")
    rows = []
    for choice in found:
        cells = []
        for trial in choice.trials:
            told = "·" if trial.score is None else f"{trial.score:.3f}"
            chosen = trial.score is not None and trial.planned.trial.name == choice.chosen
            cells.append(f"**{told}**" if chosen else told)
        rows.append([choice.label, *cells])
    recipes = [f"- {trial.name}: `{'`, `'.join(trial.set)}`" for trial in planned[0].study.trials]
    note = f"- Score: {SCORE}; bold is what was chosen; · is not there."
    return "\n".join([*table(["trials", *names], rows), "", note, *recipes, "", _cost(store, planned)])


def _cost(store: Store, planned: Sequence[Planned]) -> str:
    found = [row for run in runs(planned) if (row := store.find(run.id)) is not None]
    minutes = sum(run.seconds or 0 for run in found) / 60
    where = sorted(set(_machines(store, found)))
    count = f"{len(found):,} run{'s' * (len(found) > 1)}"
    return f"Cost: {count}, {minutes:,.0f} minutes of one process; {'; '.join(where)}."


def _machines(store: Store, found: Sequence[RunRow]) -> Iterator[str]:
    environments = store.environments()
    for made in (environments[run.environment_id] for run in found if run.environment_id):
        yield f"{made.device_name}, {made.threads} thread{'s' * (made.threads > 1)}, torch {made.torch}"


def main(arguments: Sequence[str]) -> int:
    """Fills the tables of a document from a database."""
    if len(arguments) != 2:
        print("usage: python -m algolen.sweep.results DOCUMENT DATABASE", file=sys.stderr)
        return 2
    document, database = map(Path, arguments)
    try:
        blocks, changed = _refill(document, database)
    except UserError as error:
        print(f"algolen: {error}", file=sys.stderr)
        return 2
    print(f"{document}: {blocks} block{'s' * (blocks != 1)}{'' if changed else ', nothing new'}")
    return 0


def _refill(document: Path, database: Path) -> tuple[int, bool]:
    """Fills a file in place, or leaves it as it was; how many blocks it has, and whether anything changed."""
    try:
        before = document.read_bytes()
        text = before.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {document}: {error}") from None
    newline = "\r\n" if "\r\n" in text else "\n"
    with Store.open(database) as store:
        try:
            filled = fill(text.replace("\r\n", "\n"), store, registries.load())
        except UserError as error:
            raise UserError(f"{document}: {error}") from None
    after = filled.replace("\n", newline).encode("utf-8")
    if after != before:
        target = document.resolve()
        made = target.with_name(f"{target.name}.filling")
        try:
            made.write_bytes(after)
            shutil.copymode(target, made)
            os.replace(made, target)
        except OSError as error:
            raise UserError(f"cannot write {document}: {error}") from None
        finally:
            made.unlink(missing_ok=True)
    markers = [found for line in filled.split("\n") if (found := _MARKER.match(line))]
    return len(markers) // 2, after != before


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
