"""`algolen train`: train, sweep the test length, keep the counts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from algolen.cli import common
from algolen.cli.common import AsJson, Database, Device, Plugins, Threads, Wandb, WandbProject
from algolen.cli.stopping import signals

if TYPE_CHECKING:
    from rich.console import Console

    from algolen.config import Sections
    from algolen.execution import Outcome
    from algolen.experiment import Experiment
    from algolen.presets import Preset
    from algolen.tracking import Destination


def train(
    task: Annotated[str | None, typer.Option("--task", help="The task; `algolen tasks` lists them.")] = None,
    pe: Annotated[
        str | None, typer.Option("--pe", help="Position encodings joined by +; `algolen encodings` lists them.")
    ] = None,
    seeds: Annotated[str | None, typer.Option("--seeds", help="Seeds, as in 0, 0-4 or 0,2,5.  [default: 0]")] = None,
    train_lengths: Annotated[
        str | None, typer.Option("--train-lengths", help="As in 1-20.  [default: the preset's]")
    ] = None,
    test_lengths: Annotated[
        str | None, typer.Option("--test-lengths", help="As in 5:40:5.  [default: the preset's]")
    ] = None,
    test_sets: Annotated[
        str | None, typer.Option("--test-sets", help="Kinds of test sets, as in random,edge.  [default: random]")
    ] = None,
    axis: Annotated[
        str | None, typer.Option("--axis", help="Vary another axis of the test, as in operands=2,3.")
    ] = None,
    examples: Annotated[
        int | None, typer.Option("--examples", min=1, help="Test examples a length.  [default: the preset's]")
    ] = None,
    test_seed: Annotated[
        int | None, typer.Option("--test-seed", min=0, help="Seed of the test sets.  [default: 0]")
    ] = None,
    positions: Annotated[
        str | None,
        typer.Option("--positions", help="Where ids are drawn at test too: drawn or even.  [default: drawn]"),
    ] = None,
    preset: Annotated[
        str,
        typer.Option(
            "--preset",
            help="smoke (seconds), cpu (minutes on two cores) or paper (the published recipe for task and encoding, "
            "on a GPU; `algolen tasks NAME` lists recipes).",
        ),
    ] = "cpu",
    config: Annotated[Path | None, typer.Option("--config", help="A TOML file with a run's settings.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="section.option=value, as in train.steps=4000; repeatable.")
    ] = None,
    plugin: Plugins = None,
    device: Device = "auto",
    threads: Threads = 1,
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Train again from the start; results are compared with the stored ones.")
    ] = False,
    wandb: Wandb = "off",
    wandb_project: WandbProject = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done and stop.")] = False,
    db: Database = common.DATABASE,
    as_json: AsJson = False,
) -> int:
    """Train a transformer and sweep the test length far past training; the same command goes on where it stopped."""
    from algolen import config as configuration
    from algolen import experiment as experiments
    from algolen import presets, tracking

    flags = {
        "task": task, "pe": pe, "seeds": seeds, "train_lengths": train_lengths, "test_lengths": test_lengths,
        "test_sets": test_sets, "axis": axis, "examples": examples, "test_seed": test_seed, "positions": positions,
    }  # fmt: skip
    user: Sections = configuration.merge(
        configuration.load(config) if config else {},
        configuration.settings(settings or []),
        {"": {name: value for name, value in flags.items() if value is not None}},
    )
    tracked = tracking.destination(wandb, wandb_project, db.parent)
    registry = common.registry(plugin)
    start = presets.choose(preset, user, registry)
    sections = configuration.merge(start.sections, user)
    wanted = configuration.seeds(sections)
    experiment = experiments.plan(sections, user, registry)
    return _train(experiment, start, wanted, device, threads, retrain, tracked, dry_run, db, as_json)


def _train(
    experiment: Experiment,
    start: Preset,
    seeds: tuple[int, ...],
    device: str,
    threads: int,
    retrain: bool,
    tracked: Destination | None,
    dry_run: bool,
    db: Path,
    as_json: bool,
) -> int:
    from algolen.cli.announce import announce, describe, to_json
    from algolen.cli.progress import Listener
    from algolen.execution import Runner, check_folder
    from algolen.listener import Listeners
    from algolen.store import Store, is_trial
    from algolen.tracking.tracking import follow

    where = common.find_device(device)
    common.set_threads(threads)
    err = common.console(stderr=True)
    planned = (experiment, start, seeds, where, threads, db)
    if dry_run and as_json:
        common.print_json(
            {**to_json(*planned), "wandb": tracked and {"mode": tracked.mode, "project": tracked.project}}
        )
        return 0
    plan = describe(*planned)
    if tracked is not None:
        plan["W&B"] = str(tracked)
    if dry_run:
        announce(common.console(), plan)
        return 0
    check_folder(db.parent / "runs")
    outcomes: list[Outcome] = []
    with Store.open(db, create=True) as store:
        announce(err, plan)
        with follow(tracked, [experiment], store, err) as tracking:
            with Listener(err) as shown, signals() as stop:
                listener = Listeners(shown, tracking)
                for seed in seeds:
                    runner = Runner(experiment, store, db.parent / "runs", where, listener, stop.asked, retrain)
                    outcome = runner.run(seed)
                    outcomes.append(outcome)
                    _say(err, outcome)
                    if outcome.status == "interrupted":
                        return stop.exit_code
            if any(outcome.status != "held" for outcome in outcomes):
                kinds = experiment.evaluation.test_sets
                trials = all(is_trial(seed) for seed in seeds)
                common.print_reports(store, kinds, as_json, configs=[experiment.config.hash()], trials=trials)
    return 0 if all(outcome.status == "done" for outcome in outcomes) else 1


def _say(err: Console, outcome: Outcome) -> None:
    """How a run ended, where that is not simply that it is done."""
    said = {
        "interrupted": f"{outcome.reason}; the same command goes on from there",
        "done": "the counts equal the stored ones" if outcome.compared else "",
    }.get(outcome.status, f"{outcome.status}: {outcome.reason}")
    if said:
        err.print(f"seed {outcome.seed}  run {outcome.run_id}  {said}", markup=False, soft_wrap=True)
