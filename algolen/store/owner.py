"""Who holds a run: 'host:pid:start', where start tells a process from a later one with the same number."""

from __future__ import annotations

import os
import socket
from pathlib import Path


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
