"""Wait until appended records are as durable as their producer has requested."""

import asyncio


async def acknowledged(
    flushed: "asyncio.Future[None] | None", replicated: "asyncio.Future[None] | None"
) -> None:
    """Wait for the disk, and then for the in-sync replicas.

    :param replicated: From `ReplicaManager.when_replicated`, called in the same turn of the event loop as the append:
        later this broker may not lead any more.
    :raises TimeoutError: If the replicas take too long.
    :raises OSError: If the disk fails.
    :raises KafkaError: NOT_LEADER_OR_FOLLOWER.
    """
    try:
        if flushed is not None:
            await flushed
        if replicated is not None:
            await replicated
    finally:
        if replicated is not None and not replicated.cancel() and not replicated.cancelled():
            replicated.exception()  # retrieved, also if this wait has ended before
