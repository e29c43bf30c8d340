"""Counter-based randomness: every draw is a hash of (seed, purpose, step, example, slot).

Nothing here has state. The same counters give the same bits on every device and torch version, however a batch is
split and in whatever order draws are asked for, so a killed run needs no generator to go on, and the draws of many
runs can be made in one call by concatenating their keys.

The hash is splitmix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators"), computed on int64
tensors, whose products wrap modulo 2^64 as the unsigned original's do.
"""

from __future__ import annotations

import hashlib
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

    `example_B` holds one int64 key an example, `group_B` one key for each group of examples that share a draw (a
    training batch; a fixed block of a test set). Every method returns a tensor whose first dimension is the example,
    on the device of the keys. The same method with the same arguments returns the same values: draw independent
    things from children with names of their own (`random.fold("operands")`).
    """

    example_B: Tensor
    group_keys: Callable[[], Tensor]
    """Computes `group_B`, which most draws do without."""

    @classmethod
    def from_keys(cls, example_B: Tensor, group_B: Tensor) -> Random:
        """Draws from finished keys, such as those of several runs one after the other."""
        return cls(example_B, lambda: group_B)

    @classmethod
    def of(cls, *parts: int | str, examples_B: Tensor, groups_B: Tensor | int = 0) -> Random:
        """Draws named by `parts` (seed, purpose, step …), for examples and groups that are counted by integers."""
        root = key(*parts)

        def group_keys() -> Tensor:
            counted_B = torch.full_like(examples_B, groups_B) if isinstance(groups_B, int) else groups_B
            return _fold(_signed(root ^ _WEYL), counted_B)

        return cls(_fold(root, examples_B), group_keys)

    def __len__(self) -> int:
        return self.example_B.shape[0]

    @property
    def group_B(self) -> Tensor:
        return self.group_keys()

    @property
    def device(self) -> torch.device:
        return self.example_B.device

    def fold(self, name: int | str) -> Random:
        """Independent draws under a name."""
        word = _word(name)
        return Random(_mix(self.example_B ^ word), lambda: _mix(self.group_keys() ^ word))

    def rows(self, start: int, stop: int) -> Random:
        """The draws of the examples start … stop − 1."""
        return Random(self.example_B[start:stop], lambda: self.group_keys()[start:stop])

    def shared(self) -> Random:
        """Draws that all examples of a group have in common, for what a paper draws once a batch."""
        return Random.from_keys(group_B := self.group_keys(), group_B)

    def bits(self, *shape: int) -> Tensor:
        """(B, *shape) int64, all 64 bits uniform."""
        slots = 1
        for size in shape:
            slots *= size
        counter_S = torch.arange(1, slots + 1, device=self.device) * _signed(_WEYL)
        return _mix(self.example_B[:, None] + counter_S).reshape(len(self), *shape)

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
        return torch.argsort(self.bits(size), dim=-1, stable=True)

    def subset(self, count: int, size: int) -> Tensor:
        """(B, count) int64, each row `count` distinct values of 0 … size − 1 in increasing order."""
        if not 0 <= count <= size:
            raise ValueError(f"cannot draw {count} distinct values from {size}")
        return self.permutation(size)[:, :count].sort(dim=-1).values

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
