"""Who holds a run: 'host:pid:start', where start tells a process from a later one with the same number."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from algolen.store.base import seconds_since

GRACE = 15 * 60.0
"""Seconds without a heartbeat after which a run may be taken over."""


def lost(owner: str, heartbeat_at: str) -> bool:
    """Whether the worker of a running run is gone: it has ended on this machine, or has not reported in for long."""
    return seconds_since(heartbeat_at) > GRACE or gone(owner)


def this_process() -> str:
    """This process as an owner of runs."""
    pid = os.getpid()
    return f"{socket.gethostname()}:{pid}:{_start_of(pid)}"


def gone(owner: str) -> bool:
    """Whether an owner is known to live no more; False for one on another machine, which cannot be seen from here."""
    try:
        host, pid_text, start = owner.rsplit(":", 2)
        pid = int(pid_text)
    except ValueError:
        return False
    if host != socket.gethostname():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return _start_of(pid) != start


def _start_of(pid: int) -> str:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return "0"
    # The process's name, in parentheses, may hold blanks and parentheses itself; fields 3 and 22 are state and start.
    fields = status.rpartition(")")[2].split()
    return "ended" if fields[0] in "ZX" else fields[19]
