"""AlterUserScramCredentials (51), v0: create, replace and delete SCRAM credentials (KIP-554).

Errors, per user: UNACCEPTABLE_CREDENTIAL, UNSUPPORTED_SASL_MECHANISM, RESOURCE_NOT_FOUND, DUPLICATE_RESOURCE. For all:
CLUSTER_AUTHORIZATION_FAILED.
"""

from barnabas.api.audit import Results
from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.metadata.scram import (
    AlteredUser,
    ScramAlteration,
    ScramDeletion,
    ScramUpsertion,
    decide_alter_credentials,
)
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


def error_response(
    request: AlterUserScramCredentialsRequest, error: KafkaError
) -> AlterUserScramCredentialsResponse:
    users = dict.fromkeys(alteration.user for alteration in _alterations(request))
    return AlterUserScramCredentialsResponse(results=[_result(AlteredUser(user, error)) for user in users])


def audit(_request: AlterUserScramCredentialsRequest, response: AlterUserScramCredentialsResponse) -> Results:
    return ((f"user/{user.user}", user.error_code, user.error_message) for user in response.results)


@serves(
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    0,
    0,
    error_response=error_response,
    audit=audit,
    needs_latest_metadata=True,
)
async def handle(
    context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    await require_cluster(context, AclOperation.ALTER)
    alterations = await context.compute(_alterations, request)
    outcomes = await context.write_each(
        alterations,
        lambda image, part: decide_alter_credentials(image.scram_credentials, part),
        lambda alteration, error: AlteredUser(alteration.user, error),
        key=lambda alteration: alteration.user,
    )
    return AlterUserScramCredentialsResponse(
        results=[_result(outcome) async for outcome in context.each(outcomes)]
    )


def _alterations(request: AlterUserScramCredentialsRequest) -> list[ScramAlteration]:
    deletions = [ScramDeletion(each.name, each.mechanism) for each in request.deletions]
    upsertions = [
        ScramUpsertion(
            each.name, each.mechanism, each.iterations, bytes(each.salt), bytes(each.salted_password)
        )
        for each in request.upsertions
    ]
    return [*deletions, *upsertions]


def _result(altered: AlteredUser) -> AlterUserScramCredentialsResult:
    if altered.error is None:
        return AlterUserScramCredentialsResult(
            user=altered.user, error_code=ErrorCode.NONE, error_message=None
        )
    return AlterUserScramCredentialsResult(
        user=altered.user, error_code=altered.error.code, error_message=altered.error.message or None
    )
