"""Measure TLS, logins and ACLs on Apache Kafka and Barnabas: ``python -m bench.tls.run [--quick] [--only NAME]``."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.measures import Measure
from bench.report import Result, machine
from bench.run import ROOT, Contestant, compare
from bench.tls.listeners import PLAINTEXT, Site
from bench.tls.measures import FULL, QUICK, measures
from bench.tls.report import Cost, document

DOCUMENT = ROOT / "docs" / "benchmarks-tls.md"


def contestants_of(measure: Measure, site: Site) -> Sequence[Contestant]:
    """Return Kafka and Barnabas, or Barnabas without and with the measured settings."""
    if measure.against_itself:
        guarded = measure.settings["barnabas"]
        return Contestant("plain", site.start("barnabas")), Contestant(
            "barnabas", site.start("barnabas"), guarded
        )
    return Contestant("kafka", site.start("kafka")), Contestant("barnabas", site.start("barnabas"))


def costs_of(measure: Measure, results: Sequence[Result]) -> list[Cost]:
    """Compare the metrics of a measure in each security mode with that of its kind as plaintext."""
    by_name = dict(zip(measure.metrics, results, strict=True))
    return [
        Cost(result, by_name[plain])
        for plain in by_name
        if plain.endswith(PLAINTEXT.text) and not by_name[plain].metric.more_is_better
        for name, result in by_name.items()
        if name.startswith(plain.removesuffix(PLAINTEXT.text))
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a smoke run: small loads, one round, no document"
    )
    parser.add_argument("--only", action="append", help="this measure (repeatable), no document")
    parser.add_argument("--rounds", type=int, help="default: 3, or 1 with --quick")
    options = parser.parse_args()
    rounds = options.rounds or (1 if options.quick else 3)
    load_before = os.getloadavg()[0]
    started_s = time.monotonic()
    results: list[Result] = []
    costs: list[Cost] = []
    with tempfile.TemporaryDirectory(prefix="bench-tls-") as directory:
        site = Site(Path(directory))
        for measure in measures(site):
            if measure.name not in (options.only or [measure.name]):
                continue
            found = compare(measure, contestants_of(measure, site), QUICK if options.quick else FULL, rounds)
            results += found
            if not measure.against_itself:
                costs += costs_of(measure, found)
    loads = f"{load_before:.1f} before, {os.getloadavg()[0]:.1f} at the end"
    text = document(results, costs, rounds, {**machine(), "load": loads})
    print(f"\n{text}\n{time.monotonic() - started_s:.0f} s")
    if not (options.quick or options.only):
        DOCUMENT.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
