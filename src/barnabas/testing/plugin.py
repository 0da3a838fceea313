"""The pytest plugin: fixtures with a broker for each test, or for the whole run.

pytest rewrites the asserts of every module of a distribution that has a plugin. For the broker that costs 1 s of CPU
in each run without cached bytecode, so the plugin makes Python import its packages before pytest does.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from barnabas.testing.cluster import EmbeddedCluster
    from barnabas.testing.embedded import EmbeddedBroker

    StartCluster = Callable[..., EmbeddedCluster]

_INI = "kafka_settings"
_MARKER = "kafka_settings"
_USERS_MARKER = "kafka_users"
_VIRTUAL_TIME_MARKER = "kafka_virtual_time"
_REGISTRY_MARKER = "kafka_registry"
_PACKAGES = frozenset({"barnabas", "pyspark_barnabas", "pyspark_barnabas_batches", "pyspark_barnabas_delta"})


class _PlainFinder:
    """Finds modules of these packages as Python does, without assertion rewriting."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in _PACKAGES:
            return None
        return PathFinder.find_spec(fullname, path, target)


_FINDER = _PlainFinder()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options with broker settings for all fixtures: in the ini file, and on the command line, which wins.

    The first hook that pytest calls, before it imports tests or conftest files, so that it can turn rewriting off.
    """
    sys.meta_path[:] = [_FINDER, *(finder for finder in sys.meta_path if finder is not _FINDER)]
    parser.addini(_INI, "Broker settings for the kafka fixtures, as KEY=VALUE.", type="linelist", default=[])
    group = parser.getgroup("kafka", "Kafka brokers inside the test process (barnabas)")
    group.addoption(
        "--kafka-set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="Broker setting for the kafka fixtures; overrides the ini file. Can be repeated.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    text = f"{_MARKER}(settings): broker settings for kafka and kafka_cluster of this test, as a dict of key to value."
    config.addinivalue_line("markers", text)
    text = (
        f"{_VIRTUAL_TIME_MARKER}: this test's broker or cluster has advance(), which moves its time forward."
    )
    config.addinivalue_line("markers", text)
    text = f"{_REGISTRY_MARKER}: this test's broker serves a schema registry, at registry_url."
    config.addinivalue_line("markers", text)
    text = f"{_USERS_MARKER}(passwords): users of this test's kafka fixture, as a dict of name to password."
    config.addinivalue_line("markers", text)


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> Iterator["EmbeddedBroker"]:
    """A new broker for one test."""
    users = request.node.get_closest_marker(_USERS_MARKER)
    yield from _running(
        _settings(request.config) | _marked_settings(request),
        _dict_of(users) if users else {},
        virtual_time=_has_virtual_time(request),
        registry=request.node.get_closest_marker(_REGISTRY_MARKER) is not None,
    )


@pytest.fixture(scope="session")
def kafka_session(pytestconfig: pytest.Config) -> Iterator["EmbeddedBroker"]:
    """One broker for the whole run: tests that use it should use their own topic names."""
    yield from _running(_settings(pytestconfig), {})


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator["StartCluster"]:
    """A function that starts a cluster of brokers for one test: ``kafka_cluster(brokers=3)``."""
    from contextlib import ExitStack

    from barnabas.testing.cluster import EmbeddedCluster

    with ExitStack() as stack:

        def start(brokers: int = 3, settings: Mapping[str, str] | None = None) -> EmbeddedCluster:
            all_settings = _settings(request.config) | _marked_settings(request) | dict(settings or {})
            cluster = EmbeddedCluster(brokers, all_settings, virtual_time=_has_virtual_time(request))
            return stack.enter_context(cluster)

        yield start


def _has_virtual_time(request: pytest.FixtureRequest) -> bool:
    return request.node.get_closest_marker(_VIRTUAL_TIME_MARKER) is not None


def _marked_settings(request: pytest.FixtureRequest) -> dict[str, str]:
    """Return the settings of the markers of a test; those of the test override those of its class and module."""
    settings: dict[str, str] = {}
    for marker in reversed(list(request.node.iter_markers(_MARKER))):
        settings |= _dict_of(marker)
    return settings


def _dict_of(marker: pytest.Mark) -> dict[str, str]:
    if len(marker.args) != 1 or marker.kwargs or not isinstance(marker.args[0], Mapping):
        arguments = ", ".join(
            [*map(repr, marker.args), *(f"{key}={text!r}" for key, text in marker.kwargs.items())]
        )
        message = (
            f"invalid marker {marker.name}({arguments}): expected one dict, such as {marker.name}({{...}})"
        )
        raise pytest.UsageError(message)
    return dict(marker.args[0])


def _settings(config: pytest.Config) -> dict[str, str]:
    settings = {}
    for text in [*config.getini(_INI), *config.getoption("--kafka-set")]:
        key, equals, value = text.partition("=")
        if not equals:
            message = f"invalid broker setting {text!r}: expected KEY=VALUE"
            raise pytest.UsageError(message)
        settings[key.strip()] = value.strip()
    return settings


def _running(
    settings: dict[str, str], users: dict[str, str], *, virtual_time: bool = False, registry: bool = False
) -> Iterator["EmbeddedBroker"]:
    from barnabas.testing.embedded import EmbeddedBroker

    with EmbeddedBroker(settings, users, virtual_time=virtual_time, registry=registry) as broker:
        yield broker
