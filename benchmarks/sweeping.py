"""A sweep at length 40 against greedy decoding, with a key–value cache and without.

Speed does not depend on what weights are, so the model is untrained; its predictions are compared token by token.
nope is used, since there a prediction depends on the tokens alone: ids that are read off the tape, as coupled ones are,
differ after a first mistake. The rivals get finished batches; ours samples its test set, counts and takes the sha256.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from algolen.evaluation import greedy
from algolen.evaluation.sweep import evaluate
from algolen.evaluation.test_sets import TestSet
from benchmarks.measuring import Bar, duel
from benchmarks.rival_decoding import with_cache, with_weights_of, without_cache
from benchmarks.training import CPU, plan

LENGTH, EXAMPLES = 40, 64


def bars() -> Iterator[Bar]:
    """Decoding over a sweep, example by example and a batch at a time."""
    planned = plan("nope")
    model = planned.model(0, CPU)
    rival = with_weights_of(model, positions=0)
    test_set = TestSet(planned.task, "random", LENGTH, EXAMPLES, seed=0)
    batch, positions = test_set.batch(0, EXAMPLES, CPU), test_set.positions(0, EXAMPLES, CPU)
    first, answer = int(batch.scored_BT[0].int().argmax()), int(batch.scored_BT[0].sum())
    prompts_BP = batch.tokens_BT[:, : first + 1]

    def sweep(block: int) -> None:
        evaluate(model, test_set, CPU)

    def cached_singly(block: int) -> torch.Tensor:
        return torch.cat([with_cache(rival, prompt_1P, None, answer) for prompt_1P in prompts_BP[:, None]])

    def cached(block: int) -> torch.Tensor:
        return with_cache(rival, prompts_BP, None, answer)

    def uncached(block: int) -> torch.Tensor:
        return without_cache(rival, prompts_BP, None, answer)

    def ours_uncached(block: int) -> torch.Tensor:
        return greedy.decode(model, planned.task, batch, positions)

    decoded_BA = ours_uncached(0)[:, first : first + answer]
    for name, predict in {"singly": cached_singly, "batch": cached, "uncached": uncached}.items():
        if not torch.equal(predict(0), decoded_BA):
            raise AssertionError(f"decoding ({name}) predicts other tokens than algolen.evaluation.greedy")

    def over_sweep(what: str, decode: Callable[[int], object], least: float | None, blocks: int) -> Bar:
        timed = duel(decode, sweep, blocks)
        one, swept = timed.first_seconds / EXAMPLES * 1e3, timed.second_seconds / EXAMPLES * 1e3
        note = f"{one:.1f} ms an example, sweep {swept:.1f}"
        return Bar(what, timed.ratio, "×", least=least, note=note)

    yield over_sweep("decoding with cache, one at a time, over a sweep", cached_singly, 5, blocks=9)
    # Shown without a bar: with a cache, decoding a full batch is the arithmetic of one pass cut into slices, so on a
    # processor that a slice keeps busy there is nothing to win. A sweep wins where slices are too small: few examples
    # at a time, or a GPU.
    yield over_sweep(f"decoding with cache, {EXAMPLES} at a time, over a sweep", cached, None, blocks=15)
    yield over_sweep(f"decoding without cache, {EXAMPLES} at a time, over a sweep", uncached, 20, blocks=3)
    yield over_sweep("algolen.evaluation.greedy, the same, over a sweep", ours_uncached, 20, blocks=3)
