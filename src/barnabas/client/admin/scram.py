"""SCRAM users, administered: who can log in, by which mechanisms, with which password (KIP-554)."""

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
    """A password for one user and mechanism; brokers never see it. It is not printed."""

    user: str
    mechanism: ScramMechanism
    password: str = field(repr=False)
    iterations: int = ITERATIONS


@dataclass(frozen=True, slots=True)
class UserScramCredentialDeletion:
    """A credential that goes."""

    user: str
    mechanism: ScramMechanism


def describing(users: Collection[str] | None) -> DescribeUserScramCredentialsRequest:
    """The question for those users, or for all.

    An empty list stands for all, as null does: Apache Kafka 4.3 fails at null where the question is to be refused
    (NullPointerException in DescribeUserScramCredentialsRequest.getErrorResponse), and never answers.
    """
    return DescribeUserScramCredentialsRequest(users=[UserName(name=user) for user in users or ()])


def described(
    response: DescribeUserScramCredentialsResponse,
) -> dict[str, dict[ScramMechanism, int] | KafkaError]:
    """The iterations of each user's credentials.

    :raises KafkaError: When the whole question was refused.
    """
    check(response.error_code, response.error_message)
    return {
        each.user: error_for(each.error_code, each.error_message)
        or {ScramMechanism(info.mechanism): info.iterations for info in each.credential_infos}
        for each in response.results
    }


def altering(
    alterations: Iterable[Upsertion | UserScramCredentialDeletion],
) -> AlterUserScramCredentialsRequest:
    """The order for those alterations. The salting of passwords takes its time."""
    request = AlterUserScramCredentialsRequest()
    for each in alterations:
        if isinstance(each, UserScramCredentialDeletion):
            request.deletions.append(ScramCredentialDeletion(name=each.user, mechanism=each.mechanism))
            continue
        salt = secrets.token_bytes(_SALT_BYTES)
        salted = salted_password(each.mechanism, each.password, salt, each.iterations)
        request.upsertions.append(
            ScramCredentialUpsertion(
                name=each.user,
                mechanism=each.mechanism,
                iterations=each.iterations,
                salt=salt,
                salted_password=salted,
            )
        )
    return request


def altered(response: AlterUserScramCredentialsResponse) -> dict[str, KafkaError | None]:
    """What became of each user; None stands for success."""
    return {each.user: error_for(each.error_code, each.error_message) for each in response.results}
