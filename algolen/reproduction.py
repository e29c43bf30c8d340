"""Whether one database reproduces another: the runs that both have, point by point. Pure counting; no model is run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from algolen import statistics
from algolen.store import EvaluationRow, Point, PointKey, RunRow, Store

Verdict = Literal["equal", "within", "different"]

TEST = (
    "equal: the same counts in every stratum; within: the 95 % Wilson intervals of the two exact matches overlap. Runs "
    "from the same kind of machine (torch, platform, processor, threads) have to be equal, others within."
)


@dataclass(frozen=True)
class Recorded:
    """A finished run as one database has it; `machine` is the kind of machine it was trained on, None if not known."""

    run: RunRow
    machine: tuple[object, ...] | None
    points: Mapping[tuple[str, PointKey], tuple[EvaluationRow, int, Point]]


@dataclass(frozen=True)
class Pair:
    """One point of a run in both databases, as (exact, units)."""

    run: RunRow
    evaluation: EvaluationRow
    key: PointKey
    first: tuple[int, int]
    second: tuple[int, int]
    verdict: Verdict
    same_test_set: bool

    @property
    def difference(self) -> float:
        """How far the second exact match is from the first."""
        return statistics.exact_match(*self.second) - statistics.exact_match(*self.first)


@dataclass(frozen=True)
class Compared:
    """One run that both databases have; `pairs` are empty where it diverged in either."""

    first: RunRow
    second: RunRow
    same_machine: bool
    pairs: tuple[Pair, ...]

    @property
    def verdict(self) -> Verdict:
        """That of its worst point."""
        if self.first.status != self.second.status:
            return "different"
        verdicts = {pair.verdict for pair in self.pairs}
        return next((verdict for verdict in _WORST_FIRST if verdict in verdicts), "equal")

    @property
    def well(self) -> bool:
        """Whether it is as it should be."""
        return self.verdict == "equal" or (self.verdict == "within" and not self.same_machine)


_WORST_FIRST: tuple[Verdict, ...] = ("different", "within", "equal")


@dataclass(frozen=True)
class Reproduction:
    """Two databases beside each other. A run that was tested in nothing common counts as being in one of them only."""

    compared: tuple[Compared, ...]
    only_first: tuple[RunRow, ...]
    only_second: tuple[RunRow, ...]

    @property
    def well(self) -> bool:
        """Whether there is something to compare and all of it is as it should be."""
        return bool(self.compared) and all(one.well for one in self.compared)

    @property
    def differences(self) -> list[Pair]:
        """The points that are not equal, the worst first."""
        found = [(one.well, pair) for one in self.compared for pair in one.pairs if pair.verdict != "equal"]
        return [pair for _, pair in sorted(found, key=lambda item: (item[0], -abs(item[1].difference)))]


def reproduction(first: Store, second: Store, trials: bool = False) -> Reproduction:
    """Compares the finished runs of two databases: what is to be reported, or the trials alone."""
    one, other = _recorded(first, trials), _recorded(second, trials)
    compared = {}
    for run_id in one.keys() & other.keys():
        found = _compare(one[run_id], other[run_id])
        if found.pairs or "diverged" in (found.first.status, found.second.status):
            compared[run_id] = found
    ordered = sorted(compared.values(), key=lambda found: (found.first.task, found.first.pe, found.first.id))
    return Reproduction(
        tuple(ordered),
        tuple(recorded.run for run_id, recorded in one.items() if run_id not in compared),
        tuple(recorded.run for run_id, recorded in other.items() if run_id not in compared),
    )


def _recorded(store: Store, trials: bool) -> dict[str, Recorded]:
    machines = {name: row.machine for name, row in store.environments().items()}
    points: dict[str, dict[tuple[str, PointKey], tuple[EvaluationRow, int, Point]]] = defaultdict(dict)
    for evaluation, step, point in store.points("development" if trials else "report"):
        if evaluation.checkpoint != "training":
            points[evaluation.run_id][evaluation.id, point.key] = evaluation, step, point
    return {
        run.id: Recorded(run, machines.get(run.environment_id or ""), points[run.id])
        for run in store.runs()
        if run.trial == trials and run.status in ("done", "diverged")
    }


def _compare(one: Recorded, other: Recorded) -> Compared:
    pairs = tuple(_pairs(one, other)) if one.run.status == other.run.status == "done" else ()
    return Compared(one.run, other.run, one.machine is not None and one.machine == other.machine, pairs)


def _pairs(one: Recorded, other: Recorded) -> Iterator[Pair]:
    for place, (evaluation, step, point) in one.points.items():
        if place in other.points:
            _, other_step, second = other.points[place]
            same = point.sha256 == second.sha256
            equal = same and step == other_step and set(point.counts) == set(second.counts)
            sums = _sums(point), _sums(second)
            verdict: Verdict = "equal" if equal else "within" if same and _overlap(*sums) else "different"
            yield Pair(one.run, evaluation, point.key, *sums, verdict, same)


def _sums(point: Point) -> tuple[int, int]:
    return sum(count.exact for count in point.counts), sum(count.units for count in point.counts)


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    low, high = statistics.wilson(*one)
    other_low, other_high = statistics.wilson(*other)
    return low <= other_high and other_low <= high


@dataclass(frozen=True)
class Line:
    """The runs of one configuration, counted."""

    run: RunRow
    """Any of them: what it says of its configuration holds for all."""
    counts: Mapping[Verdict, int]
    only_first: int
    only_second: int
    well: bool


def by_config(found: Reproduction) -> list[Line]:
    """The comparison, a line for each configuration."""
    compared: dict[str, list[Compared]] = defaultdict(list)
    for one in found.compared:
        compared[one.first.config_hash].append(one)
    alone = _by_config(found.only_first), _by_config(found.only_second)
    runs = {run.config_hash: run for run in (*found.only_first, *found.only_second)}
    runs |= {hash: own[0].first for hash, own in compared.items()}
    lines = []
    for hash, run in runs.items():
        own = compared[hash]
        counts = {verdict: sum(one.verdict == verdict for one in own) for verdict in _WORST_FIRST}
        well = all(one.well for one in own)
        lines.append(Line(run, counts, len(alone[0][hash]), len(alone[1][hash]), well))
    return sorted(lines, key=lambda line: (line.run.task, line.run.pe, line.run.config_hash))


def _by_config(runs: Sequence[RunRow]) -> dict[str, list[RunRow]]:
    found: dict[str, list[RunRow]] = defaultdict(list)
    for run in runs:
        found[run.config_hash].append(run)
    return found
