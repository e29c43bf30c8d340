"""The length sweep: one teacher-forced pass over each fixed test set.

Where the answer is a fed-back suffix and ids and statistics follow from the prompt and earlier tokens, an answer is
exactly right under teacher forcing if and only if greedy decoding produces it: as long as every token so far was
right, both read the same tape. `greedy` decodes for real; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from algolen.evaluation.counting import Counts, count, merge
from algolen.evaluation.test_sets import Fingerprint, TestSet
from algolen.model import Transformer
from algolen.phase import Phase

CPU_BYTES = 2**29
"""What the activations of one evaluation batch may take on a CPU; larger batches are slower there, not faster."""


@dataclass(frozen=True)
class Point:
    """The outcome of one test set: counts by stratum and the sha256 of its examples."""

    test_set: TestSet
    counts: dict[int, Counts]
    sha256: str

    @property
    def total(self) -> Counts:
        """The counts over all strata."""
        return sum(self.counts.values(), Counts())


def evaluate(
    model: Transformer,
    test_set: TestSet,
    device: torch.device,
    bytes_allowed: int | None = None,
    phase: Phase = Phase.TEST,
    advance: Callable[[int], None] = lambda examples: None,
) -> Point:
    """The counts of a model on a test set.

    bytes_allowed: for the activations of a batch; a quarter of the free memory on a GPU if None. Halves the batch when
    memory runs out. phase: the policy of positions. advance: told how many examples were done.
    """
    if bytes_allowed is None:
        bytes_allowed = torch.cuda.mem_get_info(device)[0] // 4 if device.type == "cuda" else CPU_BYTES
    tape = test_set.task.tape_length(test_set.length)
    size = max(1, min(test_set.examples, bytes_allowed // activation_bytes(model, tape)))
    fingerprint, parts, start = Fingerprint(tape), [], 0
    while start < test_set.examples:
        stop = min(start + size, test_set.examples)
        try:
            batch = test_set.batch(start, stop, device)
            with torch.inference_mode():
                draws = model.draw(batch, test_set.positions(start, stop, device), phase)
                logits_BTV, _ = model.logits_and_aux_loss(batch, draws, batch.predicted_from)
                parts.append(count(logits_BTV, batch))
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if size == 1 or not _out_of_memory(error):
                raise
            size = size // 2
            continue
        fingerprint.update(batch)
        advance(stop - start)
        start = stop
    return Point(test_set, merge(parts), fingerprint.hexdigest())


def activation_bytes(model: Transformer, tape: int) -> int:
    """Roughly what the activations of one example take in a forward pass without gradients."""
    config = model.config
    by_token = config.width * 8 + round(config.ff_ratio * config.width) * 4
    heads = model.attention_heads
    by_pair = 6 * heads * tape if model.encodings.touches_logits else 0
    return 4 * tape * (by_token + by_pair)


def _out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out; on the CPU torch says so in the text of a RuntimeError."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)
