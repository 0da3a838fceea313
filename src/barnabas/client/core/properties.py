"""Kafka's own client properties, as in files for `--command-config`: login, TLS, and warnings about the file."""

from collections.abc import Iterable, Iterator, Mapping

from barnabas.client.auth.sasl import MECHANISMS, OAUTHBEARER, SaslLogin
from barnabas.client.auth.tokens import TokenSource
from barnabas.client.property_names import is_client_property, nearest_property
from barnabas.config.jaas import parse_jaas
from barnabas.config.listeners import SecurityProtocol
from barnabas.config.properties import Property
from barnabas.tls.settings import TlsSettings, tls_settings


def login_from_properties(properties: Mapping[str, str]) -> SaslLogin | None:
    """Return the login that `security.protocol`, `sasl.mechanism` and `sasl.jaas.config` describe; None without
    authentication.

    Other properties belong to other clients and are ignored.

    :raises ValueError: When a value is invalid. Its message never quotes a password.
    """
    if not _protocol(properties).has_sasl:
        return None
    mechanism = properties.get("sasl.mechanism", "GSSAPI").strip()
    if mechanism not in MECHANISMS:
        message = f"sasl.mechanism={mechanism}: this client supports {', '.join(MECHANISMS)}"
        raise ValueError(message)
    if mechanism == OAUTHBEARER:
        return token_login(properties)
    options = _credential(properties.get("sasl.jaas.config", ""))
    is_delegation_token = options.get("tokenauth", "").lower() == "true"
    return SaslLogin(mechanism, options["username"], options["password"], is_delegation_token)


def token_login(properties: Mapping[str, str]) -> SaslLogin:
    """Return the login by OAUTHBEARER; credentials may be in the JAAS configuration, as before Kafka 4.1.

    :raises ValueError: When a value is invalid. Its message never quotes a secret.
    """
    source = _token_source(properties)
    return SaslLogin(
        OAUTHBEARER, source.client_id or source.unsecured_user or source.url, token_source=source
    )


def _token_source(properties: Mapping[str, str]) -> TokenSource:
    prefix = "sasl.oauthbearer"
    options = _jaas_options(properties.get("sasl.jaas.config", ""))
    source = TokenSource(
        properties.get(f"{prefix}.token.endpoint.url", "").strip(),
        properties.get(f"{prefix}.client.credentials.client.id", "") or options.get("clientId", ""),
        properties.get(f"{prefix}.client.credentials.client.secret", "") or options.get("clientSecret", ""),
        properties.get(f"{prefix}.scope", "") or options.get("scope", ""),
        options.get("unsecuredLoginStringClaim_sub", ""),
        properties.get(f"{prefix}.sub.claim.name", "").strip() or "sub",
    )
    if not source.url and not source.unsecured_user:
        raise ValueError(f"{prefix}.token.endpoint.url must be set for OAUTHBEARER")
    if source.url and not source.url.startswith(("http:", "https:", "file:")):
        raise ValueError(f"{prefix}.token.endpoint.url={source.url}: must be an http, https or file URL")
    if source.url.startswith("http") and not source.client_id:
        raise ValueError(f"{prefix}.client.credentials.client.id must be set for {source.url}")
    return source


def tls_from_properties(properties: Mapping[str, str]) -> TlsSettings | None:
    """Return the TLS settings that `security.protocol` and the properties `ssl...` describe; None without TLS.

    :raises ValueError: When a value is invalid. Its message never quotes a password or a key.
    """
    if not _protocol(properties).has_tls:
        return None
    given = {"ssl.endpoint.identification.algorithm": "https", **properties}

    def text(name: str) -> str:
        return given.get(name, "").strip()

    return tls_settings(text, lambda name: tuple(filter(None, map(str.strip, text(name).split(",")))))


def _protocol(properties: Mapping[str, str]) -> SecurityProtocol:
    name = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if name not in SecurityProtocol.__members__:
        message = f"security.protocol={name}: must be one of {', '.join(SecurityProtocol.__members__)}"
        raise ValueError(message)
    return SecurityProtocol[name]


def suspect_properties(properties: Iterable[Property]) -> Iterator[str]:
    """Yield a warning for each line without a value, and for each property that Kafka's clients do not know."""
    for property_line in properties:
        near = None if is_client_property(property_line.key) else nearest_property(property_line.key)
        hint = f"; did you mean {near}?" if near else ""
        if property_line.is_key_alone:  # not quoted: it may be part of a password
            yield f"line {property_line.line}: expected key=value{hint}"
        elif not is_client_property(property_line.key):
            yield f"line {property_line.line}: unknown client property '{property_line.key}'{hint}"


def _jaas_options(text: str) -> Mapping[str, str]:
    try:
        return parse_jaas(text).options if text.strip() else {}
    except ValueError as error:
        message = f"sasl.jaas.config {error}"
        raise ValueError(message) from None


def _credential(text: str) -> Mapping[str, str]:
    try:
        options = parse_jaas(text).options
    except ValueError as error:
        message = f"sasl.jaas.config {error}"
        raise ValueError(message) from None
    if not options.get("username") or "password" not in options:
        message = "sasl.jaas.config must have the options username and password"
        raise ValueError(message)
    return options
