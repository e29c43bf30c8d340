"""What several commands share: options, devices, output."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from algolen.errors import UserError

if TYPE_CHECKING:
    import torch
    from rich.console import Console

    from algolen.registry import Registry
    from algolen.store import Store

Database = Annotated[
    Path, typer.Option("--db", envvar="ALGOLEN_DB", help="The database of runs.", show_default="experiments.sqlite")
]
DATABASE = Path("experiments.sqlite")

AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]

Plugins = Annotated[
    list[Path] | None, typer.Option("--plugin", help="A Python file with encodings or tasks of your own; repeatable.")
]

Trials = Annotated[bool, typer.Option("--trials", help="Only trials: seeds from 100 up, by which recipes are chosen.")]

Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, cuda:1, mps …")]

Wandb = Annotated[str, typer.Option("--wandb", help="Log to W&B too: off, offline (sent later) or online.")]

WandbProject = Annotated[str | None, typer.Option("--wandb-project", help="The project there.  [default: algolen]")]

Threads = Annotated[
    int, typer.Option("--threads", min=1, max=1024, help="CPU threads; more than one is slower on a busy machine.")
]


def registry(plugins: Sequence[Path] | None) -> Registry:
    """The tasks and encodings there are, those of the plug-ins among them."""
    from algolen import registry as registries

    return registries.load(plugins or ())


def find_device(name: str) -> torch.device:
    """The device of that name. Raises UserError if it is not there: nothing falls back silently."""
    import torch

    there = ["cpu"]
    if torch.cuda.is_available():
        there += ["cuda", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    if torch.backends.mps.is_available():
        there.append("mps")
    if name == "auto":
        return torch.device("cuda" if "cuda" in there else there[-1])
    if name not in there:
        raise UserError(f"no device '{name}' here; there is: {', '.join(there)}")
    return torch.device(name)


def set_threads(count: int) -> None:
    """CPU threads of this process. A step of a tiny model is too short to be shared among many."""
    import torch

    os.environ.setdefault("OMP_NUM_THREADS", str(count))
    torch.set_num_threads(count)


def console(stderr: bool = False) -> Console:
    """Where tables (stdout) and progress (stderr) go."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


def print_reports(
    store: Store,
    test_sets: Sequence[str],
    as_json: bool,
    checkpoint: str = "last",
    configs: Collection[str] = (),
    run: str | None = None,
    trials: bool = False,
) -> None:
    """The report of configurations' runs or of one run, on each of the kinds of test sets, on stdout."""
    from algolen.report import report

    made = [
        report(store, test_set=kind, checkpoint=checkpoint, configs=configs, run=run, trials=trials)
        for kind in test_sets
    ]
    if as_json:
        print_json([row for one in made for row in one.to_json()])
        return
    for number, one in enumerate(made):
        if len(made) > 1:
            console().print(f"{chr(10) * (number > 0)}[bold]test set {test_sets[number]}[/bold]")
        one.print(console())


def print_json(value: Any) -> None:
    """`value` as JSON on stdout."""
    print(json.dumps(value, indent=2))
