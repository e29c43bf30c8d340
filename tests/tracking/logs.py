"""Reading back what the W&B client wrote: `run-ID.wandb` is a log of protocol-buffer records in LevelDB's format."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wandb.proto import wandb_internal_pb2

FILE_HEADER, BLOCK, CHUNK_HEADER = 7, 32768, 7
WHOLE, LAST = 1, 4


@dataclass
class Log:
    """One W&B run as it lies on disk. history: one row for each call of `log`."""

    folder: Path
    run: Any = None
    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    step_metrics: dict[str, str] = field(default_factory=dict)
    exit_code: int | None = None

    def curve(self, name: str) -> list[tuple[int, float]]:
        """What was logged under a name, with the step it was logged for."""
        return [(row["step"], row[name]) for row in self.history if name in row]

    def table(self, name: str) -> tuple[list[str], list[list[Any]]]:
        """The columns and rows of the only table logged under a name."""
        (row,) = [row for row in self.history if name in row]
        stored = json.loads((self.folder / "files" / row[name]["path"]).read_text())
        return stored["columns"], stored["data"]


def logs(folder: Path) -> list[Log]:
    """The runs that were logged beside a database, in the order they were begun."""
    return [read(path) for path in sorted(folder.glob("wandb/*run-*/run-*.wandb"))]


def read(path: Path) -> Log:
    """A run's log."""
    log = Log(path.parent)
    for data in _records(path.read_bytes()):
        record = wandb_internal_pb2.Record.FromString(data)
        kind = record.WhichOneof("record_type")
        if kind == "run":
            log.run = record.run
            _update(log.config, record.run.config.update)
        elif kind == "config":
            _update(log.config, record.config.update)
        elif kind == "summary":
            _update(log.summary, record.summary.update)
        elif kind == "history":
            row: dict[str, Any] = {}
            _update(row, record.history.item)
            log.history.append(row)
        elif kind == "metric":
            log.step_metrics[record.metric.glob_name] = record.metric.step_metric
        elif kind == "exit":
            log.exit_code = record.exit.exit_code
    return log


def _update(values: dict[str, Any], items: Any) -> None:
    for item in items:
        *path, last = item.nested_key or [item.key]
        inner = values
        for name in path:
            inner = inner.setdefault(name, {})
        inner[last] = json.loads(item.value_json)


def _records(data: bytes) -> Iterator[bytes]:
    place, record = FILE_HEADER, b""
    while place + CHUNK_HEADER <= len(data):
        if BLOCK - place % BLOCK < CHUNK_HEADER:
            place += BLOCK - place % BLOCK  # the rest of a block that has no room for a header is empty
            continue
        _, length, kind = struct.unpack_from("<IHB", data, place)
        place += CHUNK_HEADER
        record += data[place : place + length]
        place += length
        if kind in (WHOLE, LAST):
            yield record
            record = b""
