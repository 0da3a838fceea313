from dataclasses import replace

import pytest

from barnabas.client.auth.sasl import SaslLogin
from barnabas.client.auth.tokens import TokenSource
from barnabas.client.core.properties import login_from_properties, suspect_properties, tls_from_properties
from barnabas.config.properties import read_properties
from barnabas.tls.settings import KeyStore

JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="secret";'
SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": JAAS}


def test_kafkas_properties_define_the_login() -> None:
    assert login_from_properties(SASL) == SaslLogin("SCRAM-SHA-256", "alice", "secret")
    assert login_from_properties({**SASL, "sasl.mechanism": "PLAIN"}) == SaslLogin("PLAIN", "alice", "secret")


def test_without_a_login_no_property_is_needed() -> None:
    assert login_from_properties({}) is None
    assert login_from_properties({**SASL, "security.protocol": "plaintext", "acks": "all"}) is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"security.protocol": "TLS"},
            "security.protocol=TLS: must be one of PLAINTEXT, SSL, SASL_PLAINTEXT",
        ),
        ({"sasl.mechanism": "GSSAPI"}, "sasl.mechanism=GSSAPI: this client supports PLAIN, SCRAM-SHA-256"),
        ({"sasl.jaas.config": ""}, "sasl.jaas.config must be one login module"),
        ({"sasl.jaas.config": JAAS[:-1]}, "sasl.jaas.config must be one login module"),
        (
            {"sasl.jaas.config": 'a.B required password="secret";'},
            "must have the options username and password",
        ),
        (
            {"sasl.jaas.config": 'a.B required username="secret";'},
            "must have the options username and password",
        ),
    ],
)
def test_invalid_properties_are_reported_without_the_password(change: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        login_from_properties({**SASL, **change})
    assert "secret" not in str(refused.value)


def test_kafkas_properties_define_tls() -> None:
    store = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": "own.p12",
        "ssl.keystore.password": "secret",
    }
    tls = tls_from_properties(
        {**SASL, **store, "security.protocol": "SASL_SSL", "ssl.enabled.protocols": "TLSv1.3"}
    )
    assert tls is not None
    assert tls.keys == KeyStore("PKCS12", "own.p12", "secret")
    assert (tls.versions, tls.verifies_host_name) == (("TLSv1.3",), True)
    tls = tls_from_properties({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""})
    assert tls is not None
    assert (tls.trust, tls.verifies_host_name) == (None, False)
    assert tls_from_properties(SASL) is None


def test_a_login_with_tokens_has_their_source_and_the_claim_that_names_the_user() -> None:
    prefix = "sasl.oauthbearer"
    properties = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        f"{prefix}.token.endpoint.url": "https://login.example/token",
        f"{prefix}.client.credentials.client.id": "orders",
        f"{prefix}.client.credentials.client.secret": "hidden",
    }
    login = login_from_properties(properties)
    source = TokenSource("https://login.example/token", "orders", "hidden")
    assert login == SaslLogin("OAUTHBEARER", "orders", token_source=source)
    named = login_from_properties({**properties, f"{prefix}.sub.claim.name": "client"})
    assert named is not None
    assert named.token_source == replace(source, subject_claim="client")


def test_the_default_mechanism_is_kerberos() -> None:
    with pytest.raises(ValueError, match="=GSSAPI: this client supports"):
        login_from_properties({key: SASL[key] for key in SASL if key != "sasl.mechanism"})


def suspects(text: str) -> list[str]:
    return list(suspect_properties(read_properties(text)))


@pytest.mark.parametrize(
    "text", ["acks=all\nssl.truststore.location = x\nconfig.providers.file.class:y", "#a\n\n"]
)
def test_properties_of_kafkas_clients_are_known(text: str) -> None:
    assert suspects(text) == []


def test_a_misspelt_property_is_reported_with_its_line_and_the_likely_one() -> None:
    assert suspects("acks=all\nsasl.mechanisms=PLAIN") == [
        "line 2: unknown client property 'sasl.mechanisms'; did you mean sasl.mechanism?"
    ]


def test_a_line_without_a_value_is_reported() -> None:
    assert suspects("a \\\n b\nsasl.jaas.config") == [
        "line 1: unknown client property 'a'",
        "line 3: expected key=value",
    ]
