"""Run Apache Kafka's own integration tests against Barnabas: ``python -m interop.kafka_tests.run [CLASS...]``.

Each class runs in a JVM of its own. Results are kept as JSON lines, a file for each class, in ``build/results``; at the
end they are written to docs/kafka-tests.md.
"""

import argparse
import re
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from interop.kafka_tests import report
from interop.kafka_tests.classify import Rule, classify, rules, stale
from interop.kafka_tests.former import classes
from interop.kafka_tests.harness import BUILD, CLASS_S, HERE, Harness, broker_classes, build, fetch

REPORT = HERE.parents[1] / "docs" / "kafka-tests.md"
REPORT_OF_SEVERAL = REPORT.with_name("kafka-tests-cluster.md")
DIRECTORIES = {"barnabas": BUILD / "results", "kafka": BUILD / "results-kafka"}
SEVERAL = BUILD / "results-several"


def run_classes(
    harness: Harness, names: Sequence[str], budget_s: float, known: Sequence[Rule], jobs_count: int = 1
) -> None:
    """Run the incomplete classes, in order and with this concurrency, until the time budget is spent."""
    end_s = time.monotonic() + budget_s
    missing = [name for name in names if not harness.results(name).complete]

    def run_class(name: str) -> None:
        started_s = time.monotonic()
        if started_s >= end_s:
            return
        run = harness.run(name, min(end_s - started_s, CLASS_S))
        counts = report.count([classify(each, known) for each in run.results.values()])
        state = "" if run.complete else " (not complete)"
        print(f"{time.monotonic() - started_s:6.1f} s  {name}: {report.summary(counts)}{state}", flush=True)

    with ThreadPoolExecutor(jobs_count) as pool:
        list(pool.map(run_class, missing))
    if left := [name for name in missing if not harness.results(name).complete]:
        print(f"{len(left)} classes are not complete; call again with --resume for them")


def write_report(harness: Harness, names: Sequence[str], known: Sequence[Rule]) -> None:
    """Write the report of everything that has been run, now or before.

    A class without results here keeps what the report has of it.
    """
    runs = {name: harness.results(name) for name in names if harness.results_path(name).exists()}
    classified = {
        name: [(each, classify(each, known)) for each in run.results.values()] for name, run in runs.items()
    }
    complete = {name for name, run in runs.items() if run.complete}
    if harness.several:
        classified = report.of_several(classified)
        text = report.document(classified, classified, complete, several=True)
        REPORT_OF_SEVERAL.write_text(text, encoding="utf-8")
    else:
        former = classes(REPORT.read_text(encoding="utf-8"), names) if REPORT.exists() else {}
        complete |= former.keys() - classified.keys()
        both = {name: (former | classified)[name] for name in names if name in former or name in classified}
        text = report.document(both, names, complete)
        REPORT.write_text(text, encoding="utf-8")


def print_failures(harness: Harness, names: Sequence[str], known: Sequence[Rule]) -> int:
    """Print unlisted failures, and return their number; also print listed tests that pass."""
    results = [each for name in names for each in harness.results(name).results.values()]
    failed = [each for each in results if classify(each, known).outcome == "failed"]
    for each in failed:
        print(f"FAILED {each.key} {each.name}\n    {each.message[:300]}\n    {each.log}")
    for rule in stale(known, results) if harness.broker == "barnabas" else ():
        print(f"known.toml: these tests pass now: {rule.tests.pattern}")
    return len(failed)


def main() -> int:
    """Build, run, report. The exit status is 1 if a test failed for a reason that is not listed."""
    options = _arguments()
    fetch()
    directory = SEVERAL if options.several else DIRECTORIES[options.against]
    harness = Harness(options.against, directory, several=options.several)
    known = rules()
    everything = broker_classes()
    names = [name for name in everything if any(re.search(each, name) for each in options.classes or [""])]
    if options.list:
        print("\n".join(names))
        return 0
    if not options.report:
        for name in [] if options.resume else names:
            harness.results_path(name).unlink(missing_ok=True)
        build()
        run_classes(harness, names, options.minutes * 60, known, options.jobs)
    if harness.broker == "barnabas":
        write_report(harness, everything, known)
    return 1 if print_failures(harness, names, known) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m interop.kafka_tests.run", description=__doc__)
    parser.add_argument("classes", nargs="*", help="regular expressions for names of classes (default: all)")
    parser.add_argument(
        "--resume", action="store_true", help="keep the results that are there; run what is missing"
    )
    parser.add_argument(
        "--report", action="store_true", help="run nothing; write the report of what has been run"
    )
    parser.add_argument("--list", action="store_true", help="print the names of the classes and end")
    parser.add_argument(
        "--minutes", type=float, default=600.0, help="stop when this time is over (default: 600)"
    )
    parser.add_argument("--jobs", type=int, default=3, help="classes that run at a time (default: 3)")
    parser.add_argument(
        "--against", choices=list(DIRECTORIES), default="barnabas", help="kafka: with Kafka's own harness"
    )
    parser.add_argument(
        "--several",
        action="store_true",
        help="start as many brokers as a test requests; the results are in a report of their own",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
