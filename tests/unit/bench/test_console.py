from bench.console import Timing, table, with_section


def test_percentiles_are_of_requests_ordered_by_time() -> None:
    timing = Timing("a page", [float(number) for number in range(200, 0, -1)], 2048)
    assert [timing.percentile(percent) for percent in (50, 95, 100)] == [101.0, 191.0, 200.0]
    assert table([timing]).splitlines()[-1] == "| a page | 101.0 | 191.0 | 200.0 | 2 |"


def test_a_section_replaces_the_previous_one() -> None:
    section = "## The console\nnew\n"
    assert with_section("# Benchmarks\n\ntext\n", section) == "# Benchmarks\n\ntext\n\n## The console\nnew\n"
    old = "# Benchmarks\n\n## The console\nold\n\n## Plans\nkept\n"
    once = with_section(old, section)
    assert once == "# Benchmarks\n\n## The console\nnew\n\n## Plans\nkept\n"
    assert with_section(once, section) == once
