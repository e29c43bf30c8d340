"""Every run and every count in one SQLite file, written by any number of processes at once.

The store knows only configs and integer counts: no tasks, no encodings, no models.
"""

from __future__ import annotations

from algolen.store.connection import NETWORK_FILE_SYSTEMS, filesystem_type, on_network
from algolen.store.owner import GRACE, this_process
from algolen.store.rows import (
    TRIAL_SEEDS_FROM,
    ArtifactRow,
    Checkpoint,
    Claim,
    ConfigRow,
    Conflict,
    Count,
    CurvePoint,
    CurveRow,
    Ending,
    EnvironmentRow,
    EvaluationRow,
    Point,
    PointKey,
    Purpose,
    RunRow,
    Status,
    StratumRow,
    is_trial,
)
from algolen.store.store import Store

__all__ = [
    "GRACE",
    "NETWORK_FILE_SYSTEMS",
    "TRIAL_SEEDS_FROM",
    "ArtifactRow",
    "Checkpoint",
    "Claim",
    "ConfigRow",
    "Conflict",
    "Count",
    "CurvePoint",
    "CurveRow",
    "Ending",
    "EnvironmentRow",
    "EvaluationRow",
    "Point",
    "PointKey",
    "Purpose",
    "RunRow",
    "Status",
    "Store",
    "StratumRow",
    "filesystem_type",
    "is_trial",
    "on_network",
    "this_process",
]
