"""Applies a plan in a safe order; a change that fails stops no other change.

No progress is stored. After an interruption, make a new plan: it contains the remaining changes.
"""

import enum
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any, NamedTuple

from barnabas.client.admin.admin import Admin
from barnabas.client.core.errors import BrokerConnectionError, ThrottlingQuotaExceeded
from barnabas.declared.diff import ChangeAction, Level, ResourceChange
from barnabas.declared.executor import (
    Errors,
    RequestKind,
    Task,
    batches_of,
    execute_batch,
    is_transient,
    tasks_of,
)
from barnabas.declared.plan import Plan, PlanRequest, compare_with_live
from barnabas.declared.secrets import SecretMissing, Secrets
from barnabas.wire.errors import ErrorCode, KafkaError

#: How long a change is tried again while no other of its batch succeeds.
_RETRIED_MS_MAX = 30_000
#: The same while the cluster throttles changes; a topic with many partitions uses up the quota of minutes.
_THROTTLED_MS_MAX = 600_000
#: Maximum number of reads of the cluster that show no further change: ten seconds, including pauses.
_READS_MAX = 13
#: Errors of a retry which show that an earlier attempt has succeeded.
_DONE_ALREADY = {
    RequestKind.CREATE_TOPICS: ErrorCode.TOPIC_ALREADY_EXISTS,
    RequestKind.DELETE_TOPICS: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    RequestKind.REMOVE_CREDENTIALS: ErrorCode.RESOURCE_NOT_FOUND,
}


class ChangeStatus(enum.StrEnum):
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"  #: not tried


class ChangeResult(NamedTuple):
    """The status of one change, with the reason if it was not applied."""

    change: ResourceChange
    status: ChangeStatus
    reason: str = ""


async def apply_plan(
    admin: Admin, plan: Plan, request: PlanRequest, advance: Callable[[int], None] = lambda count: None
) -> list[ChangeResult]:
    """Apply a plan, then wait until the cluster shows the changes; `advance` is called with the number of each batch.

    A lost connection ends the work; a new plan shows what is left.
    """
    results = [
        ChangeResult(each, ChangeStatus.SKIPPED, _reason(each))
        for each in plan.changes
        if not each.is_possible
    ]
    connection_error = ""
    for batch in batches_of(tasks_of([each for each in plan.changes if each.is_possible])):
        changes = [each for task in batch for each in task.changes]
        if connection_error:
            results += [ChangeResult(each, ChangeStatus.SKIPPED, connection_error) for each in changes]
            continue
        try:
            results += _results_of(batch, await _execute_with_retries(admin, batch, request.secrets))
        except BrokerConnectionError as error:
            connection_error = f"{error}; apply again: changes that were made are not repeated"
            results += [ChangeResult(each, ChangeStatus.FAILED, connection_error) for each in changes]
        advance(len(changes))
    return results if connection_error else await _verified(admin, results, request)


def _reason(change: ResourceChange) -> str:
    """Return the reason why a change is not tried."""
    if change.action is ChangeAction.EXPECT:
        return change.diagnostics[0].text if change.diagnostics else ""
    return next(
        (diagnostic.text for diagnostic in change.diagnostics if diagnostic.level is Level.IMPOSSIBLE), ""
    )


def _results_of(batch: Iterable[Task], errors: Errors) -> list[ChangeResult]:
    results = []
    for task in batch:
        error = errors.get(task.name)
        status = ChangeStatus.DONE if error is None else ChangeStatus.FAILED
        results += [ChangeResult(each, status, "" if error is None else str(error)) for each in task.changes]
    return results


async def _execute_with_retries(admin: Admin, batch: Sequence[Task], secrets: Secrets) -> Errors:
    """Return the error of each task, None for success.

    Tasks with transient errors are tried again, for a limited time after the last progress.
    """
    retry = admin.cluster.retry
    errors: dict[object, KafkaError | None] = {}
    remaining, attempts, progress_ms = list(batch), 0, 0
    while True:
        latest = await _execute_once(admin, remaining, secrets)
        errors.update(
            (task.name, _remaining_error(task, latest, is_retry=attempts > 0)) for task in remaining
        )
        transient = {
            task.name: error for task in remaining if (error := errors[task.name]) and is_transient(error)
        }
        if attempts == 0 or len(transient) < len(remaining):
            attempts, progress_ms = 0, retry.clock.monotonic_ms()
        attempts += 1
        remaining = [task for task in remaining if task.name in transient]
        pause_ms, limit_ms = _pause_and_limit_ms(retry.pause_ms(attempts), transient.values())
        if not remaining or retry.clock.monotonic_ms() + pause_ms > progress_ms + limit_ms:
            return errors
        await retry.sleep(pause_ms / 1000)


def _remaining_error(task: Task, errors: Errors, *, is_retry: bool) -> KafkaError | None:
    error = errors.get(task.name)
    is_done = is_retry and error is not None and error.code is _DONE_ALREADY.get(task.kind)
    return None if is_done else error


def _pause_and_limit_ms(pause_ms: float, errors: Iterable[KafkaError]) -> tuple[float, int]:
    """Return the pause before the next attempt, at least the throttle time, and how long attempts are made."""
    throttle_times_ms = [
        error.throttle_time_ms for error in errors if isinstance(error, ThrottlingQuotaExceeded)
    ]
    limit_ms = _THROTTLED_MS_MAX if throttle_times_ms else _RETRIED_MS_MAX
    return max([pause_ms, *throttle_times_ms]), limit_ms


async def _execute_once(admin: Admin, batch: Sequence[Task], secrets: Secrets) -> Errors:
    """Return the error of each task, None for success; an error of the whole request applies to each."""
    try:
        return await execute_batch(admin, batch, secrets)
    except KafkaError as error:
        return {task.name: error for task in batch}
    except SecretMissing as error:
        refusal = KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, str(error))
        return {task.name: refusal for task in batch}


async def _verified(
    admin: Admin, results: Sequence[ChangeResult], request: PlanRequest
) -> list[ChangeResult]:
    """Return the results after the cluster shows the changes; changes that it does not show are reported as failed."""
    done = {each.change.resource_key for each in results if each.status is ChangeStatus.DONE}
    try:
        missing = await _not_visible(admin, done, request)
        reason = "accepted, but not visible in the cluster yet"
    except (BrokerConnectionError, KafkaError) as error:
        missing, reason = done, f"accepted, but could not be verified: {error}"
    return [
        ChangeResult(each.change, ChangeStatus.FAILED, reason)
        if each.change.resource_key in missing
        else each
        for each in results
    ]


async def _not_visible(admin: Admin, applied: Set[Any], request: PlanRequest) -> Set[Any]:
    """Return the resource keys that are not as declared yet: brokers apply a change a moment after the controller's
    response.

    Thousands of topics appear one request after the other; the wait continues as long as more of them appear.
    """
    missing, reads_count = applied, 0
    while True:
        _, _, differences = await compare_with_live(admin, request)
        still_missing = applied & {each.resource_key for each in differences}
        reads_count = 1 if len(still_missing) < len(missing) else reads_count + 1
        missing = still_missing
        if not missing or reads_count == _READS_MAX:
            return missing
        await admin.cluster.retry.pause(reads_count)
