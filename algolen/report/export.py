"""Comparisons for machines: JSON with one object a row and its raw counts, CSV with one line a run and length."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Sequence
from typing import Any

from algolen import statistics
from algolen.report.comparison import Comparison, Row, SeedCurve
from algolen.report.differences import said
from algolen.store import Point, RunRow

COLUMNS = (
    "run", "config", "task", "pe", "expansion", "extension", "positions", "train_shortest", "train_longest", "seed",
    "status", "greedy", "checkpoint", "step", "test_set", "test_seed", "examples", "axis", "axis_value", "length",
    "units", "exact", "exact_match", "tokens", "tokens_correct", "token_accuracy", "chance", "input_blind", "label",
    "recipe", "settings", "task_options",
)  # fmt: skip


def to_json(tables: Sequence[Comparison], test_set: str, checkpoint: str) -> list[dict[str, Any]]:
    """One object a row, in the order of the tables; keys are stable, counts are raw."""
    return [_row(table, row, test_set, checkpoint) for table in tables for row in table.rows]


def _row(table: Comparison, row: Row, test_set: str, checkpoint: str) -> dict[str, Any]:
    horizon = statistics.median_horizon(row.horizons) if row.horizons else None
    return {
        "task": row.config.task,
        "pe": row.config.pe,
        "expansion": row.config.expansion,
        "label": row.label,
        "recipe": dict(row.recipe),
        "config": row.config.hash,
        "train_lengths": table.train_lengths,
        "settings": dict(table.settings),
        "task_options": dict(table.task_options),
        **_tested(table, row, test_set, checkpoint),
        "threshold": row.threshold,
        "greedy": row.greedy,
        "horizon": None if horizon is None else dataclasses.asdict(horizon),
        "factor": None if horizon is None or horizon.length is None else horizon.length / row.train[1],
        "in_distribution": statistics.median(row.in_distribution) if row.in_distribution else None,
        "solved": _solved(row),
        "seeds_attempted": row.attempted,
        "runs": [_measured(seed, row) for seed in row.seeds] + [_identity(run) | {"lengths": []} for run in row.lost],
    }


def _tested(table: Comparison, row: Row, test_set: str, checkpoint: str) -> dict[str, Any]:
    return {
        "checkpoint": checkpoint,
        "extension": row.extension,
        "positions": row.positions,
        "test_set": test_set,
        "test_seed": table.test_seed,
        "examples": table.examples,
        "axis": table.axis,
        "axis_value": table.axis_value,
    }


def _solved(row: Row) -> dict[str, Any] | None:
    if row.solved is None:
        return None
    count, of = row.solved
    return {"at": statistics.target_length(row.train), "seeds": count, "of": of, "wilson": statistics.wilson(count, of)}


def _identity(run: RunRow) -> dict[str, Any]:
    return {"run": run.id, "seed": run.seed, "status": run.status, "steps": run.steps}


def _measured(seed: SeedCurve, row: Row) -> dict[str, Any]:
    return {
        **_identity(seed.run),
        "step": seed.step,
        "horizon": dataclasses.asdict(statistics.horizon(seed.curve, row.train, row.threshold)),
        "solved": statistics.solved(seed.curve, row.train, threshold=row.threshold),
        "lengths": [
            {"length": length, **_counts(point), "sha256": point.sha256} for length, point in seed.points.items()
        ],
    }


def _counts(point: Point) -> dict[str, Any]:
    count = point.counts[0]
    return {
        "units": count.units,
        "exact": count.exact,
        "tokens": count.tokens,
        "tokens_correct": count.tokens_correct,
        "chance": point.chance,
        "input_blind": point.input_blind,
    }


def to_csv(tables: Sequence[Comparison], test_set: str, checkpoint: str) -> str:
    """One line a run and length, summed over strata; a run that failed or diverged has one line without counts."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n", restval="")
    writer.writeheader()
    lost: set[str] = set()
    for table in tables:
        for row in table.rows:
            shared = {**_tested(table, row, test_set, checkpoint), **_described(table, row)}
            # Beside each table of its config it would be counted more than once.
            writer.writerows({**shared, **_run(run)} for run in row.lost if run.id not in lost)
            lost |= {run.id for run in row.lost}
            for seed in row.seeds:
                for length, point in seed.points.items():
                    line = {"length": length, "step": seed.step, "exact_match": seed.curve[length], **_counts(point)}
                    line["token_accuracy"] = line["tokens_correct"] / line["tokens"]
                    writer.writerow({**shared, **_run(seed.run), **line})
    return text.getvalue()


def _described(table: Comparison, row: Row) -> dict[str, str]:
    described = {"recipe": row.recipe, "settings": table.settings, "task_options": table.task_options}
    return {"label": row.label, **{name: said(options) for name, options in described.items()}}


def _run(run: RunRow) -> dict[str, Any]:
    stored = dataclasses.asdict(run)
    same = ("task", "pe", "expansion", "train_shortest", "train_longest", "seed", "status")
    return {
        "run": run.id,
        "config": run.config_hash,
        "greedy": int(run.greedy),
        **{name: stored[name] for name in same},
    }
