from collections.abc import Sequence

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import NameOID
from cryptography.x509.name import _ASN1Type

from barnabas.tls.certificate_names import CertificateNames, check_names, names_of
from barnabas.tls.settings import KeyStore, TlsError, TlsSettings
from support.certificates import Authority, Issued
from support.tls import with_keys

AUTHORITY = Authority()


def part(*attributes: tuple[x509.ObjectIdentifier, str]) -> x509.RelativeDistinguishedName:
    return x509.RelativeDistinguishedName([x509.NameAttribute(*each) for each in attributes])


def named(text: str, kind: _ASN1Type) -> x509.RelativeDistinguishedName:
    return x509.RelativeDistinguishedName([x509.NameAttribute(NameOID.COMMON_NAME, text, kind)])


ORGANIZATION = (NameOID.ORGANIZATION_NAME, "Acme Inc")
NAME = (NameOID.COMMON_NAME, "broker")
SUBJECT = (part(ORGANIZATION), part(NAME))
HOSTS = ("localhost", "127.0.0.1")


def issued(*subject: x509.RelativeDistinguishedName, hosts: Sequence[str] = HOSTS) -> Issued:
    return AUTHORITY.issue(*(subject or SUBJECT), hosts=hosts)


def refusal(former: Issued, renewed: Issued, *, dn: bool = False, san: bool = False) -> str | None:
    """Return why a certificate is refused after another, as Apache Kafka decides."""
    keys = with_keys(renewed).keys
    assert keys is not None
    of_former, of_renewed = (
        CertificateNames.of(each.certificate.public_bytes(Encoding.DER)) for each in (former, renewed)
    )
    settings = TlsSettings(keys, allows_dn_changes=dn, allows_san_changes=san)
    try:
        check_names(of_former, of_renewed, settings)
    except TlsError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    "renewed",
    [
        issued(),
        issued(part(ORGANIZATION), part((NameOID.COMMON_NAME, "BROKER"))),
        issued(part((NameOID.ORGANIZATION_NAME, " Acme  Inc ")), part(NAME)),
        issued(part(ORGANIZATION), named("broker", _ASN1Type.PrintableString)),
        issued(hosts=("127.0.0.1", "localhost")),
        issued(hosts=(*HOSTS, "more")),
    ],
    ids=["same", "capitals", "blanks", "another type of text", "another order of hosts", "more hosts"],
)
def test_a_certificate_with_equal_names_replaces_another(renewed: Issued) -> None:
    assert refusal(issued(), renewed) is None


@pytest.mark.parametrize(
    ("renewed", "shown"),
    [
        (issued(part(ORGANIZATION), part((NameOID.COMMON_NAME, "other"))), "CN=other,O=Acme Inc"),
        (issued(part(NAME), part(ORGANIZATION)), "O=Acme Inc,CN=broker"),
        (issued(part(NAME)), "CN=broker"),
        (
            issued(*SUBJECT, part((NameOID.ORGANIZATIONAL_UNIT_NAME, "x"))),
            "OU=x,CN=broker,O=Acme Inc",
        ),
    ],
)
def test_one_with_another_subject_does_not_unless_that_is_allowed(renewed: Issued, shown: str) -> None:
    message = (
        f"ssl.keystore.certificate.chain must have a certificate for CN=broker,O=Acme Inc, like the one in use, "
        f"not for {shown}; or start with ssl.allow.dn.changes=true"
    )
    assert refusal(issued(), renewed, san=True) == message
    assert refusal(issued(), renewed, dn=True) is None


def test_parts_with_several_attributes_and_other_kinds_of_text_are_compared_exactly() -> None:
    both, email = part(NAME, ORGANIZATION), (NameOID.EMAIL_ADDRESS, "a@b.c")
    assert refusal(issued(both), issued(part(ORGANIZATION, NAME))) is None
    assert refusal(issued(both), issued(*SUBJECT)) is not None
    assert refusal(issued(part(email)), issued(part(email))) is None
    why = refusal(issued(part(email)), issued(part((NameOID.EMAIL_ADDRESS, "A@b.c"))))
    assert why is not None
    assert "1.2.840.113549.1.9.1=a@b.c" in why


@pytest.mark.parametrize(
    ("hosts", "missing"),
    [
        (("localhost",), "127.0.0.1"),
        ((), "localhost, 127.0.0.1"),
        (("LOCALHOST", "127.0.0.1"), "localhost"),
        (("127.0.0.1", "::1"), "localhost"),
    ],
)
def test_one_without_a_former_host_does_not_unless_that_is_allowed(
    hosts: Sequence[str], missing: str
) -> None:
    message = (
        f"ssl.keystore.certificate.chain must have a certificate also for {missing}, like the one in use; "
        "or start with ssl.allow.san.changes=true"
    )
    assert refusal(issued(), issued(hosts=hosts), dn=True) == message
    assert refusal(issued(), issued(hosts=hosts), san=True) is None


@pytest.mark.parametrize("certificate", [b"", b"\x30", b"\x30\x82", b"\x30\x05\x30\x00", bytes(range(256))])
def test_a_malformed_certificate_is_an_error(certificate: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        CertificateNames.of(certificate)


def test_a_store_without_a_certificate_is_named() -> None:
    with pytest.raises(TlsError, match=r"^ssl.keystore.certificate.chain must have a certificate$"):
        names_of(KeyStore("PEM", key="key", certificate_chain="chain"))
