"""Administration of SCRAM users (KIP-554)."""

import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from barnabas.client.core.errors import check, error_for
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from barnabas.wire.scram import ScramMechanism, salted_password

ITERATIONS = 4096
_SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class Upsertion:
    """A password for one user and mechanism, which brokers never see. Its representation does not show it."""

    user: str
    mechanism: ScramMechanism
    password: str = field(repr=False)
    iterations: int = ITERATIONS


@dataclass(frozen=True, slots=True)
class UserScramCredentialDeletion:
    """A credential to delete."""

    user: str
    mechanism: ScramMechanism


def describe_scram_request(users: Collection[str] | None) -> DescribeUserScramCredentialsRequest:
    """Return the request for those users, or for all.

    All is an empty list, as null: Apache Kafka 4.3 fails on null if the request is refused (NullPointerException in
    DescribeUserScramCredentialsRequest.getErrorResponse), and never answers.
    """
    return DescribeUserScramCredentialsRequest(users=[UserName(name=user) for user in users or ()])


def parse_describe_scram_response(
    response: DescribeUserScramCredentialsResponse,
) -> dict[str, dict[ScramMechanism, int] | KafkaError]:
    """Return the iterations of each user's credentials.

    :raises KafkaError: If the whole request was refused.
    """
    check(response.error_code, response.error_message)
    return {
        user.user: error_for(user.error_code, user.error_message)
        or {ScramMechanism(info.mechanism): info.iterations for info in user.credential_infos}
        for user in response.results
    }


def alter_scram_request(
    alterations: Iterable[Upsertion | UserScramCredentialDeletion],
) -> AlterUserScramCredentialsRequest:
    """Return the request for those alterations. Salting passwords takes time."""
    request = AlterUserScramCredentialsRequest()
    for alteration in alterations:
        if isinstance(alteration, UserScramCredentialDeletion):
            request.deletions.append(
                ScramCredentialDeletion(name=alteration.user, mechanism=alteration.mechanism)
            )
            continue
        salt = secrets.token_bytes(_SALT_BYTES)
        salted = salted_password(alteration.mechanism, alteration.password, salt, alteration.iterations)
        request.upsertions.append(
            ScramCredentialUpsertion(
                name=alteration.user,
                mechanism=alteration.mechanism,
                iterations=alteration.iterations,
                salt=salt,
                salted_password=salted,
            )
        )
    return request


def parse_alter_scram_response(response: AlterUserScramCredentialsResponse) -> dict[str, KafkaError | None]:
    """Return the error of each user; None for success."""
    return {result.user: error_for(result.error_code, result.error_message) for result in response.results}
