"""Finds the coordinator of a group or a transactional id, and sends requests to it."""

from collections.abc import Awaitable, Callable
from enum import IntEnum
from typing import TypeVar

from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import check
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

ResultT = TypeVar("ResultT")


class KeyType(IntEnum):
    """The kind of a coordinator."""

    GROUP = 0
    TRANSACTION = 1


async def find_coordinator(cluster: ClusterClient, key_type: KeyType, key: str) -> int:
    """Return the node id of a key's coordinator.

    :raises KafkaError: COORDINATOR_NOT_AVAILABLE while there is none; an authorization error of the key.
    """
    request = FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key])
    response: FindCoordinatorResponse = await cluster.send(request)
    coordinator = response.coordinators[0] if response.coordinators else response
    check(
        coordinator.error_code,
        f"no coordinator of '{key}': {coordinator.error_message or 'the response has none'}",
    )
    return coordinator.node_id


async def ask_coordinator(
    cluster: ClusterClient, key_type: KeyType, key: str, ask: Callable[[int], Awaitable[ResultT]]
) -> ResultT:
    """Call `ask` with the coordinator's node id, and again when the coordinator has moved, has left the cluster, or is
    loading.

    `ask` raises the retriable errors of the response.

    :raises KafkaError: An error of `ask` that is not retriable.
    :raises BrokerConnectionError: When no coordinator was reached for as long as the cluster retries.
    """

    async def attempt() -> ResultT:
        coordinator = await find_coordinator(cluster, key_type, key)
        try:
            return await ask(coordinator)
        except KafkaError as error:
            if error.code is not ErrorCode.BROKER_NOT_AVAILABLE:
                raise
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message) from error

    return await cluster.retrying(attempt)
