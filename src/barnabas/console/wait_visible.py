"""Waiting until a cluster shows what it was told, so that the page that comes next does not show what was before.

On Apache Kafka the controller makes a change, and brokers learn of it some milliseconds after it was answered.
"""

import contextlib
from collections.abc import Callable

from barnabas.client.admin.admin import Admin
from barnabas.declared.diff import differences
from barnabas.declared.live import live_state_for
from barnabas.declared.state import DeclaredState
from barnabas.wire.errors import KafkaError


async def wait_until_applied(admin: Admin, declared: DeclaredState) -> None:
    """Wait until a cluster has what is declared."""
    await wait_until_visible(admin, declared, lambda live: not differences(declared, live))


async def wait_until_visible(
    admin: Admin, asked: DeclaredState, holds: Callable[[DeclaredState], bool]
) -> None:
    """Wait until something holds of the part of a live state that is asked for.

    Not for ever: the page then shows what there is, as it does to somebody who may make a change and not see it.

    :raises BrokerConnectionError: When no broker answers.
    """
    with contextlib.suppress(KafkaError):
        await admin.cluster.retry.until(lambda: live_state_for(admin, asked), holds)
