"""How long the most expensive requests of each API delay another client, on Barnabas and on Apache Kafka.

Fails if a request delays it by more than 50 ms beyond its wait on an idle broker. Such a request is repeated, and the
least of three delays counts, because the machine is shared.
"""

import argparse
import contextlib
import math
import sys
import time
from collections.abc import Iterator, Sequence

from barnabas.wire.codec import decode
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.schema import Message
from bench.stalls.bombs import bombs, joined_frames
from bench.stalls.client import FrameClient
from bench.stalls.forms import APIS, ELEMENTS_COUNT, forms, frame_of, namings
from bench.stalls.measured_broker import SETTINGS, state
from bench.stalls.probe import TOPIC, Probe
from interop import candidate, reference

DELAY_MS_MAX = 50.0
TRIES_COUNT = 3
IDLE_S = 5.0
ANSWER_TIMEOUT_S = 60.0

#: APIs that end state which others need.
LAST = ("DeleteAcls", "DeleteTopics", "PurgeTopics")

START = {"barnabas": candidate.barnabas, "kafka": reference.kafka}


def main(arguments: Sequence[str]) -> int:
    """Run the soak test; return 1 if another client was delayed for too long."""
    options = _options().parse_args(arguments)
    kept = ("authorizer.class.name", "super.users")
    settings = {key: SETTINGS[key] for key in kept} if options.broker == "barnabas" else {}
    with START[options.broker](settings) as broker:
        ids = _prepare(broker.bootstrap, options.topics)
        with Probe(broker.bootstrap) as probe:
            time.sleep(IDLE_S)
            idle_ms = probe.take_longest_ms()
            print(f"{options.broker}: idle, another client waits {idle_ms:.1f} ms at most", flush=True)
            requests = written(options, ids, broker.node_id)
            worst = _worst(broker.bootstrap, probe, requests, idle_ms, options.connections)
    return _report(worst, idle_ms)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.stalls.run", description=__doc__)
    parser.add_argument("--broker", choices=sorted(START), default="barnabas")
    parser.add_argument(
        "--topics", type=int, default=10_000, help="how many topics the broker has (default: 10000)"
    )
    parser.add_argument("--elements", type=int, default=ELEMENTS_COUNT, help="elements of each request")
    parser.add_argument("--api", action="append", help="only this API; may be given again")
    parser.add_argument(
        "--connections",
        type=int,
        default=1,
        help="how many connections send each request at a time (default: 1)",
    )
    names = sorted(namings(1))
    parser.add_argument("--naming", action="append", choices=names, help="only elements named so; likewise")
    return parser


def _prepare(bootstrap: str, topics_count: int) -> dict[str, bytes]:
    """Create the state; return the ids of all topics."""
    made = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    bombed = CreatableTopic(name="bombed", num_partitions=1, replication_factor=1)
    for request in (CreateTopicsRequest(topics=[made, bombed], timeout_ms=60_000), *state(topics_count)):
        with FrameClient(bootstrap) as client:
            client.ask(_frame(request))
    with FrameClient(bootstrap) as client:
        client.send(_frame(MetadataRequest(topics=None)))
        answer = client.receive_bytes()
    version = APIS[MetadataRequest.API_KEY].versions.last
    return {topic.name or "": topic.topic_id for topic in decode(MetadataResponse, version, answer, 5).topics}


def _frame(request: Message) -> bytes:
    spec = APIS[request.API_KEY]
    return frame_of(spec, request, spec.versions.last, 1)


def written(
    options: argparse.Namespace, ids: dict[str, bytes], broker_id: int
) -> Iterator[tuple[str, str, bytes, int]]:
    """Return (API, form, bytes to write, number of responses) of everything that is tried."""
    of_state = [topic_id for name, topic_id in ids.items() if name.startswith("topic-")]
    named = namings(options.topics)
    found = list(forms({name: named[name] for name in options.naming or named}, of_state, options.elements))
    for form in sorted(found, key=lambda form: form.spec.name in LAST):
        if options.broker == "kafka" and form.spec.api_key >= 32_000:
            continue
        if options.api is None or form.spec.name in options.api:
            frame = form.frame(1)
            yield form.spec.name, form.name, len(frame).to_bytes(4, "big") + frame, 1
    for name, requests in bombs("bombed", ids["bombed"], broker_id).items():
        api, _, form_name = name.partition(": ")
        if options.api is None or api in options.api:
            yield api, form_name, joined_frames(requests), len(requests)


def _worst(
    bootstrap: str,
    probe: Probe,
    written: Iterator[tuple[str, str, bytes, int]],
    idle_ms: float,
    connections_count: int,
) -> dict[str, tuple[float, str]]:
    """Return the longest delay of each API, and the form that caused it."""
    worst: dict[str, tuple[float, str]] = {}
    for api, name, data, answers_count in written:
        try:
            delay_ms = _delay_ms(bootstrap, probe, data, answers_count, connections_count)
            for _ in range(TRIES_COUNT - 1):
                if delay_ms > idle_ms + DELAY_MS_MAX:
                    delay_ms = min(
                        delay_ms, _delay_ms(bootstrap, probe, data, answers_count, connections_count)
                    )
        except (EOFError, ConnectionError):
            worst[api] = (math.inf, f"{name}: the other client lost its connection")
            print(f"  {api}, {name}: the other client lost its connection", flush=True)
            try:
                probe.restart()
            except (EOFError, ConnectionError):
                return worst
            continue
        worst[api] = max(worst.get(api, (0.0, "")), (delay_ms, name))
        if delay_ms > idle_ms + DELAY_MS_MAX:
            print(f"  {api}, {name}: {delay_ms:.1f} ms", flush=True)
    return worst


def _delay_ms(bootstrap: str, probe: Probe, data: bytes, answers_count: int, connections_count: int) -> float:
    """Return how long the other client waited at most, while each connection sends `data` and reads the answers."""
    probe.take_longest_ms()
    with contextlib.ExitStack() as stack:
        clients = [
            stack.enter_context(FrameClient(bootstrap, ANSWER_TIMEOUT_S)) for _ in range(connections_count)
        ]
        for client in clients:
            client.send_all(data)
        for client in clients:
            for _ in range(answers_count):
                if client.receive() is None:
                    break
    return probe.take_longest_ms()


def _report(worst: dict[str, tuple[float, str]], idle_ms: float) -> int:
    print(f"\n| {'API':<30} | longest delay, ms | form |\n| {'-' * 30} | ---: | --- |")
    for api, (delay_ms, name) in sorted(worst.items(), key=lambda item: -item[1][0]):
        print(f"| {api:<30} | {delay_ms:17.1f} | {name} |")
    return int(any(delay_ms > idle_ms + DELAY_MS_MAX for delay_ms, _ in worst.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
