"""One training step. The loss is a pure function of (parameters, batch, draws); its gradient makes the update."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from algolen.batch import Batch
from algolen.config import TrainConfig
from algolen.model import Draws, Passes, Transformer
from algolen.phase import Phase
from algolen.random import Random
from algolen.training.data import Micro


def loss_sum(model: Transformer, batch: Batch, draws: Draws, passes: Passes | None = None) -> Tensor:
    """The cross-entropy summed over trained positions, plus the encodings' extra loss weighed like one more mean."""
    first = batch.predicted_from
    logits_BTV, aux = model.logits_and_aux_loss(batch, draws, first, passes)
    targets_BT = torch.where(batch.trained_BT, batch.targets_BT, -100)[:, first:]
    total = F.cross_entropy(logits_BTV.flatten(0, 1).float(), targets_BT.flatten(), reduction="sum")
    return total if aux is None else total + aux * batch.trained_BT.sum()


def progressive_passes(step: int, loops: int, most: int | None) -> Passes:
    """The passes after which the progressive loss of a step is taken: n < loops of them without gradient, then k from 1
    to the loops that are left, or to `most`, with it; both uniform.

    Bansal et al. 2022 (arXiv 2202.05826), section 3.2. A function of the step alone, so that runs which differ in their
    seeds make the same passes and can be trained together.
    """
    random = Random.of(0, "progressive", examples_B=torch.tensor([step]))
    untracked = int(random.fold("untracked").integers(0, loops))
    left = loops - untracked
    return Passes(untracked, int(random.fold("tracked").integers(1, (left if most is None else min(left, most)) + 1)))


def learning_rate(config: TrainConfig, step: int, steps: int) -> float:
    """The learning rate of a step (from 0) of `steps`: linear warm-up, then a cosine, a line, or a constant that falls
    in a line at the end."""
    if step < config.warmup:
        return config.learning_rate * (step + 1) / config.warmup
    begin = steps - config.cooldown if config.schedule == "constant" else config.warmup
    if step < begin:
        return config.learning_rate
    progress = (step - begin) / max(1, steps - begin)
    height = 0.5 * (1 + math.cos(math.pi * progress)) if config.schedule == "cosine" else 1 - progress
    low = config.final_fraction
    return config.learning_rate * (low + (1 - low) * height)


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.AdamW:
    """Fused AdamW; weight decay on matrices and tables, not on gains."""
    matrices = [parameter for parameter in model.parameters() if parameter.ndim >= 2]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(
        groups, lr=config.learning_rate, betas=(config.beta1, config.beta2), eps=config.epsilon, fused=True
    )


class Stepper:
    """A model, its optimiser, the step that changes them, and the average of the weights where one is kept."""

    def __init__(self, model: Transformer, config: TrainConfig, steps: int) -> None:
        self.model, self.config, self.steps = model, config, steps
        self.optimizer = make_optimizer(model, config)
        self.parameters = list(model.parameters())
        self.averages = [parameter.detach().clone() for parameter in self.parameters] if config.average else []
        self.loss_sum = torch.compile(loss_sum, dynamic=True) if config.compile else loss_sum

    def __call__(self, step: int, micros: Sequence[Micro]) -> Tensor:
        """Makes step number `step` (from 0); returns the mean loss over its trained positions, on the device."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.config, step, self.steps)
        trained = sum((micro.batch.trained_BT.sum() for micro in micros[1:]), micros[0].batch.trained_BT.sum())
        self.optimizer.zero_grad(set_to_none=True)
        total = torch.zeros((), device=trained.device)
        for micro in micros:
            draws = self.model.draw(micro.batch, micro.positions, Phase.TRAINING)
            with autocast(self.config.precision, trained.device):
                loss = self._loss_sum(step, micro.batch, draws) / trained
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        for parameter in self.parameters:
            # What a step has no use for (embeddings, before passes without gradient) has a gradient of zero: left out,
            # its moments would be at another step than all others.
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        if self.config.clip:
            nn.utils.clip_grad_norm_(self.parameters, self.config.clip)
        self.optimizer.step()
        if self.averages:
            # The first weights are soon far away, and count for less than the decay would keep of them.
            decay = min(self.config.average, (1 + step) / (10 + step))
            torch._foreach_lerp_(self.averages, [parameter.detach() for parameter in self.parameters], 1 - decay)
        return total

    @contextlib.contextmanager
    def tested(self) -> Iterator[None]:
        """Puts the averages in the place of the weights, where averages are kept, for as long as the context lasts."""
        self.exchange()
        try:
            yield
        finally:
            self.exchange()

    @torch.no_grad()
    def exchange(self) -> None:
        """Exchanges weights and averages."""
        for parameter, average in zip(self.parameters, self.averages, strict=bool(self.averages)):
            held = parameter.clone()
            parameter.copy_(average)
            average.copy_(held)

    def _loss_sum(self, step: int, batch: Batch, draws: Draws) -> Tensor:
        share, loops = self.config.progressive, self.model.config.loops
        if not share:
            return self.loss_sum(self.model, batch, draws)
        passes = progressive_passes(step, loops, self.config.progressive_most)
        total = share * self.loss_sum(self.model, batch, draws, passes)
        return total if share == 1 else total + (1 - share) * self.loss_sum(self.model, batch, draws)


def autocast(precision: str, device: torch.device) -> contextlib.AbstractContextManager[object]:
    """bf16 autocast, or nothing."""
    if precision == "bf16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return contextlib.nullcontext()
