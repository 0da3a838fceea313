"""SCRAM credentials and their alteration (KIP-554).

Neither passwords nor salted passwords are stored, only the keys that verify a proof. Errors have Apache Kafka's words,
which its tools print.
"""

import base64
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from barnabas.metadata.audit.difference import Difference
from barnabas.metadata.decision import Decision
from barnabas.metadata.record_type import RecordRollback, RecordType, RowKeys, Table
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.scram import ScramMechanism, client_key, salted_password, server_key, stored_key

if TYPE_CHECKING:
    from barnabas.metadata.audit.rollback import RollbackRules
    from barnabas.metadata.image import MetadataImage


ITERATIONS_MIN = 4096  #: RFC 7677
ITERATIONS_MAX = 16_384  #: limit of Apache Kafka (`ScramControlManager`)
SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """Keys that verify a proof. Its representation shows only the iterations."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int

    @staticmethod
    def of_salted(
        mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int
    ) -> "ScramCredential":
        checked = stored_key(mechanism, client_key(mechanism, salted))
        return ScramCredential(salt, checked, server_key(mechanism, salted), iterations)

    @staticmethod
    def of_password(
        mechanism: ScramMechanism, password: str, salt: bytes, iterations: int = ITERATIONS_MIN
    ) -> "ScramCredential":
        salted = salted_password(mechanism, password, salt, iterations)
        return ScramCredential.of_salted(mechanism, salted, salt, iterations)


#: The credentials of one user; a user without any has no record.
Credentials: TypeAlias = Mapping[ScramMechanism, ScramCredential]


def credentials_to_plain(credentials: Credentials) -> dict[str, list[object]]:
    return {
        mechanism.title: [
            _text(credential.salt),
            _text(credential.stored_key),
            _text(credential.server_key),
            credential.iterations,
        ]
        for mechanism, credential in credentials.items()
    }


def credentials_from_plain(plain: Mapping[str, list[str]]) -> Credentials:
    credentials = {}
    for mechanism in ScramMechanism:
        if mechanism.title in plain:
            *keys, iterations = plain[mechanism.title]
            salt, checked, own = map(base64.b64decode, keys)
            credentials[mechanism] = ScramCredential(salt, checked, own, int(iterations))
    return credentials


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _audit(
    _image: "MetadataImage", user: str, before: Credentials | None, after: Credentials | None
) -> Iterator[Difference]:
    """Yield the iterations of each mechanism; a new password with the same iterations is a difference, too."""
    old, new = before or {}, after or {}
    for mechanism in sorted(old.keys() | new.keys()):
        pair = old.get(mechanism), new.get(mechanism)
        if pair[0] != pair[1]:
            values = (
                None if credential is None else {"iterations": credential.iterations} for credential in pair
            )
            yield Difference(f"user/{user}", mechanism.title, *values)


def _row_keys(resource: str) -> RowKeys:
    kind, _, user = resource.partition("/")
    return RowKeys((user,)) if kind == "user" else RowKeys()


def _restore(
    image: "MetadataImage", states: Mapping[str, Credentials | None], rules: "RollbackRules"
) -> Decision[None]:
    changed = {user: state for user, state in states.items() if image.scram_credentials.get(user) != state}
    changes = [
        SCRAM_CREDENTIALS.put(user, state) if state else SCRAM_CREDENTIALS.remove(user)
        for user, state in changed.items()
    ]
    reads = {SCRAM_CREDENTIALS.key(user): image.scram_credentials.revision(user) for user in changed}
    return Decision(None, tuple(changes), reads)


#: user name -> its credentials
SCRAM_CREDENTIALS: RecordType[Credentials] = RecordType(
    "scram_credentials",
    credentials_to_plain,
    credentials_from_plain,
    _audit,
    keeps_history=True,
    rollback=RecordRollback(_row_keys, _restore),
)


@dataclass(frozen=True, slots=True)
class ScramDeletion:
    """A credential to delete; `mechanism` is the number in the request."""

    user: str
    mechanism: int


@dataclass(frozen=True, slots=True)
class ScramUpsertion:
    """A credential to create or replace."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes = field(repr=False)
    salted_password: bytes = field(repr=False)


ScramAlteration: TypeAlias = ScramDeletion | ScramUpsertion


@dataclass(frozen=True, slots=True)
class AlteredUser:
    """The result for one user."""

    user: str
    error: KafkaError | None = None


def decide_alter_credentials(
    table: Table[Credentials], alterations: Sequence[ScramAlteration]
) -> Decision[list[AlteredUser]]:
    """Decide each user; the first error of a user is the result, and a user that occurs twice is an error."""
    altered: dict[str, Credentials] = {}
    outcomes: dict[str, AlteredUser] = {}
    for alteration in alterations:
        user = alteration.user
        if user in outcomes and outcomes[user].error:
            continue
        try:
            if user in altered:
                message = "A user credential cannot be altered twice in the same request"
                raise KafkaError(ErrorCode.DUPLICATE_RESOURCE, message)
            altered[user] = _altered_credentials(table.get(user, {}), alteration)
            outcomes[user] = AlteredUser(user)
        except KafkaError as error:
            outcomes[user] = AlteredUser(user, error.without_traceback())
            altered.pop(user, None)
    changes = tuple(
        SCRAM_CREDENTIALS.put(user, credentials) if credentials else SCRAM_CREDENTIALS.remove(user)
        for user, credentials in altered.items()
    )
    reads = {SCRAM_CREDENTIALS.key(user): table.revision(user) for user in altered}
    return Decision(list(outcomes.values()), changes, reads)


def _altered_credentials(credentials: Credentials, alteration: ScramAlteration) -> Credentials:
    """Return a user's credentials after one alteration.

    :raises KafkaError: If it is not valid.
    """
    if not alteration.user:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    mechanism = _mechanism(alteration.mechanism)
    if isinstance(alteration, ScramDeletion):
        if mechanism not in credentials:
            message = "Attempt to delete a user credential that does not exist"
            raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, message)
        return {name: kept for name, kept in credentials.items() if name is not mechanism}
    if alteration.iterations < ITERATIONS_MIN:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if alteration.iterations > ITERATIONS_MAX:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if not alteration.salted_password:
        message = f"The salted password of user '{alteration.user}' must not be empty."
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, message)
    credential = ScramCredential.of_salted(
        mechanism, alteration.salted_password, alteration.salt, alteration.iterations
    )
    return {**credentials, mechanism: credential}


def _mechanism(number: int) -> ScramMechanism:
    try:
        return ScramMechanism(number)
    except ValueError:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism") from None


def decide_add_user(
    table: Table[Credentials], user: str, password: str, rng: random.Random
) -> Decision[bool]:
    """Create credentials of every mechanism for a new user; return whether the user was new."""
    if user in table:
        return Decision(False)
    credentials = {
        mechanism: ScramCredential.of_password(mechanism, password, rng.randbytes(SALT_BYTES))
        for mechanism in ScramMechanism
    }
    change = SCRAM_CREDENTIALS.put(user, credentials)
    return Decision(True, (change,), {SCRAM_CREDENTIALS.key(user): table.revision(user)})


@dataclass(frozen=True, slots=True)
class DescribedUser:
    """A user's credentials without secrets, or the error."""

    user: str
    iterations: Mapping[ScramMechanism, int]
    error: KafkaError | None = None


def describe_credentials(table: Table[Credentials], users: Sequence[str] | None) -> list[DescribedUser]:
    """Describe each user once: those in `users`, or all if it is None or empty."""
    return [_describe_user(table, user, count) for user, count in Counter(users or list(table)).items()]


def _describe_user(table: Table[Credentials], user: str, requested_count: int) -> DescribedUser:
    if requested_count > 1:
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        return DescribedUser(user, {}, KafkaError(ErrorCode.DUPLICATE_RESOURCE, message))
    if user not in table:
        message = f"Attempt to describe a user credential that does not exist: {user}"
        return DescribedUser(user, {}, KafkaError(ErrorCode.RESOURCE_NOT_FOUND, message))
    return DescribedUser(
        user, {mechanism: credential.iterations for mechanism, credential in table[user].items()}
    )
