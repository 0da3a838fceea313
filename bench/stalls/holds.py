"""How long the most expensive requests of each API hold Barnabas's event loop, in CPU time of its thread.

The broker runs in this process, and other processes on the machine do not count. Fails if a request holds the loop for
more than 50 ms; the least of three attempts counts, because code may be compiled meanwhile.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from bench.process import anonymous_bytes
from bench.stalls.forms import ELEMENTS_COUNT
from bench.stalls.measured_broker import MeasuredBroker
from bench.stalls.measured_loop import Hold
from bench.stalls.run import TRIES_COUNT, written

HOLD_MS_MAX = 50.0
SWITCH_INTERVAL_S = 0.001


def main(arguments: Sequence[str]) -> int:
    """Run the soak test; return 1 if a request held the loop for too long."""
    parser = argparse.ArgumentParser(prog="bench.stalls.holds", description=__doc__)
    parser.add_argument(
        "--topics", type=int, default=10_000, help="how many topics the broker has (default: 10000)"
    )
    parser.add_argument("--elements", type=int, default=ELEMENTS_COUNT, help="elements of each request")
    parser.add_argument("--api", action="append", help="only this API; may be given again")
    parser.add_argument("--naming", action="append", help="only elements named so; likewise")
    options = parser.parse_args(arguments, argparse.Namespace(broker="barnabas"))
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with tempfile.TemporaryDirectory() as data, MeasuredBroker(Path(data), options.topics) as broker:
        bombed = CreatableTopic(name="bombed", num_partitions=1, replication_factor=1)
        broker.ask(CreateTopicsRequest(topics=[bombed], timeout_ms=10_000))
        worst = _worst(broker, options)
    print(f"\n| {'API':<30} | longest hold, ms | form |\n| {'-' * 30} | ---: | --- |")
    for api, (hold, name) in sorted(worst.items(), key=lambda item: -item[1][0].cpu_ms):
        print(f"| {api:<30} | {hold.cpu_ms:16.1f} | {name} |")
    return int(any(hold.cpu_ms > HOLD_MS_MAX for hold, _ in worst.values()))


def _worst(broker: MeasuredBroker, options: argparse.Namespace) -> dict[str, tuple[Hold, str]]:
    """Return the longest hold of each API, and the form that caused it."""
    worst: dict[str, tuple[Hold, str]] = {}
    ids = {name: topic.topic_id for name, topic in broker.server.broker.image.topics.items()}
    for api, name, data, answers_count in written(options, ids, 1):
        started_s = time.perf_counter()
        hold = broker.hold_of(data, answers_count)
        for _ in range(TRIES_COUNT - 1):
            if hold.cpu_ms > HOLD_MS_MAX:
                hold = min(hold, broker.hold_of(data, answers_count))
        worst[api] = max(worst.get(api, (Hold(0.0, ""), "")), (hold, name))
        if hold.cpu_ms > HOLD_MS_MAX / 2:
            took_s, memory = time.perf_counter() - started_s, anonymous_bytes(os.getpid()) >> 20
            print(f"  {api}, {name}: {hold}, took {took_s:.1f} s, {memory} MiB", flush=True)
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
