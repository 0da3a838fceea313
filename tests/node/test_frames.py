"""Random and damaged frames of every API do not hold the event loop for long, and memory stays bounded."""

import os
import time
from pathlib import Path

from bench.stalls.measured_broker import MeasuredBroker

from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from support.fuzz import Fuzzed, RandomRequests

#: `make soak-frames` sends a million.
FRAMES_COUNT = int(os.environ.get("SOAK_FRAMES", "5000"))

#: Frames after which the broker has all state that the requests can create.
WARM_COUNT = 2_000

HOLD_MS_MAX = 50.0
GROWTH_BYTES_MAX = 256 << 20


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_random_frames_delay_no_client_and_leak_nothing(tmp_path: Path) -> None:
    with MeasuredBroker(tmp_path, topics_count=20) as broker:
        topics = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in ("a", "b")]
        broker.ask(CreateTopicsRequest(topics=topics, timeout_ms=10_000))
        ids = [broker.server.broker.image.topics[name].topic_id for name in ("a", "b")]
        requests, fuzzed = RandomRequests(11, ids), Fuzzed(int(broker.bootstrap.rpartition(":")[2]))
        warm_bytes, started_s = 0, time.perf_counter()
        broker.take_longest()
        for number in range(FRAMES_COUNT):
            fuzzed.send(requests.garbage() if number % 20 == 0 else requests.frame(number))
            if number == WARM_COUNT:
                warm_bytes = resident_bytes()
        fuzzed.close()
        hold = broker.take_longest()
        print(
            f"{FRAMES_COUNT / (time.perf_counter() - started_s):.0f} frames/s, {fuzzed.answers_count} answered, "
            f"{fuzzed.closed_count} closed, {fuzzed.waiting_count} waited; resident {warm_bytes >> 20} MiB after "
            f"{WARM_COUNT}, {resident_bytes() >> 20} MiB at the end; longest hold {hold}"
        )
        assert hold.cpu_ms <= HOLD_MS_MAX, hold
        assert resident_bytes() - warm_bytes <= GROWTH_BYTES_MAX
        assert dict(broker.server.statistics.crashes) == {}
