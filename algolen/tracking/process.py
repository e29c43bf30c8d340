"""The training process's side of `client.py`: a W&B run in a process of its own, which can be neither waited for nor
stopped by accident.

W&B's client in the training process would share its interpreter lock, hook its exit and wait there for the network as
long as it takes. A process can be fed without waiting, and ended.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

CLIENT = Path(__file__).parent / "client.py"

NICENESS = 5
"""How far the process stands back where the cores are busy."""


class Process:
    """Starts the W&B run that `start` describes. heard(process, kind, text): told its answers, on a thread.

    Nothing here waits but `wait`. The queue has no bound: a run logs some hundreds of points, whatever its length.
    """

    def __init__(self, start: dict[str, Any], heard: Callable[[Process, str, str], None]) -> None:
        self._heard = heard
        self._orders: SimpleQueue[bytes | None] = SimpleQueue()
        self._answered = self._closed = self._killed = False
        # A W&B run around us must not take ours in.
        environment = {name: value for name, value in os.environ.items() if name != "WANDB_SERVICE"}
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(CLIENT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C in a terminal is not for it
        )
        if hasattr(os, "setpriority"):
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self._process.pid, NICENESS)
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._write, self._read)]
        for thread in self._threads:
            thread.start()
        self.send("start", start)

    def send(self, kind: str, content: Any) -> None:
        """An order, to be followed some time."""
        self._orders.put(json.dumps([kind, content]).encode() + b"\n")

    def close(self) -> None:
        """There are no more orders."""
        if not self._closed:
            self._closed = True
            self._orders.put(None)

    def wait(self, seconds: float) -> bool:
        """Whether the process ended, all orders followed or not, within some seconds."""
        try:
            self._process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            return False
        for thread in self._threads:
            thread.join()
        return True

    def kill(self) -> None:
        """Ends the process, if it has not ended, with the helper that W&B started; what is on disk stays."""
        self._killed = True
        if self._process.poll() is None:
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        self.close()
        for thread in self._threads:
            thread.join()
        self._process.wait()

    def _write(self) -> None:
        assert self._process.stdin is not None
        # Where the process has ended, `_read` says so.
        with suppress(OSError), self._process.stdin as pipe:
            while (order := self._orders.get()) is not None:
                pipe.write(order)
                pipe.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as pipe:
            for line in pipe:
                kind, text = json.loads(line)
                self._answered = self._answered or kind in ("failed", "finished")
                self._heard(self, kind, text)
        code = self._process.wait()
        if not self._answered and not self._killed:
            self._heard(self, "failed", f"its process ended with code {code}")
