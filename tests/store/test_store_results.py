"""Results: what is stored comes back, twice is once, and nothing is overwritten."""

from __future__ import annotations

import dataclasses
import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_examples import CONFIG, ENVIRONMENT, HASH, claim, evaluation, point

from algolen import statistics
from algolen.errors import UserError
from algolen.identity import canonical_json, content_hash
from algolen.store import ArtifactRow, Conflict, Count, CurvePoint, Point, PointKey, Store, this_process

RUN = f"{HASH}-0"


@pytest.fixture
def tested(store: Store) -> str:
    claim(store)
    return store.add_evaluation(evaluation())


@st.composite
def counts(draw: st.DrawFn, stratum: str = "all") -> Count:
    units = draw(st.integers(1, 40))
    exact = draw(st.one_of(st.just(units), st.integers(0, units)))
    tokens = units * draw(st.integers(1, 3))
    return Count(stratum, units, exact, tokens, draw(st.integers(0, tokens)))


@st.composite
def points(draw: st.DrawFn) -> list[Point]:
    lengths = draw(st.lists(st.integers(1, 60), min_size=1, max_size=8, unique=True))
    strata = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True))
    return [Point(PointKey("random", n), 40, "f" * 64, tuple(draw(counts(s)) for s in strata)) for n in lengths]


def test_identities_stay_what_they_are() -> None:
    assert canonical_json({"b": [1, 2.5, None, True], "a": {"é": "x"}}) == '{"a":{"\\u00e9":"x"},"b":[1,2.5,null,true]}'
    assert content_hash({"task": "addition", "train_lengths": [1, 2]}) == "75a9c66595adeaf3"
    assert evaluation().id == "44e58867dc249731"
    assert ENVIRONMENT.id == "d1e0385b125917c9"


def test_an_identity_does_not_depend_on_the_order_of_keys_and_refuses_nan() -> None:
    assert content_hash({"a": 1, "b": 2}) == content_hash({"b": 2, "a": 1})
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"loss": math.nan})


def test_everything_about_an_evaluation_is_part_of_its_identity() -> None:
    changes = {
        "run_id": f"{HASH}-1", "checkpoint": "best", "test_seed": 1, "examples": 10, "positions": "drawn",
        "extension": "yarn", "purpose": "development",
    }  # fmt: skip
    assert set(changes) == {field.name for field in dataclasses.fields(evaluation())}
    ids = {dataclasses.replace(evaluation(), **{name: value}).id for name, value in changes.items()}
    assert len(ids | {evaluation().id}) == len(changes) + 1


def test_configs_and_evaluations_are_added_once(store: Store) -> None:
    store.add_config(dataclasses.replace(CONFIG, pe="typed otherwise"))
    assert store.config(HASH) == CONFIG
    claim(store)
    assert store.add_evaluation(evaluation()) == store.add_evaluation(evaluation())
    assert store.evaluations(RUN) == [evaluation()]


def test_an_unknown_config_names_the_nearest(store: Store) -> None:
    with pytest.raises(UserError, match=f"did you mean '{HASH}'"):
        store.config(HASH[:-1] + "0")


def content(store: Store) -> list[object]:
    return [store.rows("SELECT * FROM points"), store.rows("SELECT * FROM counts")]


@settings(max_examples=25, deadline=None)
@given(points(), st.data())
def test_adding_points_again_in_any_portions_changes_nothing(found: list[Point], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "r.sqlite", create=True) as store:
        store.add_config(CONFIG)
        claim(store)
        which = store.add_evaluation(evaluation())
        store.add_points(which, 5000, found)
        before = content(store)
        again = data.draw(st.lists(st.sampled_from(found), max_size=12))
        store.add_points(which, 5000, [dataclasses.replace(p, counts=p.counts[::-1]) for p in again])
        assert content(store) == before
        assert store.points_present(which, 5000) == {p.key for p in found}
        assert store.points_present(which, 4999) == set()
        strata = {(row.key, row.count) for row in store.strata(RUN)}
        assert strata == {(p.key, count) for p in found for count in p.counts}


@pytest.mark.parametrize(
    "other",
    [
        point(20, 799),
        dataclasses.replace(point(20, 800), sha256="0" * 64),
        point(20, 800, stratum="carry 1"),
        dataclasses.replace(point(20, 800), counts=(*point(20, 800).counts, Count("carry 1", 1, 1, 2, 2))),
    ],
    ids=["counts", "test set", "stratum", "more strata"],
)
def test_a_different_result_is_refused_by_name_and_nothing_of_that_call_is_written(
    store: Store, tested: str, other: Point
) -> None:
    store.add_points(tested, 5000, [point(20, 800)])
    before = content(store)
    with pytest.raises(Conflict, match=f"{tested} at step 5,000, test set random, length 20: stored with 800 of 1,000"):
        store.add_points(tested, 5000, [point(30, 700), other])
    assert content(store) == before


def test_strata_are_those_of_the_newest_step_of_an_evaluation(store: Store, tested: str) -> None:
    store.add_points(tested, 300, [point(20, 1), point(30, 1)])
    store.add_points(tested, 5000, [point(20, 800)])
    assert [(row.step, row.key.length, row.count.exact) for row in store.strata(RUN)] == [(5000, 20, 800)]
    assert store.strata(RUN, "edge cases") == []


def test_the_same_point_at_another_step_test_set_or_axis_value_is_another_point(store: Store, tested: str) -> None:
    three = Point(PointKey("random", 20, "operands", 3), 1000, "f" * 64, point(20, 5).counts)
    store.add_points(tested, 4000, [point(20, 1)])
    store.add_points(tested, 5000, [point(20, 2), point(20, 3, test_set="edge cases"), three])
    assert len(store.rows("SELECT * FROM points")) == 4


@pytest.mark.parametrize(
    "bad", [Count("s", 1, 2, 2, 2), Count("s", 2, 1, 1, 1), Count("s", 2, 1, 4, 5), Count("s", 2, 0.5, 4, 1)]
)  # type: ignore[arg-type]
def test_counts_that_cannot_be_are_refused(store: Store, tested: str, bad: Count) -> None:
    with pytest.raises(Exception, match="CHECK constraint"):
        store.add_points(tested, 5000, [dataclasses.replace(point(20, 1), counts=(bad,))])
    assert store.points_present(tested, 5000) == set()


def test_a_stratum_that_no_unit_fell_into_is_not_stored(store: Store, tested: str) -> None:
    empty = Count("never", 0, 0, 0, 0)
    both = dataclasses.replace(point(20, 1), counts=(*point(20, 1).counts, empty))
    for _ in range(2):
        store.add_points(tested, 5000, [both])
    assert [row.count.stratum for row in store.strata(RUN)] == ["carry 0"]
    with pytest.raises(ValueError, match="without counts"):
        dataclasses.replace(point(20, 1), counts=(empty,))


def test_curves_keep_what_is_not_finite_and_a_later_value_replaces(store: Store) -> None:
    claim(store)
    given_values = [0.5, math.inf, -math.inf, math.nan, 1e-300]
    store.add_curve(RUN, [CurvePoint(step, "loss", value) for step, value in enumerate(given_values)])
    store.add_curve(RUN, [CurvePoint(0, "loss", 0.25), CurvePoint(0, "accuracy", 1.0)])
    stored = [p.value for p in store.curve(RUN, "loss")]
    assert stored[:3] == [0.25, math.inf, -math.inf]
    assert math.isnan(stored[3])
    assert stored[4] == 1e-300


def test_an_artifact_takes_the_place_of_the_older_one_of_its_kind(store: Store) -> None:
    claim(store)
    rows = [
        ArtifactRow(RUN, kind, f"runs/{kind}.{step}", "f" * 64, 10, step)
        for kind in ("last", "best")
        for step in (1, 2)
    ]
    for row in rows:
        store.add_artifact(row)
    assert store.artifacts(RUN) == [rows[3], rows[1]]


def test_runs_are_found_by_task_encoding_as_typed_or_expanded_and_status(store: Store) -> None:
    other = dataclasses.replace(CONFIG, hash="f" * 16, task="copy", pe="randomized", expansion="randomized+rope")
    store.add_config(other)
    claim(store, 0)
    claim(store, 1, config=other)
    store.finish(RUN, this_process(), "done", None, 5000, 1.0)
    assert [run.seed for run in store.runs()] == [0, 1]
    assert [run.seed for run in store.runs(task="copy")] == [1]
    assert [run.seed for run in store.runs(pe="randomized")] == [1]
    assert [run.seed for run in store.runs(pe="randomized+rope")] == [1]
    assert [run.seed for run in store.runs(status="done")] == [0]
    assert store.runs(task="copy", status="done") == []
    assert store.known("task") == ["addition", "copy"]


def test_a_run_is_found_by_any_beginning_that_fits_only_one(store: Store) -> None:
    similar = dataclasses.replace(CONFIG, hash="0123456789" + "f" * 6)
    store.add_config(similar)
    for config, seed in ((CONFIG, 0), (CONFIG, 1), (CONFIG, 11), (similar, 2)):
        claim(store, seed, config=config)
    assert store.run(f"{HASH}-1").seed == 1
    assert store.run("0123456789a-11").seed == 11
    assert store.run("01-2").id == f"{similar.hash}-2"
    assert store.run("0123456789F").id == f"{similar.hash}-2"
    with pytest.raises(UserError, match=r"fits 3 runs: .*give more of the id"):
        store.run(HASH)
    with pytest.raises(UserError, match=f"unknown run '{HASH[:-1]}e-1'; did you mean '{HASH}-1'"):
        store.run(f"{HASH[:-1]}e-1")
    with pytest.raises(UserError, match="unknown run"):
        store.run("")


def test_asking_an_empty_database_for_a_run_says_how_to_get_one(store: Store) -> None:
    with pytest.raises(UserError, match="holds no runs yet; `algolen train`"):
        store.run("abc")


# Views ----------------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.lists(points(), min_size=1, max_size=4), st.integers(1, 20), st.integers(0, 30))
def test_the_views_say_what_plain_python_says(seeds: list[list[Point]], shortest: int, more: int) -> None:
    config = dataclasses.replace(CONFIG, train_shortest=shortest, train_longest=shortest + more)
    train = (shortest, shortest + more)
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "r.sqlite", create=True) as store:
        store.add_config(config)
        curves = {}
        for seed, found in enumerate(seeds):
            claim(store, seed)
            which = store.add_evaluation(evaluation(seed))
            # What was measured before more training must not mix with what came after.
            store.add_points(which, 100, [Point(PointKey("random", 61), 1, "0" * 64, (Count("a", 1, 0, 1, 0),))])
            store.add_points(which, 5000, found)
            store.finish(f"{HASH}-{seed}", this_process(), "done", None, 5000, 1.0)
            curves[seed] = {
                p.key.length: sum(c.exact for c in p.counts) / sum(c.units for c in p.counts) for p in found
            }

        stored: dict[int, dict[int, float]] = {seed: {} for seed in curves}
        for row in store.rows("SELECT * FROM v_length_curve"):
            stored[row["seed"]][row["length"]] = row["exact_match"]
            strata = next(p.counts for p in seeds[row["seed"]] if p.key.length == row["length"])
            right, tokens = sum(c.tokens_correct for c in strata), sum(c.tokens for c in strata)
            assert (row["tokens_correct"], row["tokens"], row["token_accuracy"]) == (right, tokens, right / tokens)
        assert stored == curves
        read = {seed: {} for seed in curves}  # type: ignore[var-annotated]
        for curve in store.length_curves():
            assert curve.point is not None
            count = curve.point.counts[0]
            read[curve.run.seed][curve.point.key.length] = count.exact / count.units
        assert read == curves

        horizons = {seed: statistics.horizon(curve, train) for seed, curve in curves.items() if max(curve) >= shortest}
        viewed = {row["seed"]: (row["horizon"], bool(row["at_end"])) for row in store.rows("SELECT * FROM v_horizon")}
        assert viewed == {seed: (h.length, h.at_end) for seed, h in horizons.items()}
        board = store.rows("SELECT seeds, median_horizon, at_end FROM v_leaderboard")
        if horizons:
            middle = statistics.median_horizon(horizons.values())
            assert [tuple(row.values()) for row in board] == [(len(horizons), middle.length, middle.at_end)]


def test_runs_that_failed_are_counted_beside_the_leaderboard_and_not_in_it(store: Store, tested: str) -> None:
    store.add_points(tested, 5000, [point(10, 1000)])
    store.finish(RUN, this_process(), "done", None, 5000, 1.0)
    claim(store, 1)
    store.finish(f"{HASH}-1", this_process(), "diverged", "no", 7, 1.0)
    (row,) = store.rows("SELECT seeds, failed_or_diverged, median_horizon FROM v_leaderboard")
    assert tuple(row.values()) == (1, 1, 10)


def test_development_and_other_checkpoints_do_not_mix_with_reported_results(store: Store, tested: str) -> None:
    store.add_points(tested, 5000, [point(10, 1000)])
    for change in ({"purpose": "development"}, {"checkpoint": "best"}):
        other = dataclasses.replace(evaluation(), **change)
        store.add_points(store.add_evaluation(other), 5000, [point(10, 1)])
    (curve,) = store.length_curves()
    assert curve.point is not None
    assert curve.point.counts[0].exact == 1000
    assert curve.evaluation == evaluation()
    assert len(store.strata(RUN)) == 3
