"""docs/kafka-tests.md: the report card of Kafka's own tests."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from interop.kafka_tests.classify import KINDS, Judgement
from interop.kafka_tests.results import Result

Judged = Mapping[str, Sequence[tuple[Result, Judgement]]]

_HEAD = """\
# Apache Kafka's own tests

Kafka 4.3.1 publishes its integration tests as jars. `make kafka-tests` runs them against Barnabas: each test that
starts a broker gets a `barnabas serve` of its own, and talks to it with Kafka's clients, tools or raw requests. This
page is made from the results. [differences.md](differences.md) says more about the differences.

    make kafka-tests ARGS='--jobs 4'                  # all classes, four at a time: about an hour
    make kafka-tests ARGS='FetchRequestTest'          # classes whose names match
    make kafka-tests ARGS='--resume --minutes 30'     # go on where an earlier run stopped
    make kafka-tests ARGS='--against kafka NAME'      # the same tests with Kafka's own harness

## How the tests run
- Classes that start a broker are found by what their class files say: methods with `@ClusterTest` or
  `@ClusterTemplate`, subclasses of `QuorumTestHarness`, and what makes a `KafkaClusterTestKit`. Tests that need no
  broker are not run. Nor are those of Kafka Streams, Connect and MirrorMaker, which have jars of their own.
- Each class has a JVM of its own and at most 30 minutes, each test two minutes.
- Properties of a cluster become `--set`. The audit topic is off (`barnabas.audit.enable=false`).
- A test that asks for several brokers gets one, and its topics one replica. What passes so says what clients see, and
  nothing about replication; it is counted in a column of its own.
- A call into the objects of a JVM broker ends the test as not applicable, unless the admin API answers it.
- Where a Java class decides who a client is, the harness asks that class and logs in for the client with SASL/PLAIN.
- Tests that Kafka runs twice, on combined and on isolated nodes, are counted once.
"""


def count(judgements: Iterable[Judgement]) -> Counter[str]:
    """Return how many tests have each outcome."""
    return Counter(each.outcome for each in judgements if each.outcome != "not counted")


def summary(counts: Mapping[str, int]) -> str:
    """Return the counts as a phrase for the terminal."""
    return ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items())) or "no tests"


def document(judged: Judged, known_classes: Collection[str], complete: Collection[str]) -> str:
    """Return the whole report."""
    parts = [_HEAD, _totals(judged), _classes(judged, complete), _failures(judged), _kinds(judged)]
    return "\n".join([*parts, *_missing(set(known_classes) - set(complete))])


def _missing(names: Collection[str]) -> list[str]:
    if not names:
        return []
    short = ", ".join(sorted(_short(name) for name in names))
    return [f"## Not run to the end yet\n{len(names)} classes: {short}.\n"]


def _short(class_name: str) -> str:
    return class_name.rpartition(".")[2]


def _all(judged: Judged) -> list[tuple[Result, Judgement]]:
    return [each for tests in judged.values() for each in tests if each[1].outcome != "not counted"]


def _totals(judged: Judged) -> str:
    everything = _all(judged)
    counts = count(judgement for _, judgement in everything)
    applicable = sum(counts.values()) - counts["not applicable"]
    share = 100 * counts["passed"] / applicable if applicable else 0.0
    return (
        "## Totals\n"
        f"{len(everything):,} tests in {len(judged)} classes; {counts['not applicable']:,} do not apply to Barnabas. "
        f"Of the {applicable:,} that do, {counts['passed']:,} pass ({share:.1f} %), {counts['listed']} fail for a "
        f"reason listed below, {counts['failed']} for one that is not known yet.\n"
    )


def _classes(judged: Judged, complete: Collection[str]) -> str:
    lines = [
        "## Classes\n",
        "| class | tests | passed | of those asked for several brokers | failed | not applicable |",
        "|---|---|---|---|---|---|",
    ]
    names = Counter(_short(name) for name in judged)
    for name, tests in sorted(judged.items(), key=lambda each: (_short(each[0]), each[0])):
        counted = [each for each in tests if each[1].outcome != "not counted"]
        label = _short(name) if names[_short(name)] == 1 else name
        short = label + ("" if name in complete else " (not complete)")
        lines.append(f"| {' | '.join([short, str(len(counted)), *_cells(counted)])} |")
    lines.append(f"| {' | '.join(['**all**', str(len(_all(judged))), *_cells(_all(judged))])} |")
    return "\n".join(lines) + "\n"


def _cells(tests: Sequence[tuple[Result, Judgement]]) -> list[str]:
    counts = count(judgement for _, judgement in tests)
    collapsed = sum(1 for result, judgement in tests if judgement.outcome == "passed" and result.brokers > 1)
    kinds = Counter(judgement.kind for _, judgement in tests if judgement.outcome == "not applicable")
    reasons = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
    failed = counts["listed"] + counts["failed"]
    return [str(counts["passed"] or ""), str(collapsed or ""), str(failed or ""), reasons]


def _failures(judged: Judged) -> str:
    by_reason: dict[str, dict[str, int]] = {}
    unknown: list[str] = []
    for result, judgement in _all(judged):
        short = f"{_short(result.class_name)}.{result.method}"
        if judgement.outcome == "listed":
            tests = by_reason.setdefault(judgement.reason, {})
            tests[short] = tests.get(short, 0) + 1
        elif judgement.outcome == "failed":
            unknown.append(f"- {short}: `{_one_line(result.message)}`\n")
    lines = ["## Failures\n", "| why | tests |\n", "|---|---|\n"]
    for reason, tests in by_reason.items():
        names = ", ".join(
            name if number == 1 else f"{name} ({number})" for name, number in sorted(tests.items())
        )
        lines.append(f"| {reason} | {names} |\n")
    if unknown:
        lines += ["\nNot looked into yet:\n\n", *sorted(set(unknown))]
    return "".join(lines)


def _one_line(message: str) -> str:
    text = " ".join(message.split()).replace("`", "'")
    return text if len(text) <= 200 else text[:200] + "…"


def _kinds(judged: Judged) -> str:
    counts = Counter(j.kind for _, j in _all(judged) if j.outcome == "not applicable")
    lines = ["## Not applicable\n", "| kind | tests | what it means |\n", "|---|---|---|\n"]
    lines += [f"| {kind} | {counts[kind]} | {meaning} |\n" for kind, meaning in KINDS.items() if counts[kind]]
    return "".join(lines)
