"""docs/kafka-tests.md: the report of Kafka's own tests."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from interop.kafka_tests.classify import KINDS, Classification
from interop.kafka_tests.results import Result

Classified = Mapping[str, Sequence[tuple[Result, Classification]]]

_HEAD = """\
# Apache Kafka's own tests

Kafka 4.3.1 publishes its integration tests as jars. `make kafka-tests` runs them against Barnabas: for each test that
starts a broker, the harness starts a `barnabas serve`, and the test uses it with Kafka's clients, tools or raw
requests. This page is generated from the results. [differences.md](differences.md) explains the differences.

    make kafka-tests ARGS='--jobs 4'                  # all classes, four at a time: about an hour
    make kafka-tests ARGS='FetchRequestTest'          # classes whose names match; the others keep their lines
    make kafka-tests ARGS='--resume --minutes 30'     # continue an earlier run
    make kafka-tests ARGS='--against kafka NAME'      # the same tests with Kafka's own harness
    make kafka-tests ARGS='--several NAME'            # as many brokers as a test requests: kafka-tests-cluster.md

## How the tests run
- Classes that start a broker are found in their class files: methods with `@ClusterTest` or `@ClusterTemplate`,
  subclasses of `QuorumTestHarness`, and code that creates a `KafkaClusterTestKit`. Tests without a broker are not
  run, nor are the tests of Kafka Streams, Connect and MirrorMaker, which are in other jars.
- Each class runs in its own JVM for at most 30 minutes, and each test for at most two minutes.
- Properties of a cluster are passed with `--set`. The audit topic is disabled (`barnabas.audit.enable=false`).
- A test that requests several brokers gets one, and its topics have one replica; the configuration of any of them is
  that of the one. If it passes, this only shows what clients see, and nothing about replication; such tests have a
  separate column.
- A call to the objects of a broker in the JVM ends the test as not applicable, unless the admin API can answer it.
- If a Java class derives the principal of a client, the harness calls that class and logs in for the client with
  SASL/PLAIN. If it reads the client's certificate, the harness sets `ssl.principal.mapping.rules` to the same effect.
- The keystores and truststores of tests are PKCS#12, not JKS. OAUTHBEARER accepts unsigned tokens where the test does
  (`barnabas.sasl.oauthbearer.unsecured=true`). Counts of logins, which tests read in the JVM, are those of `/metrics`.
- Tests that Kafka runs twice, on combined and on isolated nodes, are counted once.
"""


_HEAD_OF_SEVERAL = """\
# Apache Kafka's own tests, with several brokers

`make kafka-tests ARGS='--several'` gives each of [Kafka's tests](kafka-tests.md) as many brokers as it requests, over a
metadata store that they share. This page has the tests that request more than one, and is generated from the results.
"""


def count(classifications: Iterable[Classification]) -> Counter[str]:
    """Return the number of tests in each class."""
    return Counter(each.outcome for each in classifications if each.outcome != "not counted")


def summary(counts: Mapping[str, int]) -> str:
    """Return the counts as a phrase for the terminal."""
    return ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items())) or "no tests"


def of_several(classified: Classified) -> Classified:
    """Return the tests that request several brokers."""
    chosen = {name: [each for each in tests if each[0].brokers > 1] for name, tests in classified.items()}
    return {name: tests for name, tests in chosen.items() if tests}


def document(
    classified: Classified,
    known_classes: Collection[str],
    complete: Collection[str],
    *,
    several: bool = False,
) -> str:
    """Return the whole report.

    :param several: Each test had as many brokers as it requested.
    """
    parts = [
        _HEAD_OF_SEVERAL if several else _HEAD,
        _totals(classified),
        _classes(classified, complete),
        _failures(classified),
        _kinds(classified),
    ]
    return "\n".join([*parts, *_missing(set(known_classes) - set(complete))])


def _missing(names: Collection[str]) -> list[str]:
    if not names:
        return []
    short = ", ".join(sorted(_short(name) for name in names))
    return [f"## Not complete\n{len(names)} classes: {short}.\n"]


def _short(class_name: str) -> str:
    return class_name.rpartition(".")[2]


def _all(classified: Classified) -> list[tuple[Result, Classification]]:
    return [each for tests in classified.values() for each in tests if each[1].outcome != "not counted"]


def _totals(classified: Classified) -> str:
    everything = _all(classified)
    counts = count(classification for _, classification in everything)
    applicable = sum(counts.values()) - counts["not applicable"]
    share = 100 * counts["passed"] / applicable if applicable else 0.0
    return (
        "## Totals\n"
        f"{len(everything):,} tests in {len(classified)} classes; "
        f"{counts['not applicable']:,} do not apply to Barnabas. "
        f"Of the {applicable:,} that do, {counts['passed']:,} pass ({share:.1f} %), {counts['listed']} fail for a "
        f"reason listed below, {counts['failed']} for an unknown reason.\n"
    )


def _classes(classified: Classified, complete: Collection[str]) -> str:
    lines = [
        "## Classes\n",
        "| class | tests | passed | of these, with several brokers | failed | not applicable |",
        "|---|---|---|---|---|---|",
    ]
    names = Counter(_short(name) for name in classified)
    for name, tests in sorted(classified.items(), key=lambda each: (_short(each[0]), each[0])):
        counted = [each for each in tests if each[1].outcome != "not counted"]
        label = _short(name) if names[_short(name)] == 1 else name
        short = label + ("" if name in complete else " (not complete)")
        lines.append(f"| {' | '.join([short, str(len(counted)), *_cells(counted)])} |")
    lines.append(f"| {' | '.join(['**all**', str(len(_all(classified))), *_cells(_all(classified))])} |")
    return "\n".join(lines) + "\n"


def _cells(tests: Sequence[tuple[Result, Classification]]) -> list[str]:
    counts = count(classification for _, classification in tests)
    collapsed = sum(
        1 for result, classification in tests if classification.outcome == "passed" and result.brokers > 1
    )
    kinds = Counter(
        classification.kind for _, classification in tests if classification.outcome == "not applicable"
    )
    reasons = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
    failed = counts["listed"] + counts["failed"]
    return [str(counts["passed"] or ""), str(collapsed or ""), str(failed or ""), reasons]


def _failures(classified: Classified) -> str:
    by_reason: dict[str, dict[str, int]] = {}
    unknown: list[str] = []
    for result, classification in _all(classified):
        short = f"{_short(result.class_name)}.{result.method}"
        if classification.outcome == "listed":
            tests = by_reason.setdefault(classification.reason, {})
            tests[short] = tests.get(short, 0) + 1
        elif classification.outcome == "failed":
            unknown.append(f"- {short}: `{_one_line(result.message)}`\n")
    lines = ["## Failures\n", "| reason | tests |\n", "|---|---|\n"]
    for reason, tests in by_reason.items():
        names = ", ".join(
            name if number == 1 else f"{name} ({number})" for name, number in sorted(tests.items())
        )
        lines.append(f"| {reason} | {names} |\n")
    if unknown:
        lines += ["\nNot analysed yet:\n\n", *sorted(set(unknown))]
    return "".join(lines)


def _one_line(message: str) -> str:
    text = " ".join(message.split()).replace("`", "'")
    return text if len(text) <= 200 else text[:200] + "…"


def _kinds(classified: Classified) -> str:
    counts = Counter(j.kind for _, j in _all(classified) if j.outcome == "not applicable")
    lines = ["## Not applicable\n", "| kind | tests | meaning |\n", "|---|---|---|\n"]
    lines += [f"| {kind} | {counts[kind]} | {meaning} |\n" for kind, meaning in KINDS.items() if counts[kind]]
    return "".join(lines)
