"""DescribeUserScramCredentials (50), v0: the SCRAM mechanisms of users (KIP-554).

Errors, per user: RESOURCE_NOT_FOUND, DUPLICATE_RESOURCE. For all: CLUSTER_AUTHORIZATION_FAILED.
"""

from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.metadata.scram import DescribedUser, describe_credentials
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def error_response(
    request: DescribeUserScramCredentialsRequest, error: KafkaError
) -> DescribeUserScramCredentialsResponse:
    """Return the error at the top, and for each named user."""
    message = error.message or None
    results = [
        DescribeUserScramCredentialsResult(error_code=error.code, error_message=message)
        for _ in request.users or ()
    ]
    return DescribeUserScramCredentialsResponse(error_code=error.code, error_message=message, results=results)


@serves(
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    0,
    0,
    error_response=error_response,
)
async def handle(
    context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Describe credentials without secrets."""
    await require_cluster(context, AclOperation.DESCRIBE)
    users = None if request.users is None else [user.name for user in request.users]
    stored = context.broker.image.scram_credentials
    described = await context.broker.worker.call(describe_credentials, stored, users)
    return DescribeUserScramCredentialsResponse(
        results=[_result(user) async for user in context.each(described)]
    )


def _result(user: DescribedUser) -> DescribeUserScramCredentialsResult:
    infos = [
        CredentialInfo(mechanism=mechanism, iterations=iterations)
        for mechanism, iterations in user.iterations.items()
    ]
    code = ErrorCode.NONE if user.error is None else user.error.code
    message = "" if user.error is None else user.error.message  # as in Kafka, an empty text for success
    return DescribeUserScramCredentialsResult(
        user=user.user, error_code=code, error_message=message, credential_infos=infos
    )
