"""Write a request in parts, because the store allows only smaller commits."""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import TypeVar

from barnabas.metadata.store import CommitTooLarge, StoreError
from barnabas.wire.errors import ErrorCode, KafkaError

ItemT = TypeVar("ItemT")
ResponseT = TypeVar("ResponseT")

_NOT_TRIED = "Not changed, because an earlier part of the request could not be written to the metadata store."


async def write_parts(
    items: Sequence[ItemT],
    write: Callable[[Sequence[ItemT]], Awaitable[list[ResponseT]]],
    failed: Callable[[ItemT, KafkaError], ResponseT],
    key: Callable[[ItemT], Hashable],
) -> list[ResponseT]:
    """Try to write all items; if that is too much for the store, write one half after the other.

    :param write: Raises StoreError, or KafkaError if the store does not answer.
    :param failed: Makes the response to an item that was not written, although others were.
    :param key: Items with equal keys are written together.
    :raises StoreError, KafkaError: If the store fails before anything was written.
    """
    responses: list[ResponseT] = []
    parts = [items]
    while parts:
        part = parts.pop(0)
        try:
            responses += await write(part)
        except CommitTooLarge as error:
            halves = _halves(part, key)
            if all(halves):
                parts[:0] = halves
            elif part is items:
                raise
            else:
                responses += [failed(item, client_error(error)) for item in part]
        except (StoreError, KafkaError) as error:
            if not responses:
                raise
            responses += [failed(item, client_error(error)) for item in part]
            not_tried = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, _NOT_TRIED)
            responses += [failed(item, not_tried) for part in parts for item in part]
            break
    return responses


def client_error(error: StoreError | KafkaError) -> KafkaError:
    """Return the error of a write for the client."""
    if isinstance(error, KafkaError):
        return error.without_traceback()
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Cannot write to the metadata store: {error}.")


def _halves(items: Sequence[ItemT], key: Callable[[ItemT], Hashable]) -> tuple[list[ItemT], list[ItemT]]:
    """Divide items; those with equal keys stay together, so one half may be empty."""
    groups: dict[Hashable, list[ItemT]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    halves: tuple[list[ItemT], list[ItemT]] = [], []
    for number, group in enumerate(groups.values()):
        halves[number >= len(groups) // 2].extend(group)
    return halves
