"""Saying symbols again, in the same or the reverse order: `[EOS] c a b = c a b` and `[EOS] c a b = b a c`."""

from __future__ import annotations

import functools
import math
import string
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from algolen.batch import Batch, Structure
from algolen.errors import UserError
from algolen.random import Random
from algolen.suffix import EQUALS, FIRST, SYMBOLS, ids_in_order, one_of, segments, suffix_batch, within_table
from algolen.task import Layout, Task

EDGES = ("ascending", "descending", "one symbol", "two alternating", "half of it one run", "palindrome")
DISTINCT = 2
"""How many of `EDGES`, the first ones, have no symbol twice."""


@functools.cache
def _vocabulary(alphabet: int) -> tuple[str, ...]:
    """Letters, and after z a1, b1 and so on; cached because a large alphabet is asked for at every decoded token."""
    rounds, letters = range(-(-alphabet // 26)), string.ascii_lowercase
    return (*SYMBOLS, *[f"{letter}{again or ''}" for again in rounds for letter in letters][:alphabet])


@dataclass(frozen=True)
class Repeating(Task):
    """What copy and reverse have in common: L symbols, and the same symbols in an order that depends on L alone."""

    version = 1
    layout = Layout.SUFFIX
    test_sets: ClassVar[Mapping[str, str]] = {
        "random": "drawn as in training",
        "edge": "strings that random ones hardly ever are: ascending, descending (from z on to a and back); if symbols "
        "may repeat, also one symbol, two alternating, one long run, palindromes",
    }

    alphabet: Annotated[int, Field(ge=2, le=1_000, description="how many different symbols there are")] = 10
    unique: Annotated[
        bool, Field(description="no symbol comes twice, so that lengths go up to the size of the alphabet")
    ] = False

    @abstractmethod
    def again(self, symbols_BL: Tensor, length_B1: Tensor) -> Tensor:
        """(B, L) the first `length_B1` symbols of each row in the order of the answer."""

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return _vocabulary(self.alphabet)

    @property
    def structures(self) -> frozenset[str]:
        return frozenset({"coupled", "digit", "segment"})

    def check_length(self, length: int) -> None:
        super().check_length(length)
        if self.unique and length > self.alphabet:
            raise UserError(
                f"with {self.name}.unique=true no symbol comes twice, so the longest {self.name} is "
                f"{self.alphabet}: --set {self.name}.alphabet={length}"
            )

    def tape_length(self, length: int) -> int:
        return 2 * length + 2

    def largest_coupled_id(self, length: int) -> int:
        return length + 1

    def longest_number(self, length: int) -> int:
        return length

    # Sampling ---------------------------------------------------------------------------------------------------------

    def sample(self, lengths_B: Tensor, random: Random) -> Batch:
        longest = int(lengths_B.max())
        if self.unique:
            # The beginning of a random permutation, without sorting what a large alphabet leaves over.
            symbols_BL = random.fold("unique").bits(self.alphabet).topk(longest, dim=1, largest=False).indices
        else:
            symbols_BL = random.fold("symbols").integers(0, self.alphabet, longest)
        return self._batch(lengths_B, symbols_BL, torch.zeros_like(symbols_BL[:, 0]))

    def sample_test(self, test_set: str, lengths_B: Tensor, random: Random) -> Batch:
        if test_set != "edge":
            return super().sample_test(test_set, lengths_B, random)
        cases = edge_cases(lengths_B, self.alphabet, random)
        return self._batch(lengths_B, *one_of(cases[:DISTINCT] if self.unique else cases, random.fold("kind")))

    def stratum_name(self, test_set: str, stratum: int) -> str:
        return EDGES[stratum] if test_set == "edge" else ""

    def _batch(self, lengths_B: Tensor, symbols_BL: Tensor, stratum_B: Tensor) -> Batch:
        prompt_BL, length_B1 = symbols_BL + FIRST, lengths_B.to(symbols_BL.device)[:, None]
        return suffix_batch(self, lengths_B, prompt_BL, self.again(prompt_BL, length_B1), length_B1, stratum_B)

    # Structure --------------------------------------------------------------------------------------------------------

    @abstractmethod
    def coupled_ids(self, tokens_BT: Tensor, size_BA: Tensor) -> Tensor:
        """(B, T) coupled ids."""

    def structure(self, tokens_BT: Tensor, size_BA: Tensor) -> Structure:
        """Symbols count as digits, so that prompt and answer are a number each for encodings that look for numbers."""
        return Structure(
            coupled_BTA=self.coupled_ids(tokens_BT, size_BA)[..., None],
            digit_BT=tokens_BT > EQUALS,
            segment_BT=segments(tokens_BT),
        )

    # References -------------------------------------------------------------------------------------------------------

    def chance(self, length: int) -> float:
        """One of all strings of the length, or of those without a repeated symbol."""
        return 1 / math.perm(self.alphabet, length) if self.unique else float(self.alphabet) ** -length

    def input_blind(self, length: int) -> float:
        """Prompts are uniform over the strings that chance counts, and different prompts have different answers, so
        every answer is right for exactly one of them."""
        return self.chance(length)


@dataclass(frozen=True)
class Copy(Repeating):
    """Says L symbols again.

    The tape is `[EOS] symbols = symbols`; the answer and a last `[EOS]` are predicted. Coupled ids, with start 1: a
    symbol and its copy share one, 2 for the first, and `=` has 1, as in the published code.
    """

    name = "copy"
    source = "Cho et al. 2024, arXiv 2405.20671; unique symbols: Huang et al. 2025, arXiv 2410.02140"

    def again(self, symbols_BL: Tensor, length_B1: Tensor) -> Tensor:
        return symbols_BL

    def coupled_ids(self, tokens_BT: Tensor, size_BA: Tensor) -> Tensor:
        return ids_in_order(tokens_BT, size_BA)

    def oracle(self, symbols: Sequence[str]) -> Mapping[int, str]:
        equals = list(symbols).index("=")
        return dict(enumerate([*symbols[1:equals], "[EOS]"], start=equals))


@dataclass(frozen=True)
class Reverse(Repeating):
    """Says L symbols again, the last one first.

    The tape is `[EOS] symbols = answer`; the answer and a last `[EOS]` are predicted. Coupled ids, with start 1: a
    symbol and its copy share one, 1 for the prompt's first, and `=` has the one after the prompt's last, as in the
    published code.
    """

    name = "reverse"
    source = "Cho et al. 2024, arXiv 2405.20671; Delétang et al. 2023, arXiv 2207.02098"

    def again(self, symbols_BL: Tensor, length_B1: Tensor) -> Tensor:
        place_L = torch.arange(symbols_BL.shape[1], device=symbols_BL.device)
        return symbols_BL.gather(1, (length_B1 - 1 - place_L).clamp(min=0))

    def coupled_ids(self, tokens_BT: Tensor, size_BA: Tensor) -> Tensor:
        index_T = torch.arange(tokens_BT.shape[1], device=tokens_BT.device)
        id_BT = torch.where(index_T <= size_BA + 1, index_T, 2 * size_BA + 2 - index_T)
        return within_table(id_BT, tokens_BT, size_BA)

    def oracle(self, symbols: Sequence[str]) -> Mapping[int, str]:
        equals = list(symbols).index("=")
        return dict(enumerate([*reversed(symbols[1:equals]), "[EOS]"], start=equals))


def edge_cases(lengths_B: Tensor, alphabet: int, random: Random) -> tuple[Tensor, ...]:
    """The (B, L) symbols, counted from 0, of each of `EDGES`."""
    length_B1 = lengths_B.to(random.device)[:, None]
    place_L = torch.arange(int(lengths_B.max()), device=random.device)
    symbol_B1 = random.fold("symbol").integers(0, alphabet, 1)
    other_B1 = (symbol_B1 + random.fold("other").integers(1, alphabet, 1)) % alphabet
    random_BL = random.fold("symbols").integers(0, alphabet, len(place_L))
    half_B1 = (length_B1 + 1) // 2
    start_B1 = random.fold("start").integers(0, length_B1 - half_B1 + 1, 1)
    in_run_BL = (place_L >= start_B1) & (place_L < start_B1 + half_B1)
    mirrored_BL = torch.minimum(place_L, length_B1 - 1 - place_L).clamp(min=0)
    return (
        (symbol_B1 + place_L) % alphabet,
        (symbol_B1 - place_L) % alphabet,
        symbol_B1.expand(-1, len(place_L)),
        torch.where(place_L % 2 == 0, symbol_B1, other_B1),
        torch.where(in_run_BL, symbol_B1, random_BL),
        random_BL.gather(1, mirrored_BL),
    )
