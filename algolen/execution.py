"""Carrying out an experiment: claim the run, train it, sweep it, and keep what came out in the store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from algolen import checkpoint
from algolen.environment import environment
from algolen.errors import Diverged, UserError
from algolen.evaluation import sweep
from algolen.evaluation.test_sets import TestSet
from algolen.experiment import Experiment
from algolen.listener import Listener
from algolen.model import Transformer
from algolen.recording import FIXED, IN_DISTRIBUTION_LOSS, Recorder, config_row, point_key, stored_point
from algolen.store import (
    Checkpoint,
    Claim,
    Conflict,
    Ending,
    EvaluationRow,
    Purpose,
    Store,
    is_trial,
    this_process,
)
from algolen.training.data import TrainingData
from algolen.training.loop import Interrupted, Progress, Training


@dataclass(frozen=True)
class Outcome:
    """How one run ended: done, failed, diverged, interrupted, or held by another process; with the reason."""

    run_id: str
    seed: int
    status: str
    reason: str = ""
    compared: bool = False


@dataclass(frozen=True)
class Runner:
    """Executes the runs of an experiment on a device; `folder` is where every run has a folder for its checkpoints."""

    experiment: Experiment
    store: Store
    folder: Path
    device: torch.device
    listener: Listener
    asked_to_stop: Callable[[], bool] = lambda: False
    retrain: bool = False

    def run(self, seed: int) -> Outcome:
        """Trains and sweeps one seed, going on where an earlier process stopped; its outcome is in the store.

        What the user can mend (UserError) is raised after the run was recorded as failed.
        """
        config = self.experiment.config
        run_id = config.run_id(seed)
        check_folder(self.folder)
        model = self.experiment.model(seed, self.device)
        data = self.experiment.data(seed, self.device)
        self.store.add_config(config_row(self.experiment))
        owner = this_process()
        claim = self.store.claim(
            run_id,
            config.hash(),
            seed,
            data.steps,
            _parameters(model),
            self.experiment.pe.not_greedy(self.experiment.task) is None,
            owner,
            environment(self.device, config.train.compile),
            again=self.retrain,
        )
        if claim.outcome == "held":
            age = round(claim.heartbeat_age or 0)
            return Outcome(run_id, seed, "held", f"process {claim.owner} is at it, last heard of {age} s ago")
        if claim.outcome == "done":
            if not self._missing(run_id, data.steps):
                return Outcome(run_id, seed, "done")
            if not self._checkpoint(run_id, "last").exists():
                raise self._no_checkpoint(run_id, "last")
        again = self.retrain and claim.previous == "done"
        if again:
            forget(self.folder / run_id)
        outcome = self._execute(run_id, seed, model, data, owner, claim)
        return replace(outcome, compared=again and outcome.status == "done")

    def _execute(
        self,
        run_id: str,
        seed: int,
        model: Transformer,
        data: TrainingData,
        owner: str,
        claim: Claim,
    ) -> Outcome:
        """Trains and sweeps what was claimed."""
        recorder = Recorder(self.experiment, self.store, self.folder, model, self.listener, run_id, owner)
        training = Training(
            model,
            data,
            run_id,
            self.folder / run_id,
            recorder.look,
            recorder,
            self.asked_to_stop,
        )
        progress = Progress()
        try:
            self._leave_what_others_wrote(run_id, claim)
            with self._remade(run_id):
                training.resume()
            self.listener.training(run_id, seed, _parameters(model), training.progress.step, data.steps)
            progress = training.run()
            self._sweep(run_id, model, data.steps)
        except Diverged as error:
            return self._end(run_id, seed, owner, "diverged", str(error), training.progress)
        except Interrupted as error:
            return self._end(run_id, seed, owner, "interrupted", str(error), training.progress)
        except KeyboardInterrupt:
            self._end(run_id, seed, owner, "interrupted", "stopped at once", training.progress)
            raise
        except Conflict as error:
            if not (self.retrain and claim.previous == "done"):
                return self._end(run_id, seed, owner, "failed", str(error), training.progress)
            return self._keep_what_was(claim, seed, error)
        except Exception as error:
            reason = str(error) if isinstance(error, UserError) else _reason(error)
            outcome = self._end(run_id, seed, owner, "failed", reason, training.progress)
            if isinstance(error, UserError):
                raise
            return outcome
        self.store.finish(run_id, owner, "done", None, progress.step, progress.seconds)
        self.listener.ended("done", "")
        return Outcome(run_id, seed, "done")

    def _end(self, run_id: str, seed: int, owner: str, status: Ending, reason: str, progress: Progress) -> Outcome:
        self.store.finish(run_id, owner, status, reason, progress.step, progress.seconds)
        self.listener.ended(status, reason)
        return Outcome(run_id, seed, status, reason)

    def _keep_what_was(self, claim: Claim, seed: int, error: Conflict) -> Outcome:
        """A run that was done and came out otherwise now stays as it is stored; the new model is not the one tested."""
        self.store.put_back(claim)
        forget(self.folder / claim.run_id)
        reason = f"{error}; to keep what this machine computes, train into a database of its own with --db"
        return Outcome(claim.run_id, seed, "failed", reason)

    def _leave_what_others_wrote(self, run_id: str, claim: Claim) -> None:
        """Forgets the checkpoints of an unfinished run where they come from a training that the store knows nothing of
        (into another database of the same folder, say): going on from there, its record would have a gap."""
        path = self._checkpoint(run_id, "last")
        if claim.previous == "done" or not path.exists():
            return
        with self._remade(run_id):
            step = int(checkpoint.read(path, torch.device("cpu")).facts.get("step", -1))
        written = {artifact.kind: artifact.sha256 for artifact in self.store.artifacts(run_id)}
        if hashlib.sha256(path.read_bytes()).hexdigest() == written.get("last checkpoint"):
            return
        # A process that was killed between writing a checkpoint and saying so had stored the look at that step.
        if any(point.step == step for point in self.store.curve(run_id, IN_DISTRIBUTION_LOSS)):
            return
        forget(self.folder / run_id)
        self.listener.noted(
            f"run {run_id}: {path} is at step {step:,} of a training that {self.store.path} has no record of; "
            "training from the start"
        )

    def _checkpoint(self, run_id: str, kind: str) -> Path:
        return self.folder / run_id / f"{kind}.safetensors"

    def _no_checkpoint(self, run_id: str, kind: str) -> UserError:
        path = self._checkpoint(run_id, kind)
        return UserError(f"the {kind} checkpoint of run {run_id} is not at {path}; {self._remake(run_id)}")

    def _remake(self, run_id: str) -> str:
        """How to get a run's checkpoints back."""
        plugin = " --plugin FILE" if self.experiment.config.plugins else ""
        return (
            f"make it again with: algolen show {run_id} --toml --db {self.store.path} > run.toml; "
            f"algolen train --config run.toml --retrain --db {self.store.path}{plugin}"
        )

    @contextmanager
    def _remade(self, run_id: str) -> Iterator[None]:
        """Says how to make a checkpoint again where reading it fails."""
        try:
            yield
        except UserError as error:
            raise UserError(f"{error}; {self._remake(run_id)}") from None

    # Sweeps -----------------------------------------------------------------------------------------------------------

    def _evaluation(self, run_id: str, kind: str = "last") -> EvaluationRow:
        asked = self.experiment.evaluation
        assert kind in ("last", "best")
        positions = asked.positions if self.experiment.pe.draws_at_test else FIXED
        tested: Checkpoint = "best" if kind == "best" else "last"
        purpose: Purpose = "development" if _trial(run_id) else "report"
        return EvaluationRow(run_id, tested, asked.test_seed, asked.examples, positions, purpose=purpose)

    def _test_sets(self, run_id: str) -> list[TestSet]:
        """A trial is tested on development sets, so that recipes are never chosen by what is reported."""
        return self.experiment.test_sets("development" if _trial(run_id) else "test")

    def _missing(self, run_id: str, step: int, kind: str = "last") -> list[TestSet]:
        present = self.store.points_present(self._evaluation(run_id, kind).id, step)
        return [test_set for test_set in self._test_sets(run_id) if point_key(test_set) not in present]

    def _sweep(self, run_id: str, model: Transformer, step: int, kind: str = "last") -> int:
        """Sweeps what the store does not have yet, a length at a time; returns how many test sets that were."""
        missing = self._test_sets(run_id) if self.retrain else self._missing(run_id, step, kind)
        evaluation = self._evaluation(run_id, kind)
        evaluation_id = self.store.add_evaluation(evaluation)
        self.listener.sweeping(missing)
        for test_set in missing:
            if self.asked_to_stop():
                raise Interrupted(step)
            point = sweep.evaluate(
                model, test_set, self.device, phase=self.experiment.phase, advance=partial(self._advance, step)
            )
            self.store.add_points(evaluation_id, step, [stored_point(point)])
        self.listener.measured(evaluation, step)
        return len(missing)

    def _advance(self, step: int, examples: int) -> None:
        self.listener.swept(examples)
        if self.asked_to_stop():
            raise Interrupted(step)

    def sweep_checkpoint(self, run_id: str, kind: str) -> int:
        """Sweeps a saved checkpoint of a run; returns how many test sets were missing.

        Raises UserError, with the command that makes it, if the checkpoint is not there.
        """
        path, run = self._checkpoint(run_id, kind), self.store.run(run_id)
        if run.status != "done":
            raise UserError(
                f"run {run_id} is {run.status} at step {run.step:,} of {run.steps:,}; "
                f"`algolen train` with its settings (algolen show {run_id} --toml) takes it to the end"
            )
        if not path.exists():
            raise self._no_checkpoint(run_id, kind)
        with self._remade(run_id):
            found = checkpoint.read(path, self.device)
            if found.facts.get("run") != run_id:
                raise UserError(f"'{path}' belongs to run {found.facts.get('run', 'unknown')}, not to {run_id}")
            self._check_unchanged(run_id, kind, path)
        model = self.experiment.model(0, self.device)
        model.load_state_dict(found.part("model"))
        return self._sweep(run_id, model, int(found.facts["step"]), kind)

    def _check_unchanged(self, run_id: str, kind: str, path: Path) -> None:
        """Raises UserError for a file that is not the one training wrote: its counts would be another model's."""
        written = {artifact.kind: artifact.sha256 for artifact in self.store.artifacts(run_id)}
        sha256 = written.get(f"{kind} checkpoint")
        if sha256 is not None and hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
            raise UserError(
                f"'{path}' is not a readable checkpoint of this run: it was changed after training wrote it"
            )


def _trial(run_id: str) -> bool:
    return is_trial(int(run_id.rpartition("-")[2]))


def _reason(error: Exception) -> str:
    """An error in one line of bearable length."""
    line = " ".join(f"{type(error).__name__}: {error}".split())
    return line if len(line) <= 500 else line[:499] + "…"


def check_folder(folder: Path) -> None:
    """Raises UserError if no checkpoints can be put into a folder of that name."""
    if folder.is_symlink() and not folder.exists():
        raise UserError(f"checkpoints go to the folder '{folder}', but that is a link to what is not there; mend it")
    if folder.exists() and not folder.is_dir():
        raise UserError(f"checkpoints go to the folder '{folder}', but that is a file; move it away")


def forget(folder: Path) -> None:
    """Removes a run's checkpoints."""
    for kind in ("last", "best"):
        (folder / f"{kind}.safetensors").unlink(missing_ok=True)


def _parameters(model: Transformer) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
