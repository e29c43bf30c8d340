"""A store that is quickly filled with runs for a report."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from algolen.identity import canonical_json, content_hash
from algolen.report import Report
from algolen.store import ConfigRow, Count, Ending, EvaluationRow, Point, PointKey, Store

GOOD = {5: 1.0, 10: 1.0, 20: 0.99, 30: 0.97, 40: 0.5}
BAD = {5: 1.0, 10: 0.996, 20: 0.6, 30: 0.004, 40: 0.0}


@dataclass
class Filled:
    """Adds a run with one call; `curve` is exact match by length, of 1,000 examples in two strata."""

    store: Store

    def config(self, task: str = "addition", pe: str = "nope", expansion: str | None = None, **changes: Any) -> str:
        expansion = expansion or pe
        content = {
            "task": task,
            "pe": pe,
            "expansion": expansion,
            "train_lengths": changes.get("train_lengths", list(range(1, 21))),
            "model": {"width": changes.get("width", 128)},
            "train": {"steps": 5000, "compile": changes.get("compile", False)},
            "task_options": changes.get("task_options", {"reverse": changes.get("reverse", True)}),
            "pe_options": {expansion: changes.get("pe_options", {})},
            "versions": {"training": 1, task: changes.get("task_version", 1), expansion: changes.get("pe_version", 1)},
            "plugins": {},
        }
        lengths = content["train_lengths"]
        hash = content_hash(content)
        self.store.add_config(
            ConfigRow(hash, task, 1, pe, expansion, min(lengths), max(lengths), canonical_json(content))
        )
        return hash

    def run(
        self,
        hash: str,
        seed: int = 0,
        curve: Mapping[int, float] | None = None,
        status: Ending = "done",
        greedy: bool = True,
        key: Mapping[str, Any] | None = None,
        **evaluation: Any,
    ) -> str:
        run_id, step = f"{hash}-{seed}", 5000 if status == "done" else 300
        self.store.claim(run_id, hash, seed, 5000, 100, greedy, "a:1:1")
        self.store.finish(run_id, "a:1:1", status, None if status == "done" else "went wrong\nbadly", step, 12.0)
        if curve:
            row = EvaluationRow(run_id, "last", **{"test_seed": 0, "examples": 1000, "positions": "", **evaluation})
            where = {"test_set": "random", **(key or {})}
            points = [
                Point(
                    PointKey(length=n, **where), 1000, f"{n:064}", _counts(round(v * 1000), n), 10.0 ** -(n + 1), 0.25
                )
                for n, v in curve.items()
            ]
            self.store.add_points(self.store.add_evaluation(row), step, points)
        return run_id


def _counts(exact: int, length: int) -> tuple[Count, ...]:
    parts = {"short": exact // 2, "long": exact - exact // 2}
    return tuple(Count(name, 500, min(right, 500), 500 * length, right * length) for name, right in parts.items())


def printed(report: Report, width: int = 80, **console: Any) -> str:
    out = io.StringIO()
    # No environment: the terminal that runs the tests has no say.
    report.print(Console(file=out, width=width, _environ={}, **{"color_system": None, **console}))
    return out.getvalue()
