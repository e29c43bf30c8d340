"""Flip-flop language modelling: `w 0 i 1 r 0 i 0 w 1 i 0 r`, and then `1`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from algolen.batch import Batch, Structure
from algolen.errors import UserError
from algolen.random import Random
from algolen.task import PADDING, Layout, Task

WRITE, READ, IGNORE, FIRST = 1, 2, 3, 4
STRATA = ("interior read", "final read")


@dataclass(frozen=True)
class FlipFlop(Task):
    """Recalls the symbol last written, behind others that are to be ignored.

    A sequence has the nominal length T, which is even (512 in the publication), and is made of pairs of an instruction
    and a symbol: `w` writes its symbol, `i` is ignored, and the symbol after `r` repeats what was last written. The
    first instruction is `w`, the last is `r`, the others are drawn independently; symbols after `w` and `i` are
    uniform. Nothing marks beginning or end. The tape has T − 1 tokens, for the last symbol is only predicted.

    FFL(T, p_w, p_r, p_i) of the publication is `write`, what is left, and `ignore`. Its shorthand FFL(p_i), with as
    many writes as reads, is `ignore` alone: it trains on 0.8 and tests on 0.98 (sparse) and 0.1 (dense). Reads are
    scored one by one. The last one is forced, so that it makes up more than a quarter of the sparse reads: it has a
    stratum of its own. No coupled ids are published.
    """

    name = "flip-flop"
    version = 1
    source = "Liu et al. 2023, arXiv 2306.00946"
    layout = Layout.LABELS
    axes = ("ignore", "write")
    test_sets: ClassVar[Mapping[str, str]] = {
        "random": "drawn as in training",
        "far": "one write, at the beginning, and one read, at the end; all between is to be ignored",
    }

    ignore: Annotated[float, Field(ge=0, le=1, description="probability of an instruction to ignore its symbol")] = 0.8
    write: Annotated[
        float | None,
        Field(ge=0, le=1, description="probability of a write; what is left is for reads; none: as many as reads"),
    ] = None
    symbols: Annotated[int, Field(ge=2, le=1024, description="how many different symbols can be written")] = 2
    loss: Annotated[
        Literal["reads", "all"], Field(description="trained on reads (clean) or on every token (generative)")
    ] = "reads"

    def __post_init__(self) -> None:
        if self.write is not None and self.write + self.ignore > 1 + 1e-9:
            raise UserError(
                f"flip-flop.write={self.write:g} and flip-flop.ignore={self.ignore:g} are more than 1 together; "
                f"set flip-flop.write to at most {1 - self.ignore:g}"
            )

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return ("[PAD]", "w", "r", "i", *map(str, range(self.symbols)))

    @property
    def smallest_length(self) -> int:
        return 4

    def check_length(self, length: int) -> None:
        super().check_length(length)
        if length % 2:
            raise UserError(
                f"a {self.name} sequence is made of pairs, so its length is even: {length - 1:,} or {length + 1:,}; "
                f"a range of even lengths is written 4:64:2"
            )

    def tape_length(self, length: int) -> int:
        return length - 1

    @property
    def probabilities(self) -> tuple[float, float, float]:
        """Of `w`, `r` and `i`, where no instruction is forced."""
        write = (1 - self.ignore) / 2 if self.write is None else self.write
        return write, max(0.0, 1 - self.ignore - write), self.ignore

    def sample(self, lengths_B: Tensor, random: Random) -> Batch:
        drawn_BN = random.fold("instructions").choice(self.probabilities, int(lengths_B.max()) // 2)
        return self._batch(lengths_B, drawn_BN + WRITE, random)

    def sample_test(self, test_set: str, lengths_B: Tensor, random: Random) -> Batch:
        if test_set == "far":
            ignored_BN = torch.full((len(random), int(lengths_B.max()) // 2), IGNORE, device=random.device)
            return self._batch(lengths_B, ignored_BN, random)
        return super().sample_test(test_set, lengths_B, random)

    def _batch(self, lengths_B: Tensor, instruction_BN: Tensor, random: Random) -> Batch:
        """The batch of given instructions, but for the first and the last."""
        longest = int(lengths_B.max())
        length_B1 = lengths_B.to(random.device)[:, None]
        pair_N = torch.arange(longest // 2, device=random.device)
        instruction_BN = torch.where(pair_N == length_B1 // 2 - 1, READ, instruction_BN)
        instruction_BN = torch.where(pair_N == 0, WRITE, instruction_BN)
        symbol_BN = random.fold("symbols").integers(FIRST, FIRST + self.symbols, len(pair_N))
        written_BN = torch.where(instruction_BN == WRITE, pair_N, 0).cummax(dim=1).values
        symbol_BN = torch.where(instruction_BN == READ, symbol_BN.gather(1, written_BN), symbol_BN)
        tape_BT = torch.stack([instruction_BN, symbol_BN], dim=-1).flatten(1)

        index_T = torch.arange(longest - 1, device=random.device)
        valid_BT = index_T < length_B1 - 1
        tokens_BT = torch.where(valid_BT, tape_BT[:, :-1], PADDING)
        scored_BT = tokens_BT == READ
        return Batch(
            tokens_BT=tokens_BT,
            targets_BT=torch.where(valid_BT, tape_BT[:, 1:], PADDING),
            trained_BT=scored_BT if self.loss == "reads" else valid_BT,
            scored_BT=scored_BT,
            unit_BT=torch.where(scored_BT, scored_BT.cumsum(dim=1) - 1, -1),
            stratum_BT=(scored_BT & (index_T == length_B1 - 2)).long(),
            valid_BT=valid_BT,
            size_BA=length_B1,
            structure=self.structure(tokens_BT, length_B1),
            padded=int(lengths_B.min()) != longest,
            predicted_from=2 if self.loss == "reads" else 0,
        )

    def stratum_name(self, test_set: str, stratum: int) -> str:
        return STRATA[stratum]

    def structure(self, tokens_BT: Tensor, size_BA: Tensor) -> Structure:
        return Structure()

    # References -------------------------------------------------------------------------------------------------------

    def expected_reads(self, length: int) -> float:
        """How many reads a random sequence has on average: the last one and those drawn between it and the first."""
        return 1 + (length // 2 - 2) * self.probabilities[1]

    def oracle(self, symbols: Sequence[str]) -> Mapping[int, str]:
        answers, register = {}, ""
        for place in range(0, len(symbols), 2):
            if symbols[place] == "w":
                register = symbols[place + 1]
            elif symbols[place] == "r":
                answers[place] = register
        return answers

    def chance(self, length: int) -> float:
        """One of the symbols that can be written."""
        return 1 / self.symbols

    def input_blind(self, length: int) -> float:
        """The symbol of the last write is uniform whatever the instructions are, so no fixed answer beats another."""
        return 1 / self.symbols
