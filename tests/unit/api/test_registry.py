import sys
import types
from collections.abc import Iterator
from types import ModuleType

import pytest

from barnabas.api.registry import build, serves
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.index import APIS
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.produce import ProduceResponse
from barnabas.wire.schema import Message, Versions
from support.nodes import APIS as SERVED
from support.nodes import KAFKA_APIS

TABLE = KAFKA_APIS

#: What Apache Kafka 4.3.1 serves on a broker's listener, except delegation tokens, share and streams groups:
#: api key -> (first version, last, first flexible one).
KAFKA_4_3_1 = {
    0: (3, 13, 9), 1: (4, 18, 12), 2: (1, 11, 6), 3: (0, 13, 9), 8: (2, 10, 8), 9: (1, 10, 6),
    10: (0, 6, 3), 11: (0, 9, 6), 12: (0, 4, 4), 13: (0, 5, 4), 14: (0, 5, 4), 15: (0, 6, 5), 16: (0, 5, 3),
    17: (0, 1, None), 18: (0, 4, 3), 19: (2, 7, 5), 20: (1, 6, 4), 21: (0, 2, 2), 22: (0, 6, 2),
    23: (2, 4, 4), 24: (0, 5, 3), 25: (0, 4, 3), 26: (0, 5, 3), 27: (1, 2, 1), 28: (0, 5, 3), 29: (1, 3, 2),
    30: (1, 3, 2), 31: (1, 3, 2), 32: (1, 4, 4), 33: (0, 2, 2), 34: (1, 2, 2), 35: (1, 5, 2), 36: (0, 2, 2),
    37: (0, 3, 2), 38: (1, 3, 2), 39: (1, 2, 2), 40: (1, 2, 2), 41: (1, 3, 2), 42: (0, 2, 2), 43: (0, 2, 2),
    44: (0, 1, 1), 45: (0, 1, 0), 46: (0, 0, 0), 47: (0, 0, None), 48: (0, 1, 1), 49: (0, 1, 1),
    50: (0, 0, 0), 51: (0, 0, 0), 55: (0, 2, 0), 57: (0, 2, 0), 60: (0, 2, 0), 61: (0, 0, 0), 64: (0, 0, 0),
    65: (0, 0, 0), 66: (0, 2, 0), 68: (0, 1, 0), 69: (0, 1, 0), 71: (0, 0, 0), 72: (0, 0, 0), 74: (0, 1, 0),
    75: (0, 0, 0), 80: (0, 1, 0), 81: (0, 0, 0), 82: (0, 0, 0),
}  # fmt: skip

#: APIs that a single node on the embedded store must serve.
SERVED_AT_LEAST = {
    0,
    1,
    2,
    3,
    10,
    18,
    19,
    20,
    21,
    22,
    23,
    32,
    37,
    43,
    45,
    46,
    55,
    57,
    60,
    61,
    64,
    75,
    80,
    81,
    82,
}


def test_every_required_api_is_served() -> None:
    assert set(TABLE) >= SERVED_AT_LEAST


#: Served from version 0 for old clients, although Apache Kafka 4 starts later.
SERVED_FROM_0 = {8, 9, 27, 29, 30, 31, 32, 34, 35, 38, 39, 40, 41}


@pytest.mark.parametrize("api_key", TABLE)
def test_served_versions_are_those_of_apache_kafka(api_key: int) -> None:
    first, last, flexible = KAFKA_4_3_1[api_key]
    spec = TABLE[api_key]
    assert spec.versions == Versions(0 if api_key in SERVED_FROM_0 else first, last)
    for version in range(first, last + 1):
        assert spec.is_flexible(version) is (flexible is not None and version >= flexible)


@pytest.mark.parametrize("api_key", TABLE)
def test_every_api_has_kafkas_name_and_messages(api_key: int) -> None:
    spec = TABLE[api_key]
    _, name = APIS[api_key]
    assert spec.api_key == spec.request.API_KEY == spec.response.API_KEY == api_key
    assert (spec.name, spec.request.__name__, spec.response.__name__) == (
        name,
        f"{name}Request",
        f"{name}Response",
    )


def test_the_table_is_ordered_by_key_and_immutable() -> None:
    assert list(SERVED) == sorted(SERVED)
    with pytest.raises(TypeError):
        SERVED[0] = SERVED[1]  # type: ignore[index]


def error_response(request: Message, error: KafkaError) -> Message:
    raise error


async def handle(context: object, request: Message) -> Message:
    raise NotImplementedError


@pytest.mark.parametrize(("first", "last"), [(-1, 3), (0, 99)])
def test_versions_without_a_message_cannot_be_served(first: int, last: int) -> None:
    with pytest.raises(AssertionError):
        serves(MetadataRequest, MetadataResponse, first, last, error_response=error_response)


def test_a_request_has_its_own_response_class() -> None:
    with pytest.raises(AssertionError):
        serves(MetadataRequest, ProduceResponse, 0, 1, error_response=error_response)


@pytest.fixture
def package() -> Iterator[ModuleType]:
    """Create a package with modules `one` and `two` that pkgutil finds."""
    root = types.ModuleType("made_up_apis")
    root.__path__ = []
    sys.modules["made_up_apis"] = root
    yield root
    for name in [name for name in sys.modules if name.startswith("made_up_apis")]:
        del sys.modules[name]


def test_a_duplicate_api_is_rejected(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    marked = serves(MetadataRequest, MetadataResponse, 0, 1, error_response=error_response)(handle)
    names = ["made_up_apis.one", "made_up_apis.two"]
    for name in names:
        module = types.ModuleType(name)
        module.handle = marked  # type: ignore[attr-defined]
        sys.modules[name] = module
    monkeypatch.setattr(
        "pkgutil.walk_packages", lambda path, prefix: (types.SimpleNamespace(name=name) for name in names)
    )
    with pytest.raises(AssertionError, match="api key 3 is served twice"):
        build(package)


def test_what_kafkas_controller_decides_is_decided_on_the_latest_metadata() -> None:
    """AlterConfigs and IncrementalAlterConfigs see to it themselves."""
    assert [spec.name for spec in TABLE.values() if spec.needs_latest_metadata] == [
        "CreateTopics",
        "DeleteTopics",
        "CreateAcls",
        "DeleteAcls",
        "CreatePartitions",
        "CreateDelegationToken",
        "RenewDelegationToken",
        "ExpireDelegationToken",
        "ElectLeaders",
        "AlterPartitionReassignments",
        "ListPartitionReassignments",
        "AlterClientQuotas",
        "AlterUserScramCredentials",
        "UpdateFeatures",
        "UnregisterBroker",
    ]
