"""The names in a certificate, and whether the one that renews it has them, too (`ssl.allow.dn.changes`)."""

import ssl
import unicodedata
from ipaddress import ip_address
from typing import NamedTuple

from barnabas.tls.der import Element, elements
from barnabas.tls.settings import KeyStore, TlsError, TlsSettings
from barnabas.tls.stores import own_certificate

#: The attributes that Java writes with a keyword in RFC 2253's form; others appear by number, and without a text.
KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}

_VERSION_TAG, _EXTENSIONS_TAG = 0xA0, 0xA3
#: UTF8String and PrintableString: capitals and the number of blanks make no difference.
_TEXT_TAGS = (0x0C, 0x13)
#: IA5String as well.
_STRING_TAGS = (*_TEXT_TAGS, 0x16)
_ALTERNATIVE_NAMES = "2.5.29.17"

_EMAIL_TAG, _DNS_TAG, _URI_TAG, _ADDRESS_TAG = 0x81, 0x82, 0x86, 0x87


class CertificateNames(NamedTuple):
    """The names of a certificate, as X.500 compares them."""

    subject: tuple[frozenset[tuple[str, str]], ...]  #: sets of (attribute, value)
    alternatives: frozenset[bytes]  #: subject alternative names in DER
    distinguished_name: str  #: the subject, for people

    @classmethod
    def of(cls, certificate: bytes) -> "CertificateNames":
        """Return the names of a certificate in DER.

        :raises ValueError: If it is malformed.
        """
        ((_, signed, _),) = elements(certificate)
        fields = elements(elements(signed)[0].contents)
        if fields[0].tag == _VERSION_TAG:
            del fields[0]
        subject = [
            [elements(pair.contents) for pair in elements(each.contents)]
            for each in elements(fields[4].contents)
        ]
        texts = ["+".join(_attribute_text(*pair) for pair in pairs) for pairs in subject]
        return cls(
            tuple(frozenset(_compared(*pair) for pair in pairs) for pairs in subject),
            frozenset(each.der for field in fields for each in _alternatives(field)),
            ",".join(reversed(texts)),
        )


def names_of(store: KeyStore) -> CertificateNames:
    """Return the names of the certificate in a key store.

    :raises TlsError: When the store cannot be read.
    """
    certificate = own_certificate(store)
    try:
        return CertificateNames.of(ssl.PEM_cert_to_DER_cert(certificate))
    except (ValueError, IndexError) as error:
        raise TlsError(_key(store), store.location, "must have a certificate") from error


def check_names(former: CertificateNames, names: CertificateNames, settings: TlsSettings) -> None:
    """Refuse a certificate that lacks names of the former one, unless the settings allow it.

    :raises TlsError: When it lacks some.
    """
    assert settings.keys is not None
    key, location = _key(settings.keys), settings.keys.location
    if not settings.allows_dn_changes and names.subject != former.subject:
        reason = (
            f"must have a certificate for {former.distinguished_name}, like the one in use, not for "
            f"{names.distinguished_name}; or start with ssl.allow.dn.changes=true"
        )
        raise TlsError(key, location, reason)
    missing = sorted(former.alternatives - names.alternatives)
    if not settings.allows_san_changes and missing:
        texts = ", ".join(_alternative_text(*elements(each)) for each in missing)
        reason = (
            f"must have a certificate also for {texts}, like the one in use; "
            "or start with ssl.allow.san.changes=true"
        )
        raise TlsError(key, location, reason)


def _key(store: KeyStore) -> str:
    return "ssl.keystore.location" if store.location else "ssl.keystore.certificate.chain"


def _alternatives(field: Element) -> list[Element]:
    """Return the subject alternative names in a field of a certificate."""
    if field.tag != _EXTENSIONS_TAG:
        return []
    for extension in elements(elements(field.contents)[0].contents):
        kind, *_, value = elements(extension.contents)
        if _number(kind.contents) == _ALTERNATIVE_NAMES:
            return elements(elements(value.contents)[0].contents)
    return []


def _compared(kind: Element, value: Element) -> tuple[str, str]:
    """Return an attribute so that equal ones are equal for Java, too."""
    number = _number(kind.contents)
    if number in KEYWORDS and value.tag in _TEXT_TAGS:
        text = unicodedata.normalize("NFKD", value.contents.decode())
        return number, " ".join(text.lower().split())
    return number, value.der.hex()


def _attribute_text(kind: Element, value: Element) -> str:
    number = _number(kind.contents)
    text = value.contents.decode() if value.tag in _STRING_TAGS else f"#{value.der.hex()}"
    return f"{KEYWORDS.get(number, number)}={text}"


def _alternative_text(name: Element) -> str:
    if name.tag in (_EMAIL_TAG, _DNS_TAG, _URI_TAG):
        return name.contents.decode("ascii", "replace")
    if name.tag == _ADDRESS_TAG and len(name.contents) in (4, 16):
        return str(ip_address(name.contents))
    return name.der.hex()


def _number(contents: bytes) -> str:
    """Return an object identifier in its usual form."""
    values, value = [], 0
    for byte in contents:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            values.append(value)
            value = 0
    first = min(values[0] // 40, 2)
    return ".".join(map(str, (first, values[0] - first * 40, *values[1:])))
