"""What a forward pass is for, as far as random positions are concerned."""

from __future__ import annotations

import enum


class Phase(enum.Enum):
    """Training, or a test with one of the two policies for encodings that draw positions at test as well.

    TEST: drawn, one draw for each fixed block of examples. EVEN: in the middle of what could be drawn, evenly spaced.
    Encodings that draw in training only do the same in both.
    """

    TRAINING = "training"
    TEST = "drawn"
    EVEN = "even"

    @property
    def training(self) -> bool:
        return self is Phase.TRAINING
