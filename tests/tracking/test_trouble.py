"""Whatever becomes of W&B, training goes on, and what went wrong is said once; what W&B is told when training stops."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from algolen.store import Store
from algolen.tracking import tracking
from tests.conftest import SMOKE, CommandLine, Result
from tests.tracking.logs import logs
from tests.tracking.test_tracking import OFFLINE, assert_holds_the_curves, rows

ONLINE = (*SMOKE, "--wandb", "online")
LONG = (*OFFLINE, "--set", "train.steps=20000")


@pytest.fixture(autouse=True)
def nobody(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who has no login anywhere."""
    home = tmp_path_factory.mktemp("home")
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("NETRC", str(home / "netrc"))


def assert_done(line: CommandLine, result: Result, seeds: int = 1) -> str:
    """All runs are done as if W&B had not been asked for; the one thing said of it."""
    assert result.code == 0
    with Store.open(line.folder / "experiments.sqlite") as store:
        assert [run.status for run in store.runs()] == ["done"] * seeds
        assert all(store.strata(run.id) for run in store.runs())
    about = [text for text in result.stderr.splitlines() if text.startswith("W&B: ")]
    (said,) = [text for text in about if "still at work" not in text]
    assert "Traceback" not in result.stderr
    return said


def test_a_missing_login_is_said_once_and_training_goes_on(algolen: CommandLine) -> None:
    said = assert_done(algolen, algolen(*ONLINE, "--seeds", "0-2"), seeds=3)
    assert "API key" in said and "`wandb login`" in said and "--wandb offline" in said


@pytest.mark.slow
def test_a_server_that_is_not_there_is_said_once_and_training_goes_on(
    algolen: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        use_server(monkeypatch, nobody_listens)
        said = assert_done(algolen, algolen(*ONLINE))
    assert "connection refused" in said or "timeout" in said


@pytest.fixture
def silent_server() -> Iterator[socket.socket]:
    """A server that takes every connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def use_server(monkeypatch: pytest.MonkeyPatch, server: socket.socket) -> None:
    monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)


def test_a_server_that_never_answers_is_not_waited_for(
    algolen: CommandLine, monkeypatch: pytest.MonkeyPatch, silent_server: socket.socket
) -> None:
    use_server(monkeypatch, silent_server)
    monkeypatch.setitem(tracking.PATIENCE, "online", 0.5)
    said = assert_done(algolen, algolen(*ONLINE))
    assert "not done in time" in said
    assert at_work_in(algolen.folder) == []


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_a_file_where_the_log_should_go_is_said_once_and_training_goes_on(algolen: CommandLine, mode: str) -> None:
    algolen.write("wandb", "not a folder")
    said = assert_done(algolen, algolen(*SMOKE, "--wandb", mode, "--seeds", "0-1"), seeds=2)
    assert str(algolen.folder / "wandb") in said
    assert (algolen.folder / "wandb").read_text() == "not a folder"


def test_a_package_that_does_not_work_is_said_once_and_training_goes_on(
    algolen: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    algolen.write("broken/wandb/__init__.py", "raise ImportError('half installed')")
    monkeypatch.setenv("PYTHONPATH", str(algolen.folder / "broken"))
    assert "half installed" in assert_done(algolen, algolen(*OFFLINE))


# From outside ---------------------------------------------------------------------------------------------------------


def children(pid: int) -> list[int]:
    """The processes that a process has started and not yet waited for."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def client(process: subprocess.Popen[str]) -> int:
    """The process that talks to W&B for a training, as soon as there is one."""
    found: list[int] = []

    def there() -> bool:
        for pid in children(process.pid):
            # A training has short-lived children too, which may end between the listing and the look.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if b"client.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return bool(found)

    until(there)
    return found[0]


def at_work_in(folder: Path) -> list[str]:
    """Every other process whose working directory is this one."""
    found = []
    for pid in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if pid.isdigit() and int(pid) != os.getpid() and os.readlink(f"/proc/{pid}/cwd") == str(folder):
                found.append(pid)
    return found


Begin = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def begin(algolen: CommandLine) -> Iterator[Begin]:
    """Begins a training in a session of its own, like one on a terminal."""
    begun: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "algolen", *arguments],
            cwd=algolen.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        begun.append(process)
        return process

    yield start
    for process in begun:
        process.kill()
        process.communicate()


def newest_step(folder: Path) -> int:
    """The last step in the database's curve of the training loss; 0 before there is one."""
    if not list(folder.glob("runs/*/last.safetensors")):
        return 0
    return int(rows(folder, "SELECT coalesce(max(step), 0) FROM curves WHERE name = 'loss'")[0][0])


def well_begun(begin: Begin, folder: Path, logs_there: int = 1) -> subprocess.Popen[str]:
    """A long training of which a new piece of the curve is stored and a log is on disk, beside earlier ones."""
    before = newest_step(folder)
    process = begin(*LONG)
    until(lambda: len(logs(folder)) == logs_there and logs(folder)[-1].curve("loss") and newest_step(folder) > before)
    return process


def stop(process: subprocess.Popen[str]) -> str:
    """Ctrl-C on a terminal reaches every process of the session's group."""
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    return err


def test_an_interrupted_run_is_told_as_such_and_goes_on_with_the_whole_curve(
    algolen: CommandLine, begin: Begin
) -> None:
    err = stop(well_begun(begin, algolen.folder))
    assert "interrupted after step" in err and "wandb sync" in err and "Traceback" not in err
    (log,) = logs(algolen.folder)
    assert (log.exit_code, log.summary["status"]) == (130, "interrupted")
    assert_holds_the_curves(log, algolen.folder)

    time.sleep(1.1)  # W&B names folders by the second
    stop(well_begun(begin, algolen.folder, logs_there=2))
    first, second = logs(algolen.folder)
    assert first.run.run_id == second.run.run_id
    assert_holds_the_curves(second, algolen.folder)
    assert len(second.curve("loss")) > len(first.curve("loss"))


def test_a_killed_run_is_told_as_failed_and_leaves_no_process(algolen: CommandLine, begin: Begin) -> None:
    process = well_begun(begin, algolen.folder)
    pid = client(process)
    process.kill()
    process.communicate(timeout=60)
    until(lambda: not Path(f"/proc/{pid}").exists())
    (log,) = logs(algolen.folder)
    assert (log.exit_code, log.summary["status"]) == (1, "stale")
    assert log.curve("loss")


def test_a_client_that_dies_is_said_once_and_training_goes_on(algolen: CommandLine, begin: Begin) -> None:
    process = begin(*OFFLINE)
    os.kill(client(process), signal.SIGKILL)
    _, err = process.communicate(timeout=300)
    assert "ended with code -9" in assert_done(algolen, Result(process.returncode, "", err))


def test_what_was_logged_before_a_client_is_ended_stays(algolen: CommandLine, begin: Begin) -> None:
    process = well_begun(begin, algolen.folder)
    pid = client(process)
    (core,) = children(pid)
    assert os.getpgid(core) == os.getpgid(pid) == pid != os.getpgid(process.pid)  # to be ended together
    os.kill(pid, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{core}").exists())
    (log,) = logs(algolen.folder)
    assert log.curve("loss")
    stop(process)
