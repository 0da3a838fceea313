"""The table of growth takes the largest topic in, which is measured by itself."""

from bench.measures import Metric
from bench.report import Result
from bench.spark.report import Growth, Outcome, Runs, document, with_growth
from bench.spark.rewriting import Rewriting

METRIC = Metric("noop", "s", 0.4)


def outcome(theirs_s: float, ours_s: float) -> Outcome:
    return Outcome(Result(METRIC, [theirs_s], [ours_s]), Result(METRIC, [2 * theirs_s], [ours_s]))


def whole(growth: list[Growth]) -> str:
    runs = Runs(unmeasured=20, unmeasured_growth=10, measured=9)
    rekeyed = Rewriting("rekeyed", 1_000, 8)
    return document([outcome(2, 1)], growth, [rekeyed], runs, {"processor": "one"}, "kernels")


def test_a_query_is_shown_with_what_it_took_on_the_clock_and_of_the_processors() -> None:
    assert "| noop | 2 | 1 | **0.50** | ≤ 0.4 | no | 4 | 1 | 0.25 |" in whole([])


def test_how_often_queries_run_is_told_for_either_table() -> None:
    queries, growth = whole([]).split("## Growth")
    assert "runs 20 times unmeasured with each format, then 9 times" in " ".join(queries.split())
    assert "first 10 times unmeasured" in growth


def test_what_was_rewritten_is_shown_with_its_rate() -> None:
    assert "| rekeyed | 1,000 | 8 | 125 |" in whole([])


def test_a_size_is_added_behind_those_that_stand_there() -> None:
    small, large = Growth(1, 100, outcome(2, 1)), Growth(4, 10_000, outcome(100, 40))
    assert with_growth(whole([small]), large) == whole([small, large])


def test_a_size_that_was_measured_before_is_replaced() -> None:
    small, large = Growth(1, 100, outcome(2, 1)), Growth(4, 10_000, outcome(100, 40))
    before = whole([small, Growth(4, 10_000, outcome(1, 1))])
    assert with_growth(before, large) == whole([small, large])
