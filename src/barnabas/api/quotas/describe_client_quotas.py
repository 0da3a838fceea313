"""DescribeClientQuotas (48), v0-v1: the quotas of entities (KIP-546).

Errors: INVALID_REQUEST (an invalid filter), UNSUPPORTED_VERSION (an unknown entity type), CLUSTER_AUTHORIZATION_FAILED.
"""

from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.metadata.quotas import CLIENT_ID, ENTITY_TYPES, IP, USER, ClientQuota, Match, find
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

#: The values of `match_type`.
EXACT, DEFAULT, ANY = 0, 1, 2


def error_response(request: DescribeClientQuotasRequest, error: KafkaError) -> DescribeClientQuotasResponse:
    """Return the error at the top, without entries."""
    return DescribeClientQuotasResponse(
        error_code=error.code, error_message=error.message or None, entries=None
    )


@serves(DescribeClientQuotasRequest, DescribeClientQuotasResponse, 0, 1, error_response=error_response)
async def handle(
    context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    await require_cluster(context, AclOperation.DESCRIBE_CONFIGS)
    quotas, matches = context.broker.image.quotas, _matches(request.components)
    matching = await context.broker.worker.call(lambda: list(find(quotas, matches, strict=request.strict)))
    return DescribeClientQuotasResponse(entries=[_entry(quota) async for quota in context.each(matching)])


def _matches(components: list[ComponentData]) -> list[Match]:
    matches: dict[str, Match] = {}
    for component in components:
        kind = component.entity_type
        if not kind:
            raise _invalid("The entity type is empty: it must be 'user', 'client-id' or 'ip'.")
        if kind in matches:
            raise _invalid(f"'{kind}' is requested more than once.")
        if kind not in ENTITY_TYPES:
            message = f"'{kind}' is not an entity type: it must be 'user', 'client-id' or 'ip'."
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
        matches[kind] = _match(component)
    if IP in matches and (USER in matches or CLIENT_ID in matches):
        raise _invalid(
            "Invalid entity filter component combination: 'ip' cannot be combined with 'user' or 'client-id'."
        )
    return list(matches.values())


def _match(component: ComponentData) -> Match:
    kind, match_type, name = component.entity_type, component.match_type, component.match
    if match_type not in (EXACT, DEFAULT, ANY):
        raise _invalid(f"Match type {match_type} is unknown: it must be 0 (exact), 1 (default) or 2 (any).")
    if match_type == EXACT and name is None:
        raise _invalid(f"An exact match of '{kind}' needs a name.")
    if match_type != EXACT and name is not None:
        raise _invalid(
            f"The name '{name}' is given for '{kind}', but match type {match_type} must not have a name."
        )
    return Match(kind, name, any_name=match_type == ANY)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _entry(quota: ClientQuota) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in quota.entity],
        values=[ValueData(key=key, value=value) for key, value in sorted(quota.values.items())],
    )
