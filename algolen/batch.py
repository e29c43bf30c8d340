"""What a task hands to everything else: tokens, what to predict where, and the structure encodings may use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

STRUCTURES = ("coupled", "digit", "segment")


@dataclass(frozen=True, slots=True)
class Structure:
    """What a task knows about the roles of its tokens, for encodings that ask for it; None where it defines none.

    coupled_BTA: ids by the task's published coupling rule, A axes, before any random start (the start is 1); tokens
        that belong together share an id; 0 for tokens outside the rule (beginning, end, padding).
    digit_BT: True for tokens that are digits of a number (Abacus counts runs of them).
    segment_BT: how many separators stand before a token (BiPE); a separator belongs to the segment it closes.
    """

    coupled_BTA: Tensor | None = None
    digit_BT: Tensor | None = None
    segment_BT: Tensor | None = None

    def has(self, name: str) -> bool:
        """Whether the structure of that name (one of `STRUCTURES`) is there."""
        return {"coupled": self.coupled_BTA, "digit": self.digit_BT, "segment": self.segment_BT}[name] is not None


@dataclass(frozen=True, slots=True)
class Batch:
    """B examples on tapes of T tokens, padded on the right.

    tokens_BT: int64, what the model reads.
    targets_BT: int64, what each position predicts. The task does the shifting, never the model.
    trained_BT: bool, positions whose prediction enters the loss.
    scored_BT: bool, positions whose prediction is scored.
    unit_BT: int64, which scored positions of an example count together (a whole answer, one read), from 0; −1 where
        nothing is scored.
    stratum_BT: int64, the label (see `Task.stratum_name`) under which a scored position's unit is reported.
    valid_BT: bool, False on padding.
    size_BA: int64, the nominal size of the problem along each of its axes, a function of the prompt; one axis, the
        nominal length, for most tasks.
    structure: what encodings may use.
    padded: whether any position may be padding; known on the host, so that nobody asks the device.
    predicted_from: no position before it is trained or scored; known on the host. The model's last block and what
        follows need not be computed there. 0 is always right, and slower.
    """

    tokens_BT: Tensor
    targets_BT: Tensor
    trained_BT: Tensor
    scored_BT: Tensor
    unit_BT: Tensor
    stratum_BT: Tensor
    valid_BT: Tensor
    size_BA: Tensor
    structure: Structure
    padded: bool
    predicted_from: int = 0

    def __len__(self) -> int:
        return self.tokens_BT.shape[0]

    @property
    def tape_length(self) -> int:
        return self.tokens_BT.shape[1]

    def rows(self, start: int, stop: int) -> Batch:
        """The examples start … stop − 1, on tapes of unchanged length."""
        return self._map(lambda tensor: tensor[start:stop])

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on a device."""
        return self._map(lambda tensor: tensor.to(device))

    def _map(self, transform: Callable[[Tensor], Tensor]) -> Batch:
        changed = {
            field.name: transform(value)
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), Tensor)
        }
        structure = {
            field.name: transform(value)
            for field in fields(self.structure)
            if (value := getattr(self.structure, field.name)) is not None
        }
        return replace(self, structure=Structure(**structure), **changed)  # type: ignore[arg-type]
