"""Whom Apache Kafka and Barnabas take a client for, by its certificate."""

import ssl
from collections.abc import Sequence

import pytest
from cryptography import x509
from cryptography.x509 import NameAttribute, NameOID, RelativeDistinguishedName
from cryptography.x509.name import _ASN1Type

from barnabas.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from barnabas.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from differential.permissions import NOTHING
from differential.secured import ClientSecurity, SecuredPair, SecuredSide, subject

REFUSED = "refused"

CN, ORGANIZATION, OU, DC = (
    NameOID.COMMON_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.DOMAIN_COMPONENT,
)


def names(*parts: tuple[x509.ObjectIdentifier, str]) -> list[RelativeDistinguishedName]:
    """Return a subject with one attribute in each part."""
    return [RelativeDistinguishedName([NameAttribute(number, value)]) for number, value in parts]


SUBJECTS: dict[str, Sequence[RelativeDistinguishedName]] = {
    "of the common rule": subject("alice"),
    "service": names((ORGANIZATION, "Orders"), (OU, "Services"), (CN, "Billing")),
    "user id": names((DC, "Example"), (DC, "Orders"), (NameOID.USER_ID, "Carol")),
    "robot": names((CN, "r2"), (OU, "Robots"), (ORGANIZATION, "x")),
    "thing, the other way round": names((ORGANIZATION, "x"), (CN, "lamp"), (OU, "Things")),
    "all keywords": names(
        *((NameOID.COUNTRY_NAME, "DE"), (NameOID.STATE_OR_PROVINCE_NAME, "Hessen")),
        *((NameOID.LOCALITY_NAME, "Fulda"), (NameOID.STREET_ADDRESS, "Weg 1")),
        *(
            (ORGANIZATION, "Orders, Inc."),
            (OU, "a"),
            (OU, "b"),
            (CN, "alice"),
            (DC, "example"),
            (NameOID.USER_ID, "7"),
        ),
    ),
    "no keywords": names(
        *((NameOID.EMAIL_ADDRESS, "a@b.c"), (NameOID.SERIAL_NUMBER, "12"), (NameOID.TITLE, "Dr.")),
        *((NameOID.SURNAME, "S"), (NameOID.GIVEN_NAME, "G"), (x509.ObjectIdentifier("1.2.3.4"), "x")),
    ),
    "special characters": names((CN, ' #a,b+c"d\\e<f>g;h=i ')),
    "spaces": names((CN, "  a  b  ")),
    "only spaces": names((CN, "  ")),
    "sharp": names((CN, "#a#")),
    "small and large": names((CN, "aLiCe"), (ORGANIZATION, "Orders")),
    "other alphabets": names((CN, "Zoë Δδ 愛 🦊"), (ORGANIZATION, "Øre")),
    "line breaks": names((CN, "a\nb\tc")),
    "zero": names((CN, "a\0b")),
    "slashes and dollars": names((CN, "a/b$1\\2"), (OU, "Services"), (ORGANIZATION, "x")),
    "two values in a part": [
        RelativeDistinguishedName([NameAttribute(CN, "a"), NameAttribute(NameOID.USER_ID, "7")]),
        *names((ORGANIZATION, "Orders")),
    ],
    **{
        f"{kind.name} of {text}": [RelativeDistinguishedName([NameAttribute(CN, text, _type=kind)])]
        for kind, text in (
            *((_ASN1Type.PrintableString, "ab"), (_ASN1Type.BMPString, "ab"), (_ASN1Type.BMPString, "愛é")),
            *((_ASN1Type.UniversalString, "ab"), (_ASN1Type.T61String, "é"), (_ASN1Type.IA5String, "é")),
            (_ASN1Type.NumericString, "12"),
        )
    },
    "long": names((CN, "x" * 64), (x509.ObjectIdentifier("1.2.3.4"), "y" * 300)),
}


def principal_of(side: SecuredSide) -> str:
    """Return the broker's name for a client, which it puts into a token; the token is removed."""
    try:
        made = side.exchange(CreateDelegationTokenRequest(None, None), CreateDelegationTokenResponse, 3).body
        if made is None:
            return REFUSED
        assert isinstance(made, CreateDelegationTokenResponse)
        removal = ExpireDelegationTokenRequest(made.hmac, expiry_time_period_ms=-1)
        side.exchange(removal, ExpireDelegationTokenResponse, 2)
        return f"{made.error_code} {made.principal_type}:{made.principal_name}"
    except ssl.SSLError:
        return REFUSED
    finally:
        side.disconnect()


def principals(pair: SecuredPair, context: ssl.SSLContext, mode: ClientSecurity, user: str = "") -> list[str]:
    """Return Kafka's name for a client, and Barnabas's."""
    return [principal_of(pair.new_side(name, user, mode, context)) for name in ("kafka", "barnabas")]


@pytest.mark.parametrize("listener", ["MUTUAL", "RULES"])
@pytest.mark.parametrize("name", SUBJECTS)
def test_a_certificate_names_the_same_user(secured: SecuredPair, name: str, listener: str) -> None:
    kafka, barnabas = principals(secured, secured.site.context(SUBJECTS[name]), ClientSecurity(listener))
    assert barnabas == kafka


def test_with_a_login_the_certificate_names_nobody(secured: SecuredPair) -> None:
    context = secured.site.context(subject("alice"))
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"):
        assert (
            principals(secured, context, ClientSecurity("BOTH", mechanism), NOTHING)
            == [f"0 User:{NOTHING}"] * 2
        )


@pytest.mark.parametrize(
    "mode", [ClientSecurity("MUTUAL"), ClientSecurity("RULES"), ClientSecurity("BOTH", "PLAIN")], ids=str
)
def test_clients_without_a_required_certificate_are_refused(
    secured: SecuredPair, mode: ClientSecurity
) -> None:
    assert principals(secured, secured.site.context(), mode, NOTHING) == [REFUSED, REFUSED]


def test_clients_without_a_requested_certificate_are_anonymous(secured: SecuredPair) -> None:
    kafka, barnabas = principals(secured, secured.site.context(), ClientSecurity("OPEN"))
    assert barnabas == kafka
    assert "ANONYMOUS" in kafka
