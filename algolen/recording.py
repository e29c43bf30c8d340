"""What training and sweeps put into the store, and what is looked at while training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from algolen.evaluation import sweep
from algolen.evaluation.counting import Counts
from algolen.evaluation.test_sets import TestSet, spread
from algolen.experiment import DEVELOPMENT_SEED, Experiment, development_lengths
from algolen.identity import canonical_json
from algolen.listener import Listener
from algolen.model import Transformer
from algolen.store import ArtifactRow, ConfigRow, Count, CurvePoint, EvaluationRow, Point, PointKey, Store
from algolen.training.loop import Check

FIXED = "fixed"
"""The policy of positions at test where nothing is drawn: starts are 1 (0 for `offset`)."""

DEVELOPMENT_EXAMPLES = 100
"""Examples a length of the development sets."""


LOSS, IN_DISTRIBUTION_LOSS = "loss", "in-distribution loss"
"""The names of the curves in the store."""


class Recorder:
    """Puts what training reports into the store and passes it on to the listener."""

    def __init__(
        self,
        experiment: Experiment,
        store: Store,
        folder: Path,
        model: Transformer,
        listener: Listener,
        run_id: str,
        owner: str,
    ) -> None:
        self.experiment, self.store, self.folder, self.model = experiment, store, folder, model
        self.listener, self.run_id, self.owner = listener, run_id, owner
        positions = "drawn" if self.experiment.pe.draws_at_test else FIXED
        self.evaluation = EvaluationRow(
            run_id, "training", DEVELOPMENT_SEED, DEVELOPMENT_EXAMPLES, positions, purpose="development"
        )
        self._beyond = development_lengths(self.experiment)

    def look(self, step: int) -> Check:
        """The in-distribution loss and the out-of-distribution points on development sets."""
        loss = sum((point.total for point in self._points(spread(self.experiment.config.train_lengths))), Counts())
        return Check(step, loss.loss / loss.tokens, tuple(self._points(self._beyond)))

    def _points(self, lengths: Sequence[int]) -> Iterator[sweep.Point]:
        for length in lengths:
            test_set = TestSet(
                self.experiment.task, "random", length, DEVELOPMENT_EXAMPLES, DEVELOPMENT_SEED, purpose="development"
            )
            yield sweep.evaluate(self.model, test_set, self.model.tokens_VD.device)

    def stepped(self, step: int, loss: float | None) -> None:
        self.listener.stepped(step, loss)

    def logged(self, curve: dict[int, float]) -> None:
        self.store.add_curve(self.run_id, [CurvePoint(step, LOSS, loss) for step, loss in curve.items()])
        self.listener.logged(curve)

    def checked(self, check: Check) -> None:
        self.store.add_curve(self.run_id, [CurvePoint(check.step, IN_DISTRIBUTION_LOSS, check.loss)])
        evaluation_id = self.store.add_evaluation(self.evaluation)
        self.store.add_points(evaluation_id, check.step, [stored_point(point) for point in check.points])
        self.store.heartbeat(self.run_id, self.owner, check.step)
        self.listener.checked(check)

    def saved(self, kind: str, path: Path, sha256: str, step: int) -> None:
        place = path.relative_to(self.folder.parent)
        size = path.stat().st_size
        self.store.add_artifact(ArtifactRow(self.run_id, f"{kind} checkpoint", str(place), sha256, size, step))


def stored_point(point: sweep.Point) -> Point:
    """A sweep's point as the store keeps it."""
    test_set = point.test_set
    counts = tuple(
        Count(test_set.task.stratum_name(test_set.kind, stratum), c.units, c.exact, c.tokens, c.tokens_correct)
        for stratum, c in sorted(point.counts.items())
    )
    chance = test_set.task.chance(test_set.length)
    # Known for what is drawn as in training only; other sets are made of special cases.
    blind = test_set.task.input_blind(test_set.length) if test_set.kind == "random" else None
    return Point(point_key(test_set), test_set.examples, point.sha256, counts, chance, blind)


def config_row(experiment: Experiment) -> ConfigRow:
    """The experiment's configuration as the store keeps it."""
    config = experiment.config
    return ConfigRow(
        hash=config.hash(),
        task=config.task,
        task_version=experiment.task.version,
        pe=config.pe,
        expansion=config.expansion,
        train_shortest=config.train_lengths[0],
        train_longest=config.train_lengths[-1],
        config_json=canonical_json(config.to_dict()),
    )


def point_key(test_set: TestSet) -> PointKey:
    """What a test set is a measurement at."""
    return PointKey(test_set.kind, test_set.length, test_set.axis, test_set.axis_value)
