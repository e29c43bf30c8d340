"""How long commands take to answer, in processes of their own, and that they do it without torch."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from algolen.environment import environment
from algolen.identity import content_hash
from algolen.recording import config_row
from algolen.store import ConfigRow, Count, EvaluationRow, Point, PointKey, Store
from benchmarks.measuring import Bar
from benchmarks.training import CPU, plan

CONFIGS, SEEDS, STEPS = 10, 100, 5000
STRATA = ("carry chain 0", "carry chain 1", "carry chain 2")
WITHOUT_TORCH = (
    "import sys; from algolen.cli import run; code = run(sys.argv[1:]); "
    "sys.exit('torch was imported' if 'torch' in sys.modules else code)"
)


def bars() -> Iterator[Bar]:
    """Help, and a report on 1,000 runs."""
    yield _bar("algolen --help", ["--help"], most=0.5)
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "experiments.sqlite"
        beside = f"; {fill(db):,} points, {db.stat().st_size / 1e6:.0f} MB"
        yield _bar(f"algolen report, {CONFIGS * SEEDS:,} runs", ["report", "--db", str(db)], most=2, beside=beside)


def _bar(what: str, arguments: Sequence[str], most: float, beside: str = "") -> Bar:
    """The shortest wall time of a command; tried until it passes, at most 20 times, since the machine may be busy."""
    walls: list[float] = []
    processor: list[float] = []
    while len(walls) < 3 or (min(walls) > most and len(walls) < 20):
        used, started = _children_seconds(), time.perf_counter()
        done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, *arguments], capture_output=True, text=True)
        walls.append(time.perf_counter() - started)
        processor.append(_children_seconds() - used)
        if done.returncode:
            raise AssertionError(f"algolen {' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}")
    note = f"no torch; best of {len(walls)}, {min(processor):.2f} s of processor time{beside}"
    return Bar(what, min(walls), "s", most=most, note=note)


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def fill(db: Path) -> int:
    """Makes a database of 1,000 runs as training would leave it; returns how many points it holds."""
    stored = config_row(plan("nope"))
    here, points = environment(CPU, compiled=False), 0
    with Store.open(db, create=True) as store, store.transaction():
        for number in range(CONFIGS):
            config = _with_pe(stored, f"encoding{number}")
            store.add_config(config)
            for seed in range(SEEDS):
                run_id = f"{config.hash}-{seed}"
                store.claim(run_id, config.hash, seed, STEPS, 280_000, True, "benchmark", here)
                points += _add_results(store, run_id, number, seed)
                store.finish(run_id, "benchmark", "done", None, STEPS, 400.0)
    return points


def _with_pe(stored: ConfigRow, name: str) -> ConfigRow:
    text = stored.config_json.replace('"nope"', f'"{name}"')
    return replace(stored, hash=content_hash(text), pe=name, expansion=name, config_json=text)


def _add_results(store: Store, run_id: str, number: int, seed: int) -> int:
    """The sweep of a run, and what was seen of it every 250 steps of its training."""
    swept = [_point(length, 1000, number, seed) for length in range(5, 45, 5)]
    store.add_points(store.add_evaluation(EvaluationRow(run_id, "last", 0, 1000, "fixed")), STEPS, swept)
    seen = EvaluationRow(run_id, "training", 100, 100, "fixed", purpose="development")
    evaluation_id = store.add_evaluation(seen)
    looks = [[_point(length, 100, number, seed) for length in (25, 30, 40)] for _ in range(STEPS // 250)]
    for look, beyond in enumerate(looks, start=1):
        store.add_points(evaluation_id, 250 * look, beyond)
    return len(swept) + sum(map(len, looks))


def _point(length: int, examples: int, number: int, seed: int) -> Point:
    units = examples // len(STRATA)
    exact = units if length <= 20 else units * ((number * seed + length) % 11) // 10
    tokens = units * (length + 2)
    counts = tuple(Count(stratum, units, exact, tokens, tokens - (units - exact)) for stratum in STRATA)
    return Point(PointKey("random", length), examples, content_hash(length) * 4, counts, 1e-5, 1e-4)
