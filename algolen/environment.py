"""Where a run is computed: recorded beside its results, never part of its identity."""

from __future__ import annotations

import platform
import subprocess
from contextlib import suppress
from pathlib import Path

import torch

from algolen import __version__
from algolen.store import EnvironmentRow


def environment(device: torch.device, compiled: bool) -> EnvironmentRow:
    """Where a run is computed."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()
    commit, dirty = _git_state()
    return EnvironmentRow(
        python=platform.python_version(),
        torch=torch.__version__,
        platform=platform.platform(),
        device=device.type,
        device_name=name,
        threads=torch.get_num_threads(),
        algolen_version=__version__,
        git_commit=commit,
        git_dirty=dirty,
        compiled=compiled,
    )


def _processor() -> str:
    """The processor and the instructions torch uses on it, which decide how sums are rounded."""
    name = platform.processor() or platform.machine()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    return f"{name}, {torch.backends.cpu.get_cpu_capability()}"


def _git_state() -> tuple[str | None, bool | None]:
    """The commit of the source that runs and whether it was changed since, where it runs from a git checkout."""
    source = Path(__file__).resolve().parent
    if not (source.parent / ".git").exists():
        return None, None
    try:
        commit = _git(source, "rev-parse", "HEAD")
        return commit, bool(_git(source, "status", "--porcelain", "--", ".", "../tasks"))
    except (OSError, subprocess.CalledProcessError):
        return None, None


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()
