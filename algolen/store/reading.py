"""Getting runs, configs and results out of the store."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, Literal

from algolen.errors import UserError, unknown
from algolen.store.base import Connected
from algolen.store.owner import lost
from algolen.store.rows import (
    ArtifactRow,
    ConfigRow,
    Count,
    CurvePoint,
    CurveRow,
    EnvironmentRow,
    EvaluationRow,
    Point,
    PointKey,
    Purpose,
    RunRow,
    StratumRow,
)

_RUN_FIELDS = tuple(field.name for field in dataclasses.fields(RunRow))
_CONFIG_FIELDS = ", ".join(field.name for field in dataclasses.fields(ConfigRow))
_RUN = ", ".join("v.run AS id" if name == "id" else f"v.{name}" for name in _RUN_FIELDS)
_FLOATS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}

_CURVES = f"""
    WITH measured AS (
        SELECT * FROM v_length_curve WHERE test_set = :test_set AND checkpoint = :checkpoint AND purpose = :purpose
    )
    SELECT {_RUN}, c.evaluation_id, c.checkpoint, c.purpose, c.test_set, c.test_seed, c.examples_asked, c.positions,
           c.extension, c.step AS at_step, c.axis, c.axis_value, c.length, c.examples, c.sha256, c.chance,
           c.input_blind, c.units, c.exact, c.tokens, c.tokens_correct
    FROM v_runs v LEFT JOIN measured c ON c.run = v.run
    WHERE (:task IS NULL OR v.task = :task) AND (:pe IS NULL OR v.pe = :pe OR v.expansion = :pe)
      AND (:config IS NULL OR v.config_hash = :config) AND (:run IS NULL OR v.run = :run)
    ORDER BY v.task, v.config_hash, v.seed, c.evaluation_id, c.axis, c.axis_value, c.length
"""


class Reading(Connected):
    """What reports, plots and other commands read."""

    def runs(self, task: str | None = None, pe: str | None = None, status: str | None = None) -> list[RunRow]:
        """Runs in the order they were started, narrowed to a task, an encoding (as typed or expanded) and a status."""
        found = self.rows(
            f"SELECT {_RUN} FROM v_runs v WHERE (:task IS NULL OR v.task = :task) "
            "AND (:pe IS NULL OR v.pe = :pe OR v.expansion = :pe) AND (:status IS NULL OR v.status = :status) "
            "ORDER BY v.started_at, v.config_hash, v.seed",
            {"task": task, "pe": pe, "status": status},
        )
        return [_run(row) for row in found]

    def run(self, prefix: str) -> RunRow:
        """The run of an id, or of its first characters where they fit one run only; `3f2a-1` is 3f2a… with seed 1."""
        head, _, seed = prefix.strip().lower().partition("-")
        sql = f"SELECT {_RUN} FROM v_runs v WHERE substr(v.config_hash, 1, :width) = :head"
        wanted = [_run(row) for row in self.rows(sql, {"width": len(head), "head": head})]
        matching = [run for run in wanted if seed in ("", str(run.seed))]
        if len(matching) == 1 and head:
            return matching[0]
        known = [row["run"] for row in self.rows("SELECT id AS run FROM runs ORDER BY id")]
        if not known:
            raise UserError(f"no run '{prefix}': {self.path} holds no runs yet; `algolen train` adds some")
        if not matching or not head:
            raise unknown("run", prefix, known)
        shown = ", ".join(run.id for run in matching[:4]) + (", …" if len(matching) > 4 else "")
        raise UserError(f"'{prefix}' fits {len(matching)} runs: {shown}; give more of the id")

    def find(self, run_id: str) -> RunRow | None:
        """The run of exactly this id, if there is one."""
        found = self.rows(f"SELECT {_RUN} FROM v_runs v WHERE v.run = ?", [run_id])
        return _run(found[0]) if found else None

    def config(self, hash: str) -> ConfigRow:
        """The training config of a hash."""
        found = self.configs([hash])
        if not found:
            raise unknown("config", hash, [row["hash"] for row in self.rows("SELECT hash FROM configs")])
        return found[hash]

    def configs(self, hashes: Iterable[str]) -> dict[str, ConfigRow]:
        """The training configs of any number of hashes."""
        wanted = set(hashes)
        # One full read is quicker than many look-ups, and free of SQLite's limit on parameters.
        narrowed = " WHERE hash = ?" if len(wanted) == 1 else ""
        rows = self.rows(f"SELECT {_CONFIG_FIELDS} FROM configs{narrowed}", list(wanted) if narrowed else [])
        return {row["hash"]: ConfigRow(**row) for row in rows if row["hash"] in wanted}

    def known(
        self, column: Literal["task", "pe", "expansion", "status", "test_set", "checkpoint", "extension"]
    ) -> list[str]:
        """The different values stored in a column: what a mistyped filter could have meant."""
        tables = {"status": "runs", "test_set": "points", "checkpoint": "evaluations", "extension": "evaluations"}
        table = tables.get(column, "configs")
        return [row["name"] for row in self.rows(f"SELECT DISTINCT {column} AS name FROM {table} ORDER BY 1")]

    def statuses(self) -> list[str]:
        """Every status a run can have."""
        return [row["name"] for row in self.rows("SELECT name FROM statuses ORDER BY rowid")]

    def length_curves(
        self,
        task: str | None = None,
        pe: str | None = None,
        test_set: str = "random",
        checkpoint: str = "last",
        purpose: str = "report",
        config: str | None = None,
        run: str | None = None,
    ) -> list[CurveRow]:
        """Counts by run and test length, summed over strata, in one query; runs that were not tested come without.

        Narrowed to a task, an encoding (as typed or expanded), the hash of a config, and the id of a run.
        """
        asked = {"task": task, "pe": pe, "test_set": test_set, "checkpoint": checkpoint, "purpose": purpose}
        asked |= {"config": config, "run": run}
        runs: dict[str, RunRow] = {}
        evaluations: dict[str, EvaluationRow] = {}
        curves = []
        for row in self.rows(_CURVES, asked):
            # Many rows share a run and an evaluation; each is built once.
            its_run = runs.get(row["id"]) or runs.setdefault(row["id"], _run(row))
            if row["evaluation_id"] is None:
                curves.append(CurveRow(its_run))
                continue
            which = row["evaluation_id"]
            evaluation = evaluations.get(which) or evaluations.setdefault(which, _evaluation(row))
            curves.append(CurveRow(its_run, evaluation, row["at_step"], _summed_point(row)))
        return curves

    def strata(self, run_id: str, test_set: str | None = None) -> list[StratumRow]:
        """Everything counted for one run, by stratum, at the newest step of each of its evaluations."""
        rows = self.rows(
            "SELECT e.run_id, e.checkpoint, e.test_seed, e.examples, e.positions, e.extension, e.purpose, c.* "
            "FROM evaluations e JOIN counts c ON c.evaluation_id = e.id "
            "WHERE e.run_id = :run AND (:test_set IS NULL OR c.test_set = :test_set) "
            "AND c.step = (SELECT MAX(step) FROM points p WHERE p.evaluation_id = e.id) "
            "ORDER BY e.id, c.test_set, c.axis, c.axis_value, c.length, c.stratum",
            {"run": run_id, "test_set": test_set},
        )
        return [
            StratumRow(_pick(EvaluationRow, row), row["step"], _pick(PointKey, row), _pick(Count, row)) for row in rows
        ]

    def points(self, purpose: Purpose) -> list[tuple[EvaluationRow, int, Point]]:
        """Everything counted for one purpose, with all strata, at the newest step of each evaluation, and that step."""
        rows = self.rows(
            "SELECT e.run_id, e.checkpoint, e.test_seed, e.examples AS examples_asked, e.positions, e.extension, "
            "e.purpose, p.*, c.stratum, c.units, c.exact, c.tokens, c.tokens_correct "
            "FROM (SELECT evaluation_id, MAX(step) AS step FROM points GROUP BY evaluation_id) newest "
            "JOIN evaluations e ON e.id = newest.evaluation_id "
            "JOIN points p ON p.evaluation_id = newest.evaluation_id AND p.step = newest.step "
            "JOIN counts c ON c.evaluation_id = p.evaluation_id AND c.step = p.step AND c.test_set = p.test_set "
            "AND c.length = p.length AND c.axis = p.axis AND c.axis_value = p.axis_value "
            "WHERE e.purpose = ? "
            "ORDER BY e.run_id, e.id, p.test_set, p.axis, p.axis_value, p.length, c.stratum",
            [purpose],
        )
        found: dict[tuple[str, PointKey], list[dict[str, Any]]] = {}
        for row in rows:
            found.setdefault((row["evaluation_id"], _pick(PointKey, row)), []).append(row)
        return [(_evaluation(own[0] | {"id": own[0]["run_id"]}), own[0]["step"], _point(own)) for own in found.values()]

    def environments(self) -> dict[str, EnvironmentRow]:
        """Where runs were computed, by the ids that runs name."""
        return {row["id"]: _pick(EnvironmentRow, row) for row in self.rows("SELECT * FROM environments ORDER BY id")}

    def evaluations(self, run_id: str) -> list[EvaluationRow]:
        """The ways in which a run was tested."""
        rows = self.rows("SELECT * FROM evaluations WHERE run_id = ? ORDER BY checkpoint, id", [run_id])
        return [_pick(EvaluationRow, row) for row in rows]

    def curve(self, run_id: str, name: str) -> list[CurvePoint]:
        """The values of one name logged during a run's training, by step."""
        sql = "SELECT step, name, value, kind FROM curves WHERE run_id = ? AND name = ? ORDER BY step"
        return [
            CurvePoint(row["step"], row["name"], _FLOATS.get(row["kind"], row["value"]))
            for row in self.rows(sql, [run_id, name])
        ]

    def development_curves(self, run_id: str) -> list[tuple[int, int, float]]:
        """Step, length and exact match of every look at development sets during a run's training."""
        sql = (
            "SELECT c.step, c.length, 1.0 * SUM(c.exact) / SUM(c.units) AS exact_match "
            "FROM evaluations e JOIN counts c ON c.evaluation_id = e.id "
            "WHERE e.run_id = ? AND e.purpose = 'development' GROUP BY c.step, c.length ORDER BY c.step, c.length"
        )
        return [(row["step"], row["length"], row["exact_match"]) for row in self.rows(sql, [run_id])]

    def artifacts(self, run_id: str) -> list[ArtifactRow]:
        """The files a run left behind."""
        rows = self.rows("SELECT * FROM artifacts WHERE run_id = ? ORDER BY kind", [run_id])
        return [ArtifactRow(**row) for row in rows]


def _run(row: dict[str, Any]) -> RunRow:
    values = {name: row[name] for name in _RUN_FIELDS}
    if values["status"] == "running" and lost(values["owner"], values["heartbeat_at"]):
        values["status"] = "stale"
    return RunRow(**{**values, "greedy": bool(values["greedy"]), "shipped": bool(values["shipped"])})


def _evaluation(row: dict[str, Any]) -> EvaluationRow:
    return EvaluationRow(
        row["id"], row["checkpoint"], row["test_seed"], row["examples_asked"], row["positions"], row["extension"],
        row["purpose"],
    )  # fmt: skip


def _summed_point(row: dict[str, Any]) -> Point:
    counts = (Count("", row["units"], row["exact"], row["tokens"], row["tokens_correct"]),)
    return Point(_pick(PointKey, row), row["examples"], row["sha256"], counts, row["chance"], row["input_blind"])


def _point(rows: list[dict[str, Any]]) -> Point:
    row, counts = rows[0], tuple(_pick(Count, row) for row in rows)
    return Point(_pick(PointKey, row), row["examples"], row["sha256"], counts, row["chance"], row["input_blind"])


def _pick(cls: Any, row: dict[str, Any]) -> Any:
    return cls(**{field.name: row[field.name] for field in dataclasses.fields(cls)})
