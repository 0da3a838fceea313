"""Response times of console pages with 10,000 topics: ``python -m bench.console [--document]``.

A broker and a console run in processes of their own; one client requests one page after the other over one HTTP
connection. The time is from the request to the last byte of the page.
"""

import argparse
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
from interop.brokers import free_ports

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.client.blocking import BlockingClient
from interop import candidate

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
HEADING = "## The console"
TOPICS_COUNT = 10_000
GROUPS_COUNT = 500
REQUESTS_COUNT = 200
_WARM_UPS_COUNT = 5
_BATCH = 500
_START_S = 20.0

PAGES = {
    "overview": "/",
    "list of topics": "/topics",
    "list of topics sorted by health, page 100": "/topics?sort=-health&page=100",
    "search, while the user types": "/topics?q=ders-000",
    "a topic": "/topics/orders-00077",
    "list of groups, with lags": "/groups",
    "a group": "/groups/readers-007",
    "audit": "/audit",
}


@dataclass(frozen=True)
class Timing:
    """Response times of one page in ms, and its size."""

    page: str
    times_ms: Sequence[float]
    size_bytes: int

    def percentile(self, percent: int) -> float:
        """Return the time within which this percentage of the requests was answered."""
        ordered = sorted(self.times_ms)
        return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def fill(bootstrap: str, topics_count: int, groups_count: int) -> None:
    """Create topics of one partition, and groups that have committed offsets for ten of them each."""
    names = [f"orders-{number:05d}" for number in range(topics_count)]
    with BlockingClient(bootstrap) as client:
        for begin in range(0, topics_count, _BATCH):
            batch = [NewTopic(name, 1, 1) for name in names[begin : begin + _BATCH]]
            raise_errors(client.admin.create_topics(batch).values())
        for number in range(groups_count):
            offsets = {TopicPartition(names[(number * 10 + each) % topics_count], 0): 0 for each in range(10)}
            raise_errors(client.groups.commit_offsets(f"readers-{number:03d}", offsets).values())


@contextlib.contextmanager
def serving(bootstrap: str) -> Iterator[str]:
    """Run `barnabas console`; return its address once it responds."""
    listen = f"127.0.0.1:{free_ports(1)[0]}"
    command = [str(candidate.COMMAND), "console", "--bootstrap", bootstrap, "--listen", listen]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline_s = time.monotonic() + _START_S
        while True:
            try:
                httpx.get(f"http://{listen}/", timeout=_START_S)
                break
            except httpx.TransportError:
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(0.05)
        yield f"http://{listen}"
    finally:
        process.terminate()
        process.wait()


def measure(address: str, requests_count: int) -> list[Timing]:
    """Request each page this many times."""
    timings = []
    with httpx.Client(base_url=address, timeout=60) as visitor:
        for page, path in PAGES.items():
            times_ms, size_bytes = [], 0
            for number in range(_WARM_UPS_COUNT + requests_count):
                started_s = time.perf_counter()
                answer = visitor.get(path)
                took_ms = (time.perf_counter() - started_s) * 1000
                answer.raise_for_status()
                size_bytes = len(answer.content)
                if number >= _WARM_UPS_COUNT:
                    times_ms.append(took_ms)
            timings.append(Timing(page, times_ms, size_bytes))
    return timings


def table(timings: Sequence[Timing]) -> str:
    """Format the measurements as a Markdown table."""
    lines = ["| page | median, ms | p95, ms | slowest, ms | KiB |", "|---|---|---|---|---|"]
    for each in timings:
        times = " | ".join(f"{each.percentile(percent):.1f}" for percent in (50, 95, 100))
        lines.append(f"| {each.page} | {times} | {each.size_bytes / 1024:.0f} |")
    return "\n".join(lines)


def section(
    topics_count: int = TOPICS_COUNT,
    groups_count: int = GROUPS_COUNT,
    requests_count: int = REQUESTS_COUNT,
) -> str:
    """Start everything, measure, and return the section for docs/benchmarks.md."""
    with tempfile.TemporaryDirectory(prefix="bench-console-") as home:
        broker = candidate.start(Path(home))
        try:
            fill(broker.bootstrap, topics_count, groups_count)
            with serving(broker.bootstrap) as address:
                timings = measure(address, requests_count)
        finally:
            broker.stop()
    return f"""{HEADING}
Pages of `barnabas console` on a cluster of {topics_count:,} topics and {groups_count:,} groups, each requested
{requests_count} times, one after the other: the time from the request to the last byte (`bench/console.py`). Broker,
console and client share the machine. The client uses one session, which caches some data (topics for some seconds, the
audit up to the last event that was read).

{table(timings)}
"""


def with_section(document: str, text: str) -> str:
    """Return the document with this section in place of the previous one, or at its end."""
    before, heading, rest = document.partition(f"{HEADING}\n")
    _, further, after = rest.partition("\n## ") if heading else ("", "", "")
    return f"{before.rstrip()}\n\n{text.rstrip()}\n{further}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=TOPICS_COUNT)
    parser.add_argument("--groups", type=int, default=GROUPS_COUNT)
    parser.add_argument("--requests", type=int, default=REQUESTS_COUNT)
    parser.add_argument(
        "--document", action="store_true", help=f"write the section {HEADING!r} of docs/{DOCUMENT.name}"
    )
    options = parser.parse_args()
    text = section(options.topics, options.groups, options.requests)
    print(text)
    if options.document:
        DOCUMENT.write_text(with_section(DOCUMENT.read_text(encoding="utf-8"), text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
