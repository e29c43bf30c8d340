"""One training step. The loss is a pure function of (parameters, batch, draws); its gradient makes the update."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from algolen.batch import Batch
from algolen.config import TrainConfig
from algolen.model import Draws, Transformer
from algolen.phase import Phase
from algolen.training.data import Micro


def loss_sum(model: Transformer, batch: Batch, draws: Draws) -> Tensor:
    """The cross-entropy summed over trained positions, plus the encodings' extra loss weighed like one more mean."""
    first = batch.predicted_from
    logits_BTV, aux = model.logits_and_aux_loss(batch, draws, first)
    targets_BT = torch.where(batch.trained_BT, batch.targets_BT, -100)[:, first:]
    total = F.cross_entropy(logits_BTV.flatten(0, 1).float(), targets_BT.flatten(), reduction="sum")
    return total if aux is None else total + aux * batch.trained_BT.sum()


def learning_rate(config: TrainConfig, step: int, steps: int) -> float:
    """The learning rate of a step (from 0) of `steps`: linear warm-up, then a cosine or a constant."""
    if step < config.warmup:
        return config.learning_rate * (step + 1) / config.warmup
    if config.schedule == "constant":
        return config.learning_rate
    progress = (step - config.warmup) / max(1, steps - config.warmup)
    low = config.final_fraction
    return config.learning_rate * (low + (1 - low) * 0.5 * (1 + math.cos(math.pi * progress)))


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.AdamW:
    """Fused AdamW; weight decay on matrices and tables, not on gains."""
    matrices = [parameter for parameter in model.parameters() if parameter.ndim >= 2]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(
        groups, lr=config.learning_rate, betas=(config.beta1, config.beta2), eps=config.epsilon, fused=True
    )


class Stepper:
    """A model, its optimiser, and the step that changes them."""

    def __init__(self, model: Transformer, config: TrainConfig, steps: int) -> None:
        self.model, self.config, self.steps = model, config, steps
        self.optimizer = make_optimizer(model, config)
        self.parameters = list(model.parameters())
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
                loss = self.loss_sum(self.model, micro.batch, draws) / trained
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        if self.config.clip:
            nn.utils.clip_grad_norm_(self.parameters, self.config.clip)
        self.optimizer.step()
        return total


def autocast(precision: str, device: torch.device) -> contextlib.AbstractContextManager[object]:
    """bf16 autocast, or nothing."""
    if precision == "bf16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return contextlib.nullcontext()
