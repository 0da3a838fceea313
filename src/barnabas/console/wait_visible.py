"""Waiting until a cluster shows what it was told, so that the page that comes next does not show what was before.

On Apache Kafka the controller makes a change, and brokers learn of it some milliseconds after it was answered.
"""

import contextlib
from collections.abc import Callable

from barnabas.client.admin.admin import Admin
from barnabas.declared.diff import differences
from barnabas.declared.live import state_beside
from barnabas.declared.state import DeclaredState
from barnabas.wire.errors import KafkaError


async def made(admin: Admin, declared: DeclaredState) -> None:
    """Wait until a cluster has what is declared."""
    await seen(admin, declared, lambda live: not differences(declared, live))


async def seen(admin: Admin, asked: DeclaredState, holds: Callable[[DeclaredState], bool]) -> None:
    """Wait until something holds of the part of a live state that is asked for.

    Not for ever: the page then shows what there is, as it does to somebody who may make a change and not see it.

    :raises BrokerConnectionError: When no broker answers.
    """
    with contextlib.suppress(KafkaError):
        await admin.cluster.retry.until(lambda: state_beside(admin, asked), holds)
