"""Stopping when asked to: after the step at the first signal, at once at the second."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Stop:
    """Whether a signal asked to stop, and what to exit with."""

    def __init__(self) -> None:
        self.signal = 0

    def asked(self) -> bool:
        """Whether it is time to stop."""
        return self.signal != 0

    @property
    def exit_code(self) -> int:
        """128 and the number of the signal, as shells have it."""
        return 128 + self.signal

    def note(self, number: int, frame: object) -> None:
        """Takes a signal; the second one is a KeyboardInterrupt."""
        if self.signal:
            raise KeyboardInterrupt
        self.signal = number
        with suppress(OSError):  # the terminal may be gone
            print("stopping after this step; once more to stop at once", file=sys.stderr, flush=True)


@contextmanager
def signals() -> Iterator[Stop]:
    """Turns the first Ctrl-C, SIGTERM or SIGHUP (a closed terminal) into a request to stop after the step; the second
    stops at once."""
    stop = Stop()
    known = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, stop.note) for number in known}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
