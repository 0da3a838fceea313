"""AlterClientQuotas (49), v0-v1: set and remove quotas of entities (KIP-546).

Errors, per entity: INVALID_REQUEST, CLUSTER_AUTHORIZATION_FAILED.
"""

from barnabas.api.audit import Results
from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.base.resource_names import quota_resource
from barnabas.metadata.quotas import QuotaAlteration, QuotaAlterationResult, decide_alter, entity_of
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntryData,
    ResponseEntityData,
    ResponseEntryData,
)


def error_response(request: AlterClientQuotasRequest, error: KafkaError) -> AlterClientQuotasResponse:
    entries = [_result(QuotaAlterationResult(_alteration(entry).entity, error)) for entry in request.entries]
    return AlterClientQuotasResponse(entries=entries)


def audit(_request: AlterClientQuotasRequest, response: AlterClientQuotasResponse) -> Results:
    for entry in response.entries:
        entity = entity_of({part.entity_type: part.entity_name for part in entry.entity})
        yield quota_resource(entity), entry.error_code, entry.error_message


@serves(
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    0,
    1,
    error_response=error_response,
    audit=audit,
    needs_latest_metadata=True,
)
async def handle(context: RequestContext, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    await require_cluster(context, AclOperation.ALTER_CONFIGS)
    alterations = [_alteration(entry) async for entry in context.each(request.entries)]
    outcomes = await context.write_each(
        alterations,
        lambda image, part: decide_alter(image.quotas, part, validate_only=request.validate_only),
        lambda alteration, error: QuotaAlterationResult(alteration.entity, error),
        key=lambda alteration: alteration.entity,
    )
    return AlterClientQuotasResponse(entries=[_result(outcome) async for outcome in context.each(outcomes)])


def _alteration(entry: EntryData) -> QuotaAlteration:
    # Of a duplicate type the last name counts, as in Kafka's map.
    entity = entity_of({part.entity_type: part.entity_name for part in entry.entity})
    return QuotaAlteration(entity, [(op.key, None if op.remove else op.value) for op in entry.ops])


def _result(outcome: QuotaAlterationResult) -> ResponseEntryData:
    error = outcome.error
    return ResponseEntryData(
        error_code=error.code if error else ErrorCode.NONE,
        error_message=(error.message or None) if error else None,
        entity=[ResponseEntityData(entity_type=kind, entity_name=name) for kind, name in outcome.entity],
    )
