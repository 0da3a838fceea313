"""Audit records of requests, beside those of what they change in the store.

An API that changes the cluster declares how the results of its response are read (`@serves(..., audit=...)`). Results
with an authorization error or a policy violation are recorded, whichever part of the broker refused the change. Other
errors are mistakes of the client and are not recorded.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

from barnabas.api.context import RequestContext
from barnabas.metadata.audit.records import Refusal
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import ErrorCode, KafkaError

_log = get_logger("barnabas.audit")

_AUDITED_ERRORS = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
)

CLUSTER = "cluster/kafka-cluster"

#: (resource, error code, message) of each result in a response.
Results: TypeAlias = Iterable[tuple[str, int, str | None]]


async def record_refusals(context: RequestContext, request: Any, response: object) -> None:
    """Record what the response refuses, and the warnings and differences in the context.

    The context has violations of policies in mode `warn`, and changes outside the store. Warnings are recorded for
    changes that were made: not for those that failed, nor if the request only validates.
    """
    if response is None:
        return
    refusals = await context.compute(refusals_of, context, request, response)
    warnings = await context.compute(warnings_of, context, request, response) if context.warnings else []
    differences = context.differences
    if not refusals and not warnings and not differences:
        return
    try:
        await context.broker.metadata.record_events(context.actor, refusals, warnings, differences)
    except KafkaError as error:  # the response is valid without the record
        _log.error("cannot write an audit record", api=context.api.name, why=error.message)


def refusals_of(context: RequestContext, request: Any, response: object) -> list[Refusal]:
    """Return the requested changes that the response refuses, each once; none if the request only validates."""
    assert context.api.audit is not None
    if _only_validates(request):
        return []
    refusals = (
        Refusal(resource, ErrorCode(code).name, message or "")
        for resource, code, message in context.api.audit(request, response)
        if code in _AUDITED_ERRORS
    )
    return list(dict.fromkeys(refusals))


def warnings_of(context: RequestContext, request: Any, response: object) -> list[Refusal]:
    """Return the warnings about changes that were made; none if the request only validates."""
    assert context.api.audit is not None
    if _only_validates(request):
        return []
    return warnings_of_successes(context.warnings, context.api.audit(request, response))


def warnings_of_successes(warnings: Iterable[Refusal], results: Results) -> list[Refusal]:
    """Return the warnings about resources of which a change succeeded.

    The new name of a resource is not in the results: its warnings count if anything succeeded.
    """
    resources_by_success: dict[bool, set[str]] = {True: set(), False: set()}
    for resource, code, _ in results:
        resources_by_success[code == ErrorCode.NONE].add(resource)
    succeeded = resources_by_success[True]
    failed = resources_by_success[False] - succeeded
    return [warning for warning in warnings if succeeded and warning.resource not in failed]


def _only_validates(request: Any) -> bool:
    return bool(getattr(request, "validate_only", False))


def cluster_result(_request: Any, response: Any) -> Results:
    """Read the response of an API that changes the cluster as a whole."""
    return [(CLUSTER, response.error_code, response.error_message)]
