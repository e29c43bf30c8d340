"""The contract of a task.

A task is a frozen dataclass in a file of its own in `tasks/`; its fields are its options. It knows nothing of
encodings or models. To write one: name it, say how its tape is laid out, list its vocabulary, and write `sample`
(whole tensors, no loop over examples), `structure` (what tokens mean, read off the tokens) and `oracle` (the answer
again, slowly, in plain Python; tests compare the two on thousands of examples).
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from algolen.batch import Batch, Structure
from algolen.errors import UserError
from algolen.random import Random

PADDING = 0
"""The token of padding: index 0 of every vocabulary."""


class Layout(enum.Enum):
    """Where a task's answers stand on its tape."""

    SUFFIX = "suffix"
    """Causal: a prompt, then an answer that is fed back token by token; what is scored runs to the end of the tape."""
    LABELS = "labels"
    """Causal: labels to predict at given positions of a tape that is all input."""
    SLOTS = "slots"
    """Bidirectional: an input, then empty slots in which the answer is predicted all at once."""

    @property
    def causal(self) -> bool:
        return self is not Layout.SLOTS


@dataclass(frozen=True)
class Task(ABC):
    """An algorithmic task of a nominal length that can be trained on and tested at any length.

    name: how users call it. version: raised whenever what it samples changes. source: where the task is defined.
    test_sets: name of each kind of test set and what is in it; "random" comes first. axes: the integer or float options
    (some may be None at first) along which a sweep may vary a test besides length; the vocabulary must not depend on
    them.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    source: ClassVar[str]
    axes: ClassVar[tuple[str, ...]] = ()
    test_sets: ClassVar[Mapping[str, str]] = {"random": "drawn as in training"}

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """Where the answers stand. `layout = Layout.SUFFIX` in the class is enough where no option changes it."""

    @property
    @abstractmethod
    def vocabulary(self) -> tuple[str, ...]:
        """The symbol of each token; index 0 is the padding."""

    @property
    def structures(self) -> frozenset[str]:
        """Which parts of `Structure` the task supplies: any of "coupled", "digit", "segment"."""
        return frozenset()

    @property
    def smallest_length(self) -> int:
        return 1

    def check_length(self, length: int) -> None:
        """Raises UserError, naming lengths nearby that there are, if no example has that nominal length."""
        if length < self.smallest_length:
            raise UserError(f"the shortest {self.name} is {self.smallest_length}")

    @property
    def coupled_axes(self) -> int:
        """How many axes coupled ids have."""
        return 1

    @abstractmethod
    def tape_length(self, length: int) -> int:
        """The longest tape (in tokens) of an example of that nominal length."""

    def largest_coupled_id(self, length: int) -> int:
        """The largest coupled id of examples of that nominal length, with start 1."""
        raise NotImplementedError(f"task {self.name} couples no positions")

    def longest_number(self, length: int) -> int:
        """The longest run of digits (see `Structure.digit_BT`) in examples of that nominal length."""
        return self.tape_length(length)

    @property
    def structure_is_causal(self) -> bool:
        """Whether a token's structure follows from the prompt and the tokens before it.

        Where it does not (an id that betrays how long the answer will be), teacher forcing tells the model something
        that decoding could not, and results are marked.
        """
        return True

    @abstractmethod
    def sample(self, lengths_B: Tensor, random: Random) -> Batch:
        """One example for each nominal length of `lengths_B` (int64, on the CPU); tensors on the device of `random`."""

    def sample_test(self, test_set: str, lengths_B: Tensor, random: Random) -> Batch:
        """Examples of one of `test_sets`."""
        assert test_set == "random", test_set
        return self.sample(lengths_B, random)

    @abstractmethod
    def structure(self, tokens_BT: Tensor, size_BA: Tensor) -> Structure:
        """The structure of tapes, read off their tokens alone; `size_BA` as in `Batch`.

        Also called on prefixes of tapes, while an answer is being decoded.
        """

    @abstractmethod
    def oracle(self, symbols: Sequence[str]) -> Mapping[int, str]:
        """For each scored position of a tape, the symbol to be predicted there, derived slowly and obviously.

        symbols: an example's symbols, without padding; those that are fed back as the answer are not looked at.
        """

    @abstractmethod
    def chance(self, length: int) -> float:
        """The probability that a uniform guess over the answers of the right form gets a scored unit right."""

    @abstractmethod
    def input_blind(self, length: int) -> float:
        """The exact match that no answer can exceed which knows the layout and the nominal length only."""

    def stratum_name(self, test_set: str, stratum: int) -> str:
        """The label of a stratum in reports."""
        return ""

    def encode(self, symbols: Sequence[str]) -> list[int]:
        """The tokens of symbols."""
        index = {symbol: token for token, symbol in enumerate(self.vocabulary)}
        return [index[symbol] for symbol in symbols]

    def decode(self, tokens: Sequence[int]) -> list[str]:
        """The symbols of tokens."""
        return [self.vocabulary[token] for token in tokens]
