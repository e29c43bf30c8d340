"""A task of one's own: `[EOS] c a b = c a b [EOS]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from algolen.batch import Batch, Structure
from algolen.random import Random
from algolen.task import PADDING, Layout, Task

EOS, EQUALS, FIRST = 1, 2, 3


@dataclass(frozen=True)
class Copying(Task):
    """Writes L random letters again, and a last `[EOS]`."""

    name = "copying"
    version = 1
    source = "an example"
    layout = Layout.SUFFIX

    letters: Annotated[int, Field(ge=2, le=26, description="how many different letters there are")] = 10

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return ("[PAD]", "[EOS]", "=", *"abcdefghijklmnopqrstuvwxyz"[: self.letters])

    @property
    def structures(self) -> frozenset[str]:
        return frozenset({"coupled"})

    def tape_length(self, length: int) -> int:
        return 2 * length + 2

    def largest_coupled_id(self, length: int) -> int:
        return length + 1

    def sample(self, lengths_B: Tensor, random: Random) -> Batch:
        longest = int(lengths_B.max())
        length_B1 = lengths_B.to(random.device)[:, None]
        letters_BL = random.fold("letters").integers(FIRST, FIRST + self.letters, longest)
        # One token more than the tape: what a position reads is tape[:-1], what it predicts is tape[1:].
        index_T = torch.arange(self.tape_length(longest) + 1, device=random.device)
        place_BT = torch.where(index_T <= length_B1, index_T - 1, index_T - length_B1 - 2)
        tape_BT = letters_BL.gather(1, place_BT.clamp(0, longest - 1))
        tape_BT = torch.where(index_T == length_B1 + 1, EQUALS, tape_BT)
        tape_BT = torch.where((index_T == 0) | (index_T == 2 * length_B1 + 2), EOS, tape_BT)
        valid_BT = index_T[:-1] < 2 * length_B1 + 2
        scored_BT = valid_BT & (index_T[:-1] > length_B1)
        tokens_BT = torch.where(valid_BT, tape_BT[:, :-1], PADDING)
        return Batch(
            tokens_BT=tokens_BT,
            targets_BT=tape_BT[:, 1:],
            trained_BT=scored_BT,
            scored_BT=scored_BT,
            unit_BT=scored_BT.long() - 1,  # one unit, the whole answer: 0 where scored, −1 elsewhere
            stratum_BT=torch.zeros_like(tokens_BT),
            valid_BT=valid_BT,
            size_BA=length_B1,
            structure=self.structure(tokens_BT, length_B1),
            padded=int(lengths_B.min()) != longest,
            predicted_from=int(lengths_B.min()) + 1,
        )

    def structure(self, tokens_BT: Tensor, size_BA: Tensor) -> Structure:
        """A letter and its copy share an id, 2 for the first; `=` has id 1, so that id n predicts id n + 1."""
        index_T = torch.arange(tokens_BT.shape[1], device=tokens_BT.device)
        id_BT = torch.where(index_T <= size_BA, index_T + 1, index_T - size_BA)
        return Structure(coupled_BTA=(id_BT * (index_T > 0) * (tokens_BT != PADDING))[..., None])

    def oracle(self, symbols: Sequence[str]) -> Mapping[int, str]:
        equals = list(symbols).index("=")
        return dict(enumerate([*symbols[1:equals], "[EOS]"], start=equals))

    def chance(self, length: int) -> float:
        return float(self.letters) ** -length

    def input_blind(self, length: int) -> float:
        return self.chance(length)
