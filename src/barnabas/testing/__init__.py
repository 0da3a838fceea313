"""A Kafka broker for tests: a pytest plugin and an in-process broker.

Importing it is cheap: the broker is imported on first use, so that pytest runs that do not need it do not pay for
it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.testing.cluster import EmbeddedCluster
    from barnabas.testing.embedded import EmbeddedBroker
    from barnabas.testing.faults import Fault

__all__ = ["EmbeddedBroker", "EmbeddedCluster", "Fault"]

_HOMES = {
    "EmbeddedBroker": "barnabas.testing.embedded",
    "EmbeddedCluster": "barnabas.testing.cluster",
    "Fault": "barnabas.testing.faults",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
