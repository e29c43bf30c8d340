"""`algolen eval`: sweep a saved model again, at other lengths, sets or axes; retrains nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from algolen.cli import common
from algolen.cli.common import AsJson, Database, Device, Plugins, Threads
from algolen.errors import Refusal, unknown

if TYPE_CHECKING:
    from algolen.config import TopLevel
    from algolen.experiment import Experiment


def evaluate(
    run: Annotated[str, typer.Argument(help="The run's id, or its first characters; `algolen runs` lists them.")],
    test_lengths: Annotated[str, typer.Option("--test-lengths", help="As in 5:40:5 or 60,80,100.")],
    test_sets: Annotated[str, typer.Option("--test-sets", help="Kinds of test sets, as in random,edge.")] = "random",
    axis: Annotated[
        str | None, typer.Option("--axis", help="Vary another axis of the test, as in operands=2,3.")
    ] = None,
    examples: Annotated[
        int | None, typer.Option("--examples", min=1, help="Test examples a length.  [default: as the run was tested]")
    ] = None,
    test_seed: Annotated[int, typer.Option("--test-seed", min=0, help="Seed of the test sets.")] = 0,
    positions: Annotated[
        str | None,
        typer.Option("--positions", help="Where ids are drawn at test too: drawn or even.  [default: drawn]"),
    ] = None,
    checkpoint: Annotated[
        str, typer.Option("--checkpoint", help="last, or best: the lowest in-distribution loss.")
    ] = "last",
    plugin: Plugins = None,
    device: Device = "auto",
    threads: Threads = 1,
    db: Database = common.DATABASE,
    as_json: AsJson = False,
) -> int:
    """Sweep a trained model over more test lengths; counts are added to its record."""
    from algolen import experiment as experiments
    from algolen.cli.progress import Listener
    from algolen.config import TopLevel
    from algolen.execution import Runner
    from algolen.store import Store

    if checkpoint not in ("last", "best"):
        raise unknown("checkpoint", checkpoint, ("last", "best"))
    with Store.open(db) as store:
        row = store.run(run)
        stored = experiments.stored(json.loads(store.config(row.config_hash).config_json), common.registry(plugin))
        if examples is None:
            tested = [found for found in store.evaluations(row.id) if found.checkpoint != "training"]
            examples = tested[0].examples if tested else None
        asked = _with_sweep(
            stored,
            TopLevel(
                test_lengths=test_lengths,
                test_sets=test_sets,
                axis=axis,
                examples=examples,
                test_seed=test_seed,
                positions=positions,
            ),
        )
        where = common.find_device(device)
        common.set_threads(threads)
        err = common.console(stderr=True)
        with Listener(err) as listener:
            runner = Runner(asked, store, Path(db).parent / "runs", where, listener)
            added = runner.sweep_checkpoint(row.id, checkpoint)
        err.print(
            f"run {row.id}: {added} test set{'s' * (added != 1)} swept, {len(asked.test_sets()) - added} were there"
        )
        common.print_reports(store, asked.evaluation.test_sets, as_json, checkpoint, run=row.id)
    return 0


def _with_sweep(stored: Experiment, asked: TopLevel) -> Experiment:
    """The sweep, or why this model cannot take it: what it was trained with is fixed."""
    from algolen import experiment as experiments

    try:
        return experiments.with_sweep(stored, asked)
    except Refusal as error:
        raise Refusal(f"{error}, when it is trained again; that of a trained model is fixed") from None
