"""Waits until a cluster shows a change, so that the next page does not show the old state.

Brokers of Apache Kafka apply a change some milliseconds after the controller's response.
"""

import contextlib
from collections.abc import Callable

from barnabas.client.admin.admin import Admin
from barnabas.declared.diff import diff_states
from barnabas.declared.live import live_state_for
from barnabas.declared.state import ClusterState
from barnabas.wire.errors import KafkaError


async def wait_until_applied(admin: Admin, declared: ClusterState) -> None:
    """Wait until a cluster has the declared state."""
    await wait_until_visible(admin, declared, lambda live: not diff_states(declared, live))


async def wait_until_visible(
    admin: Admin, asked: ClusterState, is_reached: Callable[[ClusterState], bool]
) -> None:
    """Wait until a condition holds for the requested part of the live state.

    The wait is limited: a principal that may make a change need not be able to see it.

    :raises BrokerConnectionError: When no broker responds.
    """
    with contextlib.suppress(KafkaError):
        await admin.cluster.retry.until(lambda: live_state_for(admin, asked), is_reached)
