"""Checkpoints as safetensors: plain tensors and texts, never pickled, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from algolen.errors import UserError


@dataclass(frozen=True)
class Checkpoint:
    """Tensors by name, and what is known about them as texts."""

    tensors: Mapping[str, Tensor]
    facts: Mapping[str, str]

    def part(self, prefix: str) -> dict[str, Tensor]:
        """The tensors whose names begin with `prefix.`, without it."""
        start = prefix + "."
        return {name.removeprefix(start): tensor for name, tensor in self.tensors.items() if name.startswith(start)}


def write(path: Path, checkpoint: Checkpoint) -> str:
    """Writes a checkpoint so that a reader sees the old file or the new one, and nothing in between, even after a
    crash; returns its sha256."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in checkpoint.tensors.items()}
    data = save(tensors, dict(checkpoint.facts))
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return hashlib.sha256(data).hexdigest()


def read(path: Path, device: torch.device) -> Checkpoint:
    """Reads a checkpoint. Raises UserError if the file is not one."""
    try:
        # In one go: a file replaced between two looks would give the facts of one checkpoint and tensors of another.
        data = path.read_bytes()
        tensors = {name: tensor.to(device) for name, tensor in load(data).items()}
    except (SafetensorError, OSError) as error:
        raise UserError(f"'{path}' is not a readable checkpoint: {error}") from None
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return Checkpoint(tensors, header.get("__metadata__", {}))
