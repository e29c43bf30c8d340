"""Adding configs, evaluations and results. Every call is one transaction; adding a thing twice changes nothing."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

from algolen.store.base import Connected, now
from algolen.store.rows import (
    ArtifactRow,
    ConfigRow,
    Conflict,
    Count,
    CurvePoint,
    EvaluationRow,
    Point,
    PointKey,
)

_AT = "evaluation_id = ? AND step = ? AND test_set = ? AND length = ? AND axis = ? AND axis_value = ?"


class Writing(Connected):
    """What training and evaluation put into the store."""

    def add_config(self, config: ConfigRow) -> None:
        """Add a training config unless it is there."""
        with self.transaction():
            row = {**dataclasses.asdict(config), "created_at": now()}
            self.db.table("configs").insert(row, pk="hash", ignore=True)

    def add_evaluation(self, evaluation: EvaluationRow) -> str:
        """Add a way of testing a run unless it is there; its id."""
        with self.transaction():
            row = {"id": evaluation.id, **dataclasses.asdict(evaluation)}
            self.db.table("evaluations").insert(row, pk="id", ignore=True)
        return evaluation.id

    def add_points(self, evaluation_id: str, step: int, points: Iterable[Point]) -> None:
        """Add the counts of any number of test sets, all or none of them.

        A point that is there with the same test set and counts is left alone. One with others raises Conflict: results
        are deterministic, so one of the two is wrong, and nothing is overwritten.
        """
        with self.transaction():
            for point in points:
                self._add_point(evaluation_id, step, point)

    def _add_point(self, evaluation_id: str, step: int, point: Point) -> None:
        at = (evaluation_id, step, *dataclasses.astuple(point.key))
        stored = self.rows(f"SELECT examples, sha256 FROM points WHERE {_AT}", at)
        if stored:
            self._compare(at, point, stored[0]["examples"], stored[0]["sha256"])
            return
        self.db.execute(
            "INSERT INTO points VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [*at, point.examples, point.sha256, point.chance, point.input_blind],
        )
        for count in point.counts:
            self.db.execute(
                "INSERT INTO counts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [*at, *dataclasses.astuple(count)]
            )

    def _compare(self, at: tuple[object, ...], point: Point, examples: int, sha256: str) -> None:
        rows = self.rows(f"SELECT stratum, units, exact, tokens, tokens_correct FROM counts WHERE {_AT}", at)
        stored = {Count(**row) for row in rows}
        if stored == set(point.counts) and (examples, sha256) == (point.examples, point.sha256):
            return
        raise Conflict(
            f"evaluation {at[0]} at step {at[1]:,}, {point.key}: stored with {_said(stored, examples, sha256)}, "
            f"now {_said(point.counts, point.examples, point.sha256)}; nothing was overwritten"
        )

    def points_present(self, evaluation_id: str, step: int) -> set[PointKey]:
        """What an evaluation has been measured at, so that it need not be measured again."""
        sql = "SELECT test_set, length, axis, axis_value FROM points WHERE evaluation_id = ? AND step = ?"
        return {PointKey(**row) for row in self.rows(sql, [evaluation_id, step])}

    def add_curve(self, run_id: str, values: Iterable[CurvePoint]) -> None:
        """Add values logged during training; a value at the same step and name is replaced."""
        rows = [(run_id, v.step, v.name, v.value if math.isfinite(v.value) else None, _kind(v.value)) for v in values]
        with self.transaction():
            for row in rows:
                self.db.execute(
                    "INSERT OR REPLACE INTO curves (run_id, step, name, value, kind) VALUES (?, ?, ?, ?, ?)", row
                )

    def add_artifact(self, artifact: ArtifactRow) -> None:
        """Record a file of a run; a newer one of the same kind takes its place."""
        with self.transaction():
            self.db.table("artifacts").upsert(dataclasses.asdict(artifact), pk=("run_id", "kind"))


def _kind(value: float) -> str:
    if math.isfinite(value):
        return "finite"
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def _said(counts: Iterable[Count], examples: int, sha256: str) -> str:
    ordered = sorted(counts)
    exact, units = sum(c.exact for c in ordered), sum(c.units for c in ordered)
    right, tokens = sum(c.tokens_correct for c in ordered), sum(c.tokens for c in ordered)
    return (
        f"{exact:,} of {units:,} exact and {right:,} of {tokens:,} tokens ({examples:,} examples, sha256 {sha256[:8]})"
    )
