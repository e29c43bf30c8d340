"""Several workers on this machine: started, told to stop, and waited for, each by its own number."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

LOOK = 5.0
"""Seconds between looks at how far the workers are."""


def supervise(
    commands: Sequence[Sequence[str]], logs: Sequence[Path], signal_seen: Callable[[], int], look: Callable[[], None]
) -> list[int]:
    """Runs the commands at once until all have ended, each with a log that it adds to; their exit codes.

    signal_seen: the number of the signal that asked to stop, 0 for none; the workers get it once. look: called now and
    then. A KeyboardInterrupt is passed on too, and raised when the workers are gone.
    """
    with ExitStack() as files:
        workers: list[subprocess.Popen[bytes]] = []
        try:
            for command, log in zip(commands, logs, strict=True):
                log.parent.mkdir(parents=True, exist_ok=True)
                written = files.enter_context(log.open("ab"))
                # In a session of its own a worker hears of Ctrl-C from here only, and so once.
                workers.append(
                    subprocess.Popen(
                        command, stdin=subprocess.DEVNULL, stdout=written, stderr=written, start_new_session=True
                    )
                )
            _until_ended(workers, signal_seen, look)
        finally:
            _tell(workers, signal.SIGTERM)
            codes = [worker.wait() for worker in workers]
    return codes


def _until_ended(
    workers: Sequence[subprocess.Popen[bytes]], signal_seen: Callable[[], int], look: Callable[[], None]
) -> None:
    told, last_look = False, -LOOK
    while any(worker.poll() is None for worker in workers):
        if (number := signal_seen()) and not told:
            _tell(workers, signal.Signals(number))
            told = True
        if time.monotonic() - last_look >= LOOK:
            look()
            last_look = time.monotonic()
        time.sleep(0.2)
    look()


def _tell(workers: Sequence[subprocess.Popen[bytes]], number: signal.Signals) -> None:
    """Signals the workers that are still there."""
    for worker in workers:
        if worker.poll() is None:
            worker.send_signal(number)
