"""Who is told how runs go: the terminal, and W&B."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from algolen.evaluation.test_sets import TestSet
    from algolen.store import Ending, EvaluationRow
    from algolen.training.loop import Check


class Listener:
    """Who is told how runs go. What does not concern a listener, it need not define."""

    def training(self, run_id: str, seed: int, parameters: int, at_step: int, steps: int) -> None:
        """A run begins, or goes on at a step."""

    def noted(self, text: str) -> None:
        """Something that a user should know."""

    def stepped(self, step: int, loss: float | None) -> None:
        """A step was made; its loss only where it was read anyway."""

    def logged(self, curve: Mapping[int, float]) -> None:
        """Training losses by step were stored."""

    def checked(self, check: Check) -> None:
        """The model was looked at on development sets."""

    def sweeping(self, test_sets: Sequence[TestSet]) -> None:
        """A sweep begins."""

    def swept(self, examples: int) -> None:
        """Some examples of the sweep were done."""

    def measured(self, evaluation: EvaluationRow, step: int) -> None:
        """The sweep is done: all that was asked for of an evaluation of the model after that step is stored."""

    def ended(self, status: Ending, reason: str) -> None:
        """The run's ending was stored, with a reason where it is not done."""


class Listeners(Listener):
    """Several listeners, told one after the other."""

    def __init__(self, *listeners: Listener) -> None:
        self.listeners = listeners

    def training(self, run_id: str, seed: int, parameters: int, at_step: int, steps: int) -> None:
        for listener in self.listeners:
            listener.training(run_id, seed, parameters, at_step, steps)

    def noted(self, text: str) -> None:
        for listener in self.listeners:
            listener.noted(text)

    def stepped(self, step: int, loss: float | None) -> None:
        for listener in self.listeners:
            listener.stepped(step, loss)

    def logged(self, curve: Mapping[int, float]) -> None:
        for listener in self.listeners:
            listener.logged(curve)

    def checked(self, check: Check) -> None:
        for listener in self.listeners:
            listener.checked(check)

    def sweeping(self, test_sets: Sequence[TestSet]) -> None:
        for listener in self.listeners:
            listener.sweeping(test_sets)

    def swept(self, examples: int) -> None:
        for listener in self.listeners:
            listener.swept(examples)

    def measured(self, evaluation: EvaluationRow, step: int) -> None:
        for listener in self.listeners:
            listener.measured(evaluation, step)

    def ended(self, status: Ending, reason: str) -> None:
        for listener in self.listeners:
            listener.ended(status, reason)
