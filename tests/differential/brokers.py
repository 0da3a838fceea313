"""The two brokers, started with the same settings."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from interop.brokers import Broker

from barnabas import api
from barnabas.api import registry
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.schema import Message, Versions
from differential.sides import Side
from differential.world import Pair
from interop import candidate, reference

START_TIMEOUT_S = 30.0

#: GetTelemetrySubscriptions and PushTelemetry: Kafka answers them, but advertises them only with a plugin.
UNADVERTISED = frozenset({71, 72})

SETTINGS = {
    "node.id": "1",
    "log.retention.ms": "-1",  # the records of the tests are from 1970
    "max.incremental.fetch.session.cache.slots": "100000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.consumer.assignment.interval.ms": "0",
    # members that a test leaves behind do not expire while another test lists groups
    "group.consumer.session.timeout.ms": "3600000",
    "group.consumer.max.session.timeout.ms": "3600000",
}
#: Settings of the reference that Barnabas does not have by default.
SHARED = {
    key: value
    for key, value in reference.SERVER_PROPERTIES.items()
    if key not in ("process.roles", "controller.listener.names", "listener.security.protocol.map")
} | {"barnabas.audit.enable": "false"}  # the reference does not have its topic


@contextmanager
def pair_of_brokers(
    home: Path,
    settings: Mapping[str, str] = SETTINGS,
    *,
    with_coordinators: bool = True,
    end: Callable[[Broker], int] = Broker.stop,
) -> Iterator[Pair]:
    """Run both brokers in directories below `home`, after or before the topics of coordinators are created."""
    with ExitStack() as stack:
        kafka = reference.start(home / "kafka", dict(settings) | log_dirs(home / "kafka"))
        stack.callback(end, kafka)
        mine = SHARED | dict(settings) | log_dirs(home / "barnabas")
        barnabas = candidate.start(home / "barnabas", mine)
        stack.callback(end, barnabas)
        left = Side("kafka", kafka.bootstrap, home=home / "kafka")
        right = Side("barnabas", barnabas.bootstrap, home=home / "barnabas")
        stack.callback(left.disconnect)
        stack.callback(right.disconnect)
        for side in (left, right):
            wait_for_producer_ids(side)
            if with_coordinators:
                wait_for_coordinators(side)
        yield Pair(left, right, served_by_both(left))


def log_dirs(home: Path) -> dict[str, str]:
    """Return two log directories, of which the second is cordoned: both brokers put everything into the first."""
    data, more = home / "data", home / "more"
    return {"log.dirs": f"{data},{more}", "cordoned.log.dirs": str(more)}


def wait_for_producer_ids(side: Side) -> None:
    """Wait until Kafka has producer ids, which it lacks for a moment after its start."""
    wait_for(side, InitProducerIdRequest(None, transaction_timeout_ms=60_000), InitProducerIdResponse, 4)


def wait_for_coordinators(side: Side) -> None:
    """Create the topics of coordinators by requesting coordinators."""
    for key_type in (0, 1):
        wait_for(side, FindCoordinatorRequest("any", key_type), FindCoordinatorResponse, 2)


def has_no_error(answer: Message | None) -> bool:
    return getattr(answer, "error_code", None) == ErrorCode.NONE


def wait_for(
    side: Side,
    request: Message,
    response: type[Message],
    version: int,
    is_ready: Callable[[Any], bool] = has_no_error,
) -> None:
    """Repeat a request until the response is ready: by default, until it has no error."""
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while not is_ready(side.exchange(request, response, version).body):
        assert time.monotonic() < deadline_s, f"{side.name} is not ready for {request}"
        time.sleep(0.05)


#: UpdateRaftVoter, which Apache Kafka serves on controller listeners only.
OF_CONTROLLERS = frozenset({82})


def served_by_both(kafka: Side) -> dict[int, registry.ApiSpec]:
    """Return the APIs of Barnabas in the versions that Kafka advertises, too."""
    answer = kafka.exchange(ApiVersionsRequest(), ApiVersionsResponse, 0).body
    assert isinstance(answer, ApiVersionsResponse)
    kafkas = {each.api_key: each for each in answer.api_keys}
    specs = {}
    for api_key, spec in registry.build(api).items():
        if api_key not in kafkas:
            continue  # ApiVersions is compared as well
        first = max(spec.versions.first, kafkas[api_key].min_version)
        last = min(spec.versions.last, kafkas[api_key].max_version)
        specs[api_key] = replace(spec, versions=Versions(first, last))
    return specs
