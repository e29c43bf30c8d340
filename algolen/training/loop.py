"""The training loop: steps, checks, checkpoints, and going on where an earlier process stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from algolen import checkpoint as checkpoints
from algolen.checkpoint import Checkpoint
from algolen.errors import Diverged, UserError
from algolen.evaluation.sweep import Point
from algolen.model import Transformer
from algolen.training.data import TrainingData
from algolen.training.step import Stepper

CURVE_POINTS = 200
"""About how many points of the training loss are kept."""


class Interrupted(Exception):
    """Training was asked to stop; everything up to `step` is in the checkpoint."""

    def __init__(self, step: int) -> None:
        super().__init__(f"interrupted after step {step:,}")
        self.step = step


@dataclass(frozen=True)
class Check:
    """What was seen on development sets: in-distribution loss (nats a token) and out-of-distribution points."""

    step: int
    loss: float
    points: tuple[Point, ...]


class Observer(Protocol):
    """Who is told how training goes; a step's loss only where it was read anyway."""

    def stepped(self, step: int, loss: float | None) -> None: ...

    def logged(self, curve: dict[int, float]) -> None: ...

    def checked(self, check: Check) -> None: ...

    def saved(self, kind: str, path: Path, sha256: str, step: int) -> None: ...


@dataclass(slots=True)
class Progress:
    """Where training stands: steps done, seconds spent, the best in-distribution loss and its step."""

    step: int = 0
    seconds: float = 0.0
    best_loss: float = math.inf
    best_step: int = 0


class Training:
    """One run's training. `folder` holds its checkpoints: last.safetensors and best.safetensors.

    look: measures the model on development sets; called at every check. asked_to_stop: polled after each step.
    """

    def __init__(
        self,
        model: Transformer,
        data: TrainingData,
        run_id: str,
        folder: Path,
        look: Callable[[int], Check],
        observer: Observer,
        asked_to_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.model, self.data, self.run_id, self.folder = model, data, run_id, folder
        self.look, self.observer, self.asked_to_stop = look, observer, asked_to_stop
        self.config, self.steps = data.config, data.steps
        self.stepper = Stepper(model, data.config, data.steps)
        self.progress = Progress()
        self._losses: dict[int, Tensor] = {}
        self._first_bad = torch.zeros((), dtype=torch.int64, device=data.device)
        self._log_every = max(1, self.steps // CURVE_POINTS)
        self._poll_every = 1 if data.device.type == "cpu" else 50

    def run(self) -> Progress:
        """Trains to the end, from the last checkpoint if there is one. The model then holds the weights to be tested.

        Raises Diverged at a loss that is not finite, Interrupted when asked to stop, UserError for a checkpoint that
        belongs to something else.
        """
        self.resume()
        while self.progress.step < self.steps:
            started = time.monotonic()
            self._step()
            done = self.progress.step
            self.progress.seconds += time.monotonic() - started
            if done % self.config.check_every == 0 or done == self.steps:
                self._check()
            elif self.asked_to_stop():
                self._raise_if_bad()
                self._log()
                self._save("last")
                raise Interrupted(done)
        self.stepper.exchange()
        return self.progress

    def _step(self) -> None:
        step = self.progress.step
        loss = self.stepper(step, self.data.micro_batches(step))
        done = step + 1
        finite = torch.isfinite(loss)
        self._first_bad = torch.where((self._first_bad == 0) & ~finite, done, self._first_bad)
        if done % self._log_every == 0:
            self._losses[done] = loss
        read = done % self._poll_every == 0 or done == self.steps
        if read:
            self._raise_if_bad()
        self.progress.step = done
        self.observer.stepped(done, float(loss) if read else None)

    def _raise_if_bad(self) -> None:
        if bad := int(self._first_bad):
            raise Diverged(bad)

    def _check(self) -> None:
        self._raise_if_bad()
        with self.stepper.tested():
            check = self.look(self.progress.step)
        if check.loss < self.progress.best_loss:
            self.progress = replace(self.progress, best_loss=check.loss, best_step=self.progress.step)
            self._save("best")
        self._log()
        self.observer.checked(check)
        self._save("last")

    def _log(self) -> None:
        self.observer.logged({step: float(loss) for step, loss in self._losses.items()})
        self._losses.clear()

    # Checkpoints ------------------------------------------------------------------------------------------------------

    def _save(self, kind: str) -> None:
        tensors = {f"model.{name}": tensor for name, tensor in self._tested().items()}
        if kind == "last":
            tensors |= self._training_tensors()
        path = self.folder / f"{kind}.safetensors"
        facts = {
            "run": self.run_id,
            "step": str(self.progress.step),
            "seconds": repr(self.progress.seconds),
            "best_loss": self.progress.best_loss.hex(),
            "best_step": str(self.progress.best_step),
        }
        self.observer.saved(kind, path, checkpoints.write(path, Checkpoint(tensors, facts)), self.progress.step)

    def _tested(self) -> dict[str, Tensor]:
        """The weights that are tested: the averages where there are any."""
        names = [name for name, _ in self.model.named_parameters()]
        averages = dict(zip(names, self.stepper.averages, strict=True)) if self.stepper.averages else {}
        return {**self.model.state_dict(), **averages}

    def _training_tensors(self) -> dict[str, Tensor]:
        """What going on needs beside the weights that are tested."""
        state = self.stepper.optimizer.state
        tensors = {
            f"{moment}.{name}": state[parameter][moment]
            for name, parameter in self.model.named_parameters()
            for moment in ("exp_avg", "exp_avg_sq")
        }
        if self.stepper.averages:
            tensors |= {f"trained.{name}": parameter for name, parameter in self.model.named_parameters()}
        return tensors

    def resume(self) -> None:
        """Goes to where the last checkpoint stands, if there is one."""
        path = self.folder / "last.safetensors"
        if not path.exists():
            return
        stored = checkpoints.read(path, self.data.device)
        if stored.facts.get("run") != self.run_id:
            raise UserError(f"'{path}' belongs to run {stored.facts.get('run')}, not to {self.run_id}; move it away")
        self.model.load_state_dict(stored.part("model"))
        if self.stepper.averages:
            self.stepper.exchange()
            self.model.load_state_dict({**stored.part("model"), **stored.part("trained")})
        moments = stored.part("exp_avg"), stored.part("exp_avg_sq")
        step = int(stored.facts["step"])
        for name, parameter in self.model.named_parameters():
            self.stepper.optimizer.state[parameter] = {
                "step": torch.tensor(float(step), device=parameter.device),
                "exp_avg": moments[0][name],
                "exp_avg_sq": moments[1][name],
            }
        self.progress = Progress(
            step,
            float(stored.facts["seconds"]),
            float.fromhex(stored.facts["best_loss"]),
            int(stored.facts["best_step"]),
        )
