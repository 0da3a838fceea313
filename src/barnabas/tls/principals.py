"""Principals of client certificates: the distinguished name as Java writes it, and ssl.principal.mapping.rules."""

import re
from typing import Any, NamedTuple

import re2

from barnabas.tls.certificate_names import KEYWORDS
from barnabas.tls.der import Element, elements
from barnabas.tls.settings import TlsError

_KEY = "ssl.principal.mapping.rules"
_RULE = re.compile(r"RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)|DEFAULT")

#: The types of strings that Java writes as texts, and reads as UTF-8 even if they are not: UTF8String, PrintableString,
#: T61String, IA5String, GeneralString, BMPString.
_TEXT_TAGS = frozenset({12, 19, 20, 22, 27, 30})
_ESCAPED = ',+<>;"=\\#'


class NoMatchingRule(Exception):
    """No rule applies to a distinguished name."""


class _Rule(NamedTuple):
    pattern: Any  #: of re2; None for DEFAULT
    replacement: str
    case: str  #: L, U or empty


class PrincipalRules:
    """The rules of `ssl.principal.mapping.rules` (KIP-371): the first one that matches the whole name applies."""

    def __init__(self, text: str) -> None:
        """:raises TlsError: When a rule is malformed."""
        self._rules = [_parse_rule(rule) for rule in _split(text)]

    def name_of(self, distinguished_name: str) -> str:
        """Return the user name of a distinguished name.

        :raises NoMatchingRule: When no rule matches.
        """
        for pattern, replacement, case in self._rules:
            if pattern is None:
                return distinguished_name
            if pattern.fullmatch(distinguished_name):
                name = str(pattern.sub(replacement, distinguished_name))
                return {"L": name.lower(), "U": name.upper()}.get(case, name)
        raise NoMatchingRule(f"no rule of {_KEY} applies to {distinguished_name}")


def _split(text: str) -> list[re.Match[str]]:
    rules, position = [], 0
    text = text.strip()
    while position < len(text):
        match = _RULE.match(text, position)
        rest = text[match.end() :] if match else ""
        if match is None or (rest and not rest.lstrip().startswith(",")):
            raise TlsError(_KEY, text[position:], "must be DEFAULT or RULE:pattern/replacement/[LU]")
        rules.append(match)
        position = len(text) - len(rest.lstrip().removeprefix(",").lstrip())
    return rules


def _parse_rule(match: re.Match[str]) -> _Rule:
    if match[0] == "DEFAULT":
        return _Rule(None, "", "")
    try:
        pattern = re2.compile(match[1])
    except re2.error as error:
        raise TlsError(_KEY, match[1], f"is not a valid pattern: {error}") from None
    return _Rule(pattern, _replacement(match[2], pattern.groups), match[3])


def _replacement(text: str, groups_count: int) -> str:
    """Translate Java's references to groups, `$1`. A reference without a group is plain text, as in Apache Kafka."""

    def translate(match: re.Match[str]) -> str:
        if match[1] is not None and int(match[1]) <= groups_count:
            return rf"\{match[1]}"
        return (match[2] or match[0]).replace("\\", r"\\")

    return re.sub(r"\$(\d)|\\(.)|\\$", translate, text)


def distinguished_name(certificate: bytes) -> str:
    """Return the subject of a certificate in DER, as Java's `X500Principal.getName` writes it (RFC 2253)."""
    from cryptography import x509

    subject = x509.load_der_x509_certificate(certificate).subject
    parts = ["+".join(map(_attribute, relative)) for relative in subject.rdns]
    return ",".join(reversed(parts))


def _attribute(attribute: Any) -> str:
    number = attribute.oid.dotted_string
    value = _value(attribute)
    if number in KEYWORDS and value.tag in _TEXT_TAGS:
        return f"{KEYWORDS[number]}={_escaped(value.contents.decode(errors='replace'))}"
    return f"{KEYWORDS.get(number, number)}=#{value.der.hex()}"


def _escaped(value: str) -> str:
    text = "".join(f"\\{character}" if character in _ESCAPED else character for character in value)
    inner = text.strip(" ")
    before, after = len(text) - len(text.lstrip(" ")), len(text) - len(text.rstrip(" "))
    return ("\\ " * before + inner + "\\ " * after * bool(inner)).replace("\0", "\\00")


def _value(attribute: Any) -> Element:
    """Return the value of an attribute."""
    from cryptography import x509

    ((_, pairs, _),) = elements(x509.Name([attribute]).public_bytes())
    _, value = elements(elements(elements(pairs)[0].contents)[0].contents)
    return value
