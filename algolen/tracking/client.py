"""The process that talks to W&B: takes orders from standard input, one JSON array [kind, content] a line.

It is run as a file and needs nothing of algolen. On its standard output it says, in the same form, where the run is
kept (`kept`), where it can be looked at (`url`), that all is done (`finished`), or once what went wrong (`failed`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

INIT_TIMEOUT = 20.0
"""Seconds that W&B's server may take to answer at the start."""

FLUSH_EVERY = 1.0
"""Seconds after which what was logged is on disk: W&B's helper loses the rest where this process is ended."""

LOST = 1
"""The exit code of a run whose training process went away without a word."""

Say = Callable[[str, str], None]


def main() -> int:
    """Follows the orders; the exit code is 0 if W&B took them all."""
    orders, say = _take_over_streams()
    try:
        follow(orders, say)
    except BaseException as error:
        say("failed", one_line(error))
        return 1
    return 0


def _take_over_streams() -> tuple[Iterable[bytes], Say]:
    """Our orders and answers. What W&B starts or prints gets neither: it cannot ask a user, write on the terminal, or
    keep a pipe open."""
    orders = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)

    def say(kind: str, text: str) -> None:
        with suppress(BrokenPipeError):  # whoever is not there any more need not hear it
            answers.write(json.dumps([kind, text]) + "\n")
            answers.flush()

    return orders, say


def follow(orders: Iterable[bytes], say: Say) -> None:
    """Starts the W&B run that the first order describes, logs what follows, and finishes it."""
    # A last line without its end is what a process was killed at.
    messages = (json.loads(line) for line in orders if line.endswith(b"\n"))
    _, start = next(messages)
    run = _start(start)
    # The run is lost if the orders end before the last one says how training ended.
    exit_code, summary = LOST, {"status": "stale"}
    say("kept", str(run.settings.sync_dir))
    if start["mode"] == "online":
        say("url", str(run.url))
    failed = False
    for kind, content in messages:
        if kind == "end":
            exit_code, summary = content["exit_code"], content["summary"]
        elif not failed and not (kind == "before" and run.resumed):
            try:
                _log(run, kind, content)
            except Exception as error:
                # How training ends is still told: what W&B has should not look as if it went on.
                failed = True
                say("failed", one_line(error))
    run.summary.update(summary)
    run.finish(exit_code=exit_code)
    say("finished", "")


class _Together(subprocess.Popen[Any]):
    """A process that stays in our process group. W&B's helper would leave it and, without a network, outlive us."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "start_new_session": False})


def _start(start: dict[str, Any]) -> Any:
    folder = Path(start["folder"], "wandb")
    # W&B would quietly go on in a temporary folder.
    folder.mkdir(exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"cannot write to the folder '{folder}'")
    os.environ.setdefault("WANDB_DATA_DIR", str(folder))

    import wandb

    subprocess.Popen = _Together  # type: ignore[misc]
    settings: dict[str, Any] = {
        "console": "off",
        "silent": True,
        "init_timeout": INIT_TIMEOUT,
        "host": "",
        "save_code": False,
        "disable_code": True,
        "disable_git": True,
        "x_disable_meta": True,
        "x_disable_stats": True,
        "x_disable_machine_info": True,
        "x_save_requirements": False,
        "x_transaction_log_flush_interval": FLUSH_EVERY,
    }
    # Older versions know fewer, and refuse the others.
    known = {name: value for name, value in settings.items() if name in wandb.Settings.model_fields}
    run = wandb.init(
        mode=start["mode"],
        project=start["project"],
        dir=start["folder"],
        id=start["id"],
        name=start["name"],
        group=start["group"],
        tags=start["tags"],
        config=start["config"],
        job_type="train",
        # Without `resume` a run of the same id is replaced: what a run that starts over wants, and all that is offline.
        resume="allow" if start["goes_on"] and start["mode"] == "online" else None,
        settings=wandb.Settings(**known),
    )
    run.define_metric("*", step_metric="step")
    return run


def _log(run: Any, kind: str, content: Any) -> None:
    if kind in ("before", "log"):
        for row in content:
            run.log(row)
    if kind == "sweep":
        _log_sweep(run, **content)


def _log_sweep(
    run: Any, step: int, columns: list[Any], rows: list[list[Any]], chart: list[list[Any]], summary: dict[str, Any]
) -> None:
    import wandb

    # First what needs no server; tables do.
    run.summary.update(summary)
    series = wandb.Table(columns=["length", "exact match", "test set"], data=chart)
    line = wandb.plot.line(series, "length", "exact match", stroke="test set", title="exact match over test length")
    run.log({"step": step, "sweep": wandb.Table(columns=columns, data=rows), "exact match over length": line})


def one_line(error: BaseException) -> str:
    """What an error says."""
    return " ".join(str(error).split()) or type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
