"""Parts of the report are measured separately, and replace what was there before."""

from bench.measures import Metric
from bench.report import Result
from bench.spark.report import (
    SLOTS_HEAD,
    Growth,
    Outcome,
    Runs,
    document,
    with_growth,
    with_section,
    work_section,
)
from bench.spark.rewriting import Rewriting

METRIC = Metric("noop", "s", 0.4)
RUNS = Runs(unmeasured=20, unmeasured_work=5, unmeasured_growth=10, measured=9)


def outcome(theirs_s: float, ours_s: float) -> Outcome:
    return Outcome(Result(METRIC, [theirs_s], [ours_s]), Result(METRIC, [2 * theirs_s], [ours_s]))


def whole(growth: list[Growth]) -> str:
    rekeyed = Rewriting("rekeyed", 1_000, 8)
    return document(
        [outcome(2, 1)], [outcome(8, 6)], growth, [rekeyed], RUNS, {"processor": "one"}, "kernels"
    )


def test_a_query_has_its_wall_time_and_cpu_time() -> None:
    assert "| noop | 2 | 1 | **0.50** | ≤ 0.4 | no | 4 | 1 | 0.25 |" in whole([])


def test_each_table_has_its_number_of_runs() -> None:
    queries, growth = whole([]).split("## Growth")
    assert "runs 20 times unmeasured with each format, then 9 times" in " ".join(queries.split())
    assert "first 10 times unmeasured" in growth


def test_rewrites_have_their_rates() -> None:
    assert "| rekeyed | 1,000 | 8 | 125 |" in whole([])


def test_a_new_size_is_appended() -> None:
    small, large = Growth(1, 100, outcome(2, 1)), Growth(4, 10_000, outcome(100, 40))
    assert with_growth(whole([small]), large) == whole([small, large])


def test_a_size_that_was_measured_before_is_replaced() -> None:
    small, large = Growth(1, 100, outcome(2, 1)), Growth(4, 10_000, outcome(100, 40))
    before = whole([small, Growth(4, 10_000, outcome(1, 1))])
    assert with_growth(before, large) == whole([small, large])


def test_a_section_is_placed_before_growth_and_replaced_later() -> None:
    first, second = f"{SLOTS_HEAD}\nfirst\n\n", f"{SLOTS_HEAD}\nsecond\n\n"
    once = with_section(whole([]), first)
    assert f"{first}## Growth\n" in once
    assert with_section(once, second) == with_section(whole([]), second)


def test_a_section_replaces_only_the_one_with_the_same_heading() -> None:
    work = work_section([outcome(3, 1)], RUNS, {"processor": "any"})
    assert with_section(with_section(whole([]), f"{SLOTS_HEAD}\nslots\n\n"), work).count("slots\n") == 1
