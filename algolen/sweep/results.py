"""Keeps the tables of a document equal to what a database says.

A document says where they go: what stands between `<!-- study NAME -->` or `<!-- trials NAME -->` and `<!-- end -->` is
replaced by the reports of that study and its cost, or by the scores its recipes were chosen by.
"""

from __future__ import annotations

import re
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

_BLOCK = re.compile(r"<!-- (study|trials) (\S+) -->\n.*?<!-- end -->", re.DOTALL)


def fill(text: str, store: Store, registry: Registry) -> str:
    """The document with its tables made anew. Raises UserError for a study that isn't there or has no results yet."""

    def made(match: re.Match[str]) -> str:
        kind, name = match.groups()
        planned = plan(studies.load(name), registry, trials=kind == "trials")
        content = _reports(store, planned) if kind == "study" else _trials(store, planned)
        return f"<!-- {kind} {name} -->\n{content}\n<!-- end -->"

    return _BLOCK.sub(made, text)


def _reports(store: Store, planned: Sequence[Planned]) -> str:
    study = planned[0].study
    hashes = [one.hash for one in planned]
    kinds = planned[0].experiment.evaluation.test_sets
    parts = [report(store, study.task, test_set=kind, configs=hashes).to_markdown().strip() for kind in kinds]
    return "\n\n".join([*parts, _cost(store, planned)])


def _trials(store: Store, planned: Sequence[Planned]) -> str:
    names = [trial.name for trial in planned[0].study.trials]
    rows = []
    for choice in choices(store, planned):
        cells = []
        for trial in choice.trials:
            told = "·" if trial.score is None else f"{trial.score:.3f}"
            cells.append(f"**{told}**" if trial.planned.trial.name == choice.chosen else told)
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
        if not document.is_file():
            raise UserError(f"there is no document {document}")
        before = document.read_text(encoding="utf-8")
        with Store.open(database) as store:
            after = fill(before, store, registries.load())
    except UserError as error:
        print(f"algolen: {error}", file=sys.stderr)
        return 2
    if after != before:
        document.write_text(after, encoding="utf-8")
    print(f"{document}: {len(_BLOCK.findall(after))} blocks{'' if after != before else ', nothing new'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
