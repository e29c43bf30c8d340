"""Counter-based randomness: every draw is a hash of (seed, purpose, step, example, slot).

Nothing here has state. The same counters give the same bits on every device and torch version, however a batch is
split and in whatever order draws are asked for, so a killed run needs no generator to go on, and the draws of many
runs can be made in one call by concatenating their keys.

The hash is splitmix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators"), computed on int64
tensors, whose products wrap modulo 2^64 as the unsigned original's do.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_MASK = (1 << 64) - 1
_WEYL = 0x9E3779B97F4A7C15
_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def _signed(value: int) -> int:
    """The int64 that has the same 64 bits as the unsigned `value`."""
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


def _shift_right(bits: Tensor, count: int) -> Tensor:
    """Logical right shift: torch's own would copy the sign bit."""
    return (bits >> count) & ((1 << (64 - count)) - 1)


def _mix(bits: Tensor) -> Tensor:
    """The finalizer of splitmix64: a bijection of 64-bit words in which every input bit moves every output bit."""
    bits = (bits ^ _shift_right(bits, 30)) * _signed(_MULTIPLIERS[0])
    bits = (bits ^ _shift_right(bits, 27)) * _signed(_MULTIPLIERS[1])
    return bits ^ _shift_right(bits, 31)


def _word(part: int | str) -> int:
    """A 64-bit word for a part of a key; texts and integers never meet."""
    data = f"{type(part).__name__}:{part}".encode()
    return _signed(int.from_bytes(hashlib.sha256(data).digest()[:8], "little"))


def key(*parts: int | str) -> int:
    """One 64-bit key (as a signed integer) from the parts that name a stream of draws, such as a seed and a purpose."""
    return _word("/".join(f"{type(part).__name__}:{part}" for part in parts))


@dataclass(frozen=True, slots=True)
class Random:
    """The draws of a batch of examples.

    `key_R` holds one int64 key an example, `group_keys` computes one for each group of examples that share a draw (a
    training batch; a fixed block of a test set). Every method returns a tensor whose first dimension is the example,
    on the device of the keys; where all examples share the draw it is one row, expanded. The same method with the same
    arguments returns the same values: draw independent things from children with names of their own
    (`random.fold("operands")`).
    """

    key_R: Tensor
    group_keys: Callable[[], Tensor]
    """Computes the keys of the examples' groups, (B,) or (1,) for a single group; most draws do without."""
    row_B: Tensor | None = None
    """Which of `key_R` is an example's, where examples share keys; None where each has its own."""

    @classmethod
    def from_keys(cls, example_B: Tensor, group_B: Tensor) -> Random:
        """Draws from finished keys, such as those of several runs one after the other."""
        return cls(example_B, lambda: group_B)

    @classmethod
    def of(cls, *parts: int | str, examples_B: Tensor, groups_B: Tensor | int = 0) -> Random:
        """Draws named by `parts` (seed, purpose, step …), for examples and groups that are counted by integers."""
        root = key(*parts)

        def group_keys() -> Tensor:
            counted_B = torch.full_like(examples_B[:1], groups_B) if isinstance(groups_B, int) else groups_B
            return _fold(_signed(root ^ _WEYL), counted_B)

        return cls(_fold(root, examples_B), group_keys)

    def __len__(self) -> int:
        return len(self.key_R if self.row_B is None else self.row_B)

    @property
    def example_B(self) -> Tensor:
        return self._spread(self.key_R)

    @property
    def group_B(self) -> Tensor:
        return self.group_keys().expand(len(self))

    @property
    def device(self) -> torch.device:
        return self.key_R.device

    def fold(self, name: int | str) -> Random:
        """Independent draws under a name."""
        word = _word(name)
        return Random(_mix(self.key_R ^ word), lambda: _mix(self.group_keys() ^ word), self.row_B)

    def rows(self, start: int, stop: int) -> Random:
        """The draws of the examples start … stop − 1."""

        def group_keys() -> Tensor:
            keys = self.group_keys()
            return keys if len(keys) == 1 else keys[start:stop]

        if self.row_B is not None:
            return Random(self.key_R, group_keys, self.row_B[start:stop])
        return Random(self.key_R[start:stop], group_keys)

    def shared(self) -> Random:
        """Draws that all examples of a group have in common, for what a paper draws once a batch; computed once a
        group."""
        keys = self.group_keys()
        if len(keys) == 1:
            return Random(keys, lambda: keys, torch.zeros(len(self), dtype=torch.int64, device=self.device))
        key_R, row_B = torch.unique(keys, return_inverse=True)
        return Random(key_R, lambda: keys, row_B)

    def _spread(self, drawn_R: Tensor) -> Tensor:
        """What was drawn for each key, handed to the examples; (B, …)."""
        if self.row_B is None:
            return drawn_R
        if len(drawn_R) == 1:
            return drawn_R.expand(len(self), *drawn_R.shape[1:])
        return drawn_R[self.row_B]

    def _bits(self, *shape: int) -> Tensor:
        """(R, *shape) int64, for each key."""
        slots = math.prod(shape)
        counter_S = torch.arange(1, slots + 1, device=self.device) * _signed(_WEYL)
        return _mix(self.key_R[:, None] + counter_S).reshape(len(self.key_R), *shape)

    def bits(self, *shape: int) -> Tensor:
        """(B, *shape) int64, all 64 bits uniform."""
        return self._spread(self._bits(*shape))

    def integers(self, low: int | Tensor, high: int | Tensor, *shape: int) -> Tensor:
        """(B, *shape) int64, uniform over low … high − 1; bounds may be tensors that broadcast.

        The range must be smaller than 2^31; its values then differ in probability by less than range / 2^32.
        """
        drawn: Tensor = low + ((_shift_right(self.bits(*shape), 32) * (high - low)) >> 32)
        return drawn

    def uniform(self, *shape: int) -> Tensor:
        """(B, *shape) float32 in [0, 1): multiples of 2^−24, exact on every device."""
        return _shift_right(self.bits(*shape), 40).to(torch.float32) * 2.0**-24

    def bernoulli(self, probability: float, *shape: int) -> Tensor:
        """(B, *shape) bool, true with the given probability to within 2^−32."""
        return _shift_right(self.bits(*shape), 32) < round(probability * 2**32)

    def choice(self, weights: Sequence[float], *shape: int) -> Tensor:
        """(B, *shape) int64, index i with probability weights[i] / sum(weights) to within 2^−32."""
        total, running = sum(weights), 0.0
        if not total > 0 or min(weights) < 0:
            raise ValueError(f"weights must be non-negative with a positive sum, not {list(weights)}")
        thresholds = []
        for weight in weights[:-1]:
            running += weight
            thresholds.append(round(running / total * 2**32))
        edges_W = torch.tensor(thresholds, dtype=torch.int64, device=self.device)
        return torch.bucketize(_shift_right(self.bits(*shape), 32), edges_W, right=True)

    def permutation(self, size: int) -> Tensor:
        """(B, size) int64, each row a uniform permutation of 0 … size − 1."""
        return self._spread(torch.argsort(self._bits(size), dim=-1, stable=True))

    def selection(self, count: int, size: int, *shape: int) -> Tensor:
        """(B, *shape, count) int64, each row `count` distinct values of 0 … size − 1 in random order; fewer are the
        first of more."""
        return self._spread(self._selection(count, size, *shape))

    def subset(self, count: int, size: int, *shape: int) -> Tensor:
        """(B, *shape, count) int64, each row `count` distinct values of 0 … size − 1 in increasing order."""
        return self._spread(self._selection(count, size, *shape).sort(dim=-1).values)

    def _selection(self, count: int, size: int, *shape: int) -> Tensor:
        if not 0 <= count <= size:
            raise ValueError(f"cannot draw {count} distinct values from {size}")
        return self._bits(*shape, size).topk(count, dim=-1, largest=False, sorted=True).indices

    def normal(self, *shape: int) -> Tensor:
        """(B, *shape) float32, standard normal, by inversion in float64.

        Meant for initialisation, on the CPU: unlike the other draws it passes through a transcendental function, which
        devices round differently in the last place.
        """
        # 52 bits and a half fill a float64; with one more the largest word rounds up to 1, whose normal is infinite.
        centred = (_shift_right(self.bits(*shape), 12).to(torch.float64) + 0.5) * 2.0**-52
        normal: Tensor = torch.special.ndtri(centred)
        return normal.to(torch.float32)


def _fold(root: int, counters_B: Tensor) -> Tensor:
    return _mix(_mix(counters_B * _signed(_WEYL) + root) ^ root)
