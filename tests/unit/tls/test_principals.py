import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import NameAttribute, NameOID, RelativeDistinguishedName
from cryptography.x509.name import _ASN1Type

from barnabas.tls.principals import NoMatchingRule, PrincipalRules, distinguished_name
from barnabas.tls.settings import TlsError
from support.certificates import Authority

AUTHORITY = Authority()


def part(*attributes: NameAttribute[str]) -> RelativeDistinguishedName:
    return RelativeDistinguishedName(attributes)


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (
            [
                part(NameAttribute(NameOID.COUNTRY_NAME, "DE")),
                part(NameAttribute(NameOID.STATE_OR_PROVINCE_NAME, "Hessen")),
                part(NameAttribute(NameOID.ORGANIZATION_NAME, "Orders, Inc.")),
                part(NameAttribute(NameOID.COMMON_NAME, "alice")),
            ],
            "CN=alice,O=Orders\\, Inc.,ST=Hessen,C=DE",
        ),
        (
            [
                part(NameAttribute(NameOID.DOMAIN_COMPONENT, "example")),
                part(NameAttribute(NameOID.COMMON_NAME, "a"), NameAttribute(NameOID.USER_ID, "7")),
            ],
            None,
        ),
        ([part(NameAttribute(NameOID.COMMON_NAME, ' #x\\"+;<=> '))], 'CN=\\ \\#x\\\\\\"\\+\\;\\<\\=\\>\\ '),
        (
            [part(NameAttribute(NameOID.EMAIL_ADDRESS, "a@b.c"))],
            "1.2.840.113549.1.9.1=#1605614062" + "2e63",
        ),
    ],
)
def test_the_subject_is_written_as_java_does(
    parts: list[RelativeDistinguishedName], name: str | None
) -> None:
    der = AUTHORITY.issue(*parts).certificate.public_bytes(Encoding.DER)
    written = distinguished_name(der)
    if name is None:  # Java keeps the order of a multi-valued part, which DER has sorted
        assert written in ("CN=a+UID=7,DC=example", "UID=7+CN=a,DC=example")
    else:
        assert written == name


@pytest.mark.parametrize(
    ("value", "written"), [("  a b  ", "\\ \\ a b\\ \\ "), ("a#b", "a\\#b"), ("a\0b", "a\\00b")]
)
def test_values_are_escaped_as_in_java(value: str, written: str) -> None:
    der = AUTHORITY.issue(part(NameAttribute(NameOID.COMMON_NAME, value))).certificate.public_bytes(
        Encoding.DER
    )
    assert distinguished_name(der) == f"CN={written}"


def test_values_of_other_types_keep_their_encoding() -> None:
    attribute = NameAttribute(NameOID.SERIAL_NUMBER, "ab", _type=_ASN1Type.BMPString)
    der = AUTHORITY.issue(part(attribute)).certificate.public_bytes(Encoding.DER)
    assert distinguished_name(der) == "2.5.4.5=#1e0400610062"


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        (_ASN1Type.T61String, "CN=1é"),
        (_ASN1Type.BMPString, "CN=\\001\\00\ufffd"),
        (_ASN1Type.NumericString, "CN=#120331c3a9"),
        (_ASN1Type.UniversalString, "CN=#1c0800000031000000e9"),
    ],
)
def test_strings_of_every_encoding_are_read_as_in_java(kind: _ASN1Type, written: str) -> None:
    issued = AUTHORITY.issue(part(NameAttribute(NameOID.COMMON_NAME, "1é", _type=kind)))
    assert distinguished_name(issued.certificate.public_bytes(Encoding.DER)) == written


def test_long_values_are_written_whole() -> None:
    der = AUTHORITY.issue(
        part(NameAttribute(x509.ObjectIdentifier("1.2.3.4"), "x" * 300))
    ).certificate.public_bytes(Encoding.DER)
    assert distinguished_name(der) == "1.2.3.4=#0c82012c" + "78" * 300


@pytest.mark.parametrize(
    ("rules", "name", "user"),
    [
        ("DEFAULT", "CN=alice,O=x", "CN=alice,O=x"),
        ("RULE:^CN=(.*?),.*$/$1/", "CN=alice,O=x", "alice"),
        ("RULE:^CN=(.*?),.*$/$1/L,DEFAULT", "CN=Alice,O=x", "alice"),
        ("RULE:^CN=(.*?),O=(.*?)$/$2-$1/U , DEFAULT", "CN=alice,O=x", "X-ALICE"),
        ("RULE:^UID=(.*)$/$1/,RULE:^CN=(.*),.*$/u-$1/", "CN=alice,O=x", "u-alice"),
        ("RULE:^UID=(.*)$/$1/,DEFAULT", "CN=alice,O=x", "CN=alice,O=x"),
        (r"RULE:^CN=(.*?),.*$/$1\/$2/", "CN=alice,O=x", "alice/$2"),
    ],
)
def test_the_first_rule_that_matches_the_whole_name_applies(rules: str, name: str, user: str) -> None:
    assert PrincipalRules(rules).name_of(name) == user


def test_a_name_without_a_rule_has_no_user() -> None:
    with pytest.raises(NoMatchingRule, match="CN=alice,O=x"):
        PrincipalRules("RULE:^CN=alice$/alice/").name_of("CN=alice,O=x")


@pytest.mark.parametrize(
    "rules", ["RULE:a", "DEFAULT,RULE:a/b", "DEFAULT RULE:a/b/", "RULE:(/b/", "nonsense"]
)
def test_malformed_rules_are_reported(rules: str) -> None:
    with pytest.raises(TlsError, match=r"ssl.principal.mapping.rules="):
        PrincipalRules(rules)
