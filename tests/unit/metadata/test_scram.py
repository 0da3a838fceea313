import random
from typing import Any

import pytest

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.scram import (
    SCRAM_CREDENTIALS,
    AlteredUser,
    ScramAlteration,
    ScramCredential,
    ScramDeletion,
    ScramUpsertion,
    decide_add_user,
    decide_alter_credentials,
    describe_credentials,
)
from barnabas.metadata.store import NEVER
from barnabas.wire.errors import ErrorCode
from barnabas.wire.scram import ScramMechanism
from support.images import replayed

SHA_256, SHA_512 = ScramMechanism


def upsertion(user: str = "alice", **fields: Any) -> ScramUpsertion:
    values = {"mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"salted", **fields}
    return ScramUpsertion(user, **values)


def altered(image: MetadataImage, *alterations: ScramAlteration) -> MetadataImage:
    """Return the image after alterations that must all succeed."""
    decision = decide_alter_credentials(image.scram_credentials, alterations)
    assert not [outcome for outcome in decision.response if outcome.error]
    return replayed(image, decision)


def codes(image: MetadataImage, *alterations: ScramAlteration) -> dict[str, ErrorCode]:
    outcomes = decide_alter_credentials(image.scram_credentials, alterations).response
    return {each.user: each.error.code if each.error else ErrorCode.NONE for each in outcomes}


def test_a_credential_round_trips_through_the_store() -> None:
    image = altered(MetadataImage(), upsertion(), upsertion("a/b", mechanism=2, iterations=16_384))
    assert image.scram_credentials["alice"] == {
        SHA_256: ScramCredential.of_salted(SHA_256, b"salted", b"salt", 4096)
    }
    assert image.scram_credentials["a/b"][SHA_512].iterations == 16_384


def test_a_user_has_a_replaceable_credential_per_mechanism() -> None:
    image = altered(altered(MetadataImage(), upsertion()), upsertion(mechanism=2))
    before = image.scram_credentials["alice"]
    image = altered(image, upsertion(salted_password=b"new"))
    after = image.scram_credentials["alice"]
    assert before.keys() == after.keys() == set(ScramMechanism)
    assert (before[SHA_256] == after[SHA_256], before[SHA_512] == after[SHA_512]) == (False, True)


def test_a_user_without_credentials_does_not_exist() -> None:
    image = altered(altered(MetadataImage(), upsertion()), upsertion(mechanism=2))
    image = altered(image, ScramDeletion("alice", 1))
    assert set(image.scram_credentials["alice"]) == {SHA_512}
    image = altered(image, ScramDeletion("alice", 2))
    assert "alice" not in image.scram_credentials


@pytest.mark.parametrize("iterations", [4095, 16_385, 0, -1])
def test_iterations_are_bounded(iterations: int) -> None:
    [outcome] = decide_alter_credentials(
        MetadataImage().scram_credentials, [upsertion(iterations=iterations)]
    ).response
    assert outcome.error is not None
    assert outcome.error.code is ErrorCode.UNACCEPTABLE_CREDENTIAL
    assert outcome.error.message == f"Too {'few' if iterations < 4096 else 'many'} iterations"


@pytest.mark.parametrize(
    ("alteration", "code"),
    [
        (upsertion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("carol", salted_password=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (ScramDeletion("", 1), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (upsertion(mechanism=3, iterations=1), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (ScramDeletion("alice", 7), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (ScramDeletion("nobody", 1), ErrorCode.RESOURCE_NOT_FOUND),
        (ScramDeletion("alice", 2), ErrorCode.RESOURCE_NOT_FOUND),
    ],
)
def test_invalid_alterations_are_rejected(alteration: ScramAlteration, code: ErrorCode) -> None:
    image = altered(MetadataImage(), upsertion())
    decision = decide_alter_credentials(image.scram_credentials, [alteration])
    assert [each.error.code for each in decision.response if each.error] == [code]
    assert decision.changes == ()


def test_one_users_error_does_not_fail_others() -> None:
    assert codes(MetadataImage(), upsertion("bad", iterations=1), upsertion("good")) == {
        "bad": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "good": ErrorCode.NONE,
    }


def test_a_duplicate_user_is_not_changed_even_with_two_mechanisms() -> None:
    twice = (upsertion(), upsertion(mechanism=2))
    assert codes(MetadataImage(), *twice) == {"alice": ErrorCode.DUPLICATE_RESOURCE}
    assert decide_alter_credentials(MetadataImage().scram_credentials, twice).changes == ()
    image = altered(MetadataImage(), upsertion())
    assert codes(image, ScramDeletion("alice", 1), upsertion()) == {"alice": ErrorCode.DUPLICATE_RESOURCE}


def test_the_first_of_several_errors_of_a_user_is_returned() -> None:
    assert codes(MetadataImage(), ScramDeletion("alice", 1), upsertion()) == {
        "alice": ErrorCode.RESOURCE_NOT_FOUND
    }
    assert codes(MetadataImage(), upsertion(), upsertion(), upsertion(iterations=1)) == {
        "alice": ErrorCode.DUPLICATE_RESOURCE
    }


def test_a_change_depends_on_the_previous_credential() -> None:
    first = decide_alter_credentials(MetadataImage().scram_credentials, [upsertion()])
    assert first.reads == {SCRAM_CREDENTIALS.key("alice"): NEVER}
    assert first.response == [AlteredUser("alice")]
    image = replayed(MetadataImage(), first)
    again = decide_alter_credentials(image.scram_credentials, [upsertion()])
    assert again.reads == {SCRAM_CREDENTIALS.key("alice"): image.revision}


# Bootstrap users


def with_user(password: str, image: MetadataImage | None = None) -> MetadataImage:
    before = image or MetadataImage()
    decision = decide_add_user(before.scram_credentials, "alice", password, random.Random(1))
    assert decision.response is bool(decision.changes)
    return replayed(before, decision) if decision.changes else before


def test_a_bootstrap_user_has_a_credential_with_its_own_salt_per_mechanism() -> None:
    credentials = with_user("secret").scram_credentials["alice"]
    for mechanism, each in credentials.items():
        assert each == ScramCredential.of_password(mechanism, "secret", each.salt, 4096)
    assert len({each.salt for each in credentials.values()}) == len(ScramMechanism)


def test_an_existing_user_keeps_its_password() -> None:
    image = with_user("secret")
    assert with_user("other", image) is image


def test_secrets_are_not_in_the_repr() -> None:
    credential = with_user("secret").scram_credentials["alice"][SHA_256]
    assert repr(credential) == "ScramCredential(iterations=4096)"
    assert "salt" not in repr(upsertion())


# Describing


def test_users_are_described_by_name_or_all_without_secrets() -> None:
    image = altered(MetadataImage(), upsertion(), upsertion("bob", mechanism=2, iterations=5000))
    for users in (None, [], ["alice", "bob"]):
        described = describe_credentials(image.scram_credentials, users)
        assert [(each.user, each.iterations, each.error) for each in described] == [
            ("alice", {SHA_256: 4096}, None),
            ("bob", {SHA_512: 5000}, None),
        ]


def test_missing_or_duplicate_users_are_described_with_errors() -> None:
    image = altered(MetadataImage(), upsertion())
    described = describe_credentials(image.scram_credentials, ["nobody", "alice", "twice", "twice"])
    assert [(each.user, each.error and each.error.code) for each in described] == [
        ("nobody", ErrorCode.RESOURCE_NOT_FOUND),
        ("alice", None),
        ("twice", ErrorCode.DUPLICATE_RESOURCE),
    ]
