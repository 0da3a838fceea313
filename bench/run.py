"""Measure Apache Kafka and Barnabas alternately: ``python bench/run.py [--quick] [--only NAME] [--rounds N]``."""

import argparse
import contextlib
import functools
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from interop.brokers import Broker  # noqa: E402
from interop.targets import START  # noqa: E402

from bench import acl_decisions, compaction_kernel, console, validation  # noqa: E402
from bench.measures import FULL, MEASURES, QUICK, Measure, Measured, Size  # noqa: E402
from bench.report import Result, document, machine, tables  # noqa: E402
from interop import candidate  # noqa: E402

#: The Barnabas of another clone.
BASE = "base"

DOCUMENT = ROOT / "docs" / "benchmarks.md"


@dataclass
class Contestant:
    """One side of the comparison and the results of its rounds."""

    label: str
    start: Callable[[Path, Mapping[str, str]], Broker]
    settings: Mapping[str, str] = field(default_factory=dict)
    rounds: list[Measured] = field(default_factory=list)
    broker: Broker | None = None

    @contextlib.contextmanager
    def running(self) -> Iterator[Broker]:
        """Run a broker of this kind on an empty directory."""
        home = Path(tempfile.mkdtemp(prefix=f"bench-{self.label}-"))
        try:
            broker = self.start(home, self.settings)
            try:
                yield broker
            finally:
                broker.stop()
        finally:
            shutil.rmtree(home)


def compare(measure: Measure, contestants: Sequence[Contestant], size: Size, rounds: int) -> list[Result]:
    """Warm up, then let the contestants alternate; return the results of the measurement's metrics."""
    with contextlib.ExitStack() as stack:
        if not measure.fresh_broker_each_round:
            for contestant in contestants:
                contestant.broker = stack.enter_context(contestant.running())
                measure.prepare(contestant.broker, size)
                show(measure, contestant, "warm-up", once(measure, contestant, size))
        for number in range(rounds):
            for contestant in turns(contestants, number):
                contestant.rounds.append(once(measure, contestant, size))
                show(measure, contestant, f"round {number + 1}/{rounds}", contestant.rounds[-1])
    baseline, barnabas = contestants
    return [
        Result(
            metric if baseline.label != BASE else replace(metric, target=None),  # targets are ratios to Kafka
            [each[name] for each in baseline.rounds],
            [each[name] for each in barnabas.rounds],
            against_itself=measure.against_itself,
        )
        for name, metric in measure.metrics.items()
    ]


def contestants_of(measure: Measure, against: str, base: Path | None) -> Sequence[Contestant]:
    """Return the baseline and its opponent.

    The baseline is Kafka, Barnabas without the measured settings, or the Barnabas of another clone (`base`).
    """
    settings = measure.settings.get(against, {})
    if base is not None:
        start = functools.partial(candidate.start, executable=base / ".venv" / "bin" / "barnabas")
        return Contestant(BASE, start, settings), Contestant(against, START[against], settings)
    if measure.against_itself:
        plain = Contestant("plain", START[against], measure.settings.get("plain", {}))
        return plain, Contestant(against, START[against], settings)
    kafka = Contestant("kafka", START["kafka"], measure.settings.get("kafka", {}))
    return kafka, Contestant(against, START[against], settings)


def turns(contestants: Sequence[Contestant], number: int) -> Sequence[Contestant]:
    """Alternate who goes first, so that neither always finds the machine as the other left it."""
    return contestants if number % 2 == 0 else contestants[::-1]


def once(measure: Measure, contestant: Contestant, size: Size) -> Measured:
    """Run one round of one contestant."""
    if contestant.broker is not None:
        return measure.run(contestant.broker, size)
    with contestant.running() as broker:
        measure.prepare(broker, size)
        return measure.run(broker, size)


def show(measure: Measure, contestant: Contestant, what: str, measured: Measured) -> None:
    """Print one line of progress."""
    values = "  ".join(
        f"{name} {value:,.3f} {measure.metrics[name].unit}" for name, value in measured.items()
    )
    print(f"{measure.name:14} {what:10} {contestant.label:12} {values}", flush=True)


def arguments() -> argparse.Namespace:
    names = [measure.name for measure in MEASURES]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a smoke run: small loads, one round, no document"
    )
    parser.add_argument(
        "--only", action="append", choices=names, help="this measure (repeatable), no document"
    )
    parser.add_argument("--rounds", type=int, help="default: 5, or 1 with --quick")
    parser.add_argument(
        "--against", choices=list(START), default="barnabas", help="what Kafka is compared with"
    )
    parser.add_argument(
        "--base",
        type=Path,
        metavar="CLONE",
        help="compare with the Barnabas of another clone, installed in its .venv, instead of Kafka",
    )
    parser.add_argument("--output", type=Path, help=f"default: {DOCUMENT.relative_to(ROOT)} for a full run")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT), os.environ.get("PYTHONPATH", "")]
    )  # for bench.policies
    size = QUICK if options.quick else FULL
    rounds = options.rounds or (1 if options.quick else 5)
    chosen = [measure for measure in MEASURES if measure.name in (options.only or [measure.name])]
    started_s = time.monotonic()
    results: list[Result] = []
    for measure in chosen:
        results += compare(measure, contestants_of(measure, options.against, options.base), size, rounds)
    baseline = BASE if options.base else "Kafka"
    print(f"\n{tables(results, baseline)}\n\n{time.monotonic() - started_s:.0f} s")
    whole = not (options.quick or options.only or options.base) and options.against == "barnabas"
    output = options.output or (DOCUMENT if whole else None)
    if output:
        report_text = document(
            results,
            rounds,
            machine(),
            acl_decisions.measure_all(),
            compaction_kernel.table(),
            validation.table(),
        )
        output.write_text(console.with_section(report_text, console.section()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
