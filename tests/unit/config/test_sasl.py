from pathlib import Path

import pytest

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.config.oauth import OauthSettings
from barnabas.config.sasl import SaslSettings, sasl_settings

JAAS = "listener.name.clients.plain.sasl.jaas.config"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def settings(**values: str) -> SaslSettings:
    """Return settings of listener CLIENTS; keys have underscores for dots."""
    given = {key.replace("__", "-").replace("_", "."): value for key, value in values.items()}
    return settings_of({"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512", **given})


def settings_of(originals: dict[str, str]) -> SaslSettings:
    base = {
        "listeners": "CLIENTS://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
    }
    return sasl_settings(BrokerConfig({**base, **originals}), "CLIENTS")


def test_a_listener_has_its_own_mechanisms_or_the_common_ones() -> None:
    assert settings().mechanisms == ("PLAIN", "SCRAM-SHA-512")
    own = settings(listener_name_clients_sasl_enabled_mechanisms="SCRAM-SHA-256")
    assert own.mechanisms == ("SCRAM-SHA-256",)


@pytest.mark.parametrize("mechanisms", ["GSSAPI", "PLAIN,GSSAPI", "plain"])
def test_an_unknown_mechanism_is_reported_with_the_known_ones(mechanisms: str) -> None:
    with pytest.raises(
        ConfigError, match=r"CLIENTS cannot offer .*: it must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"
    ):
        settings(sasl_enabled_mechanisms=mechanisms)


def test_a_listener_needs_a_mechanism() -> None:
    with pytest.raises(ConfigError, match="CLIENTS must offer a mechanism"):
        settings(sasl_enabled_mechanisms="")


def test_plain_users_are_in_the_login_module() -> None:
    text = f'{MODULE} required username="admin" password="x" user_admin="x" user_alice="y";'
    found = settings_of({"sasl.enabled.mechanisms": "PLAIN", JAAS: text})
    assert found.plain_users == {"admin": "x", "alice": "y"}
    assert "user_alice" not in repr(found)
    assert "'y'" not in repr(found)


@pytest.mark.parametrize("key", ["sasl.jaas.config", "listener.name.clients.sasl.jaas.config"])
def test_a_login_module_without_listener_and_mechanism_is_ignored_as_in_kafka(key: str) -> None:
    text = f'{MODULE} required user_alice="y";'
    assert settings_of({"sasl.enabled.mechanisms": "PLAIN", key: text}).plain_users == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f'{MODULE} required user_alice="secret"', "must be one login module"),
        ('a.ScramLoginModule required user_alice="secret";', f"must be {MODULE}"),
    ],
)
def test_an_invalid_login_module_is_rejected_without_its_passwords(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        settings_of({"sasl.enabled.mechanisms": "PLAIN", JAAS: text})
    assert "secret" not in str(refused.value)


def test_a_session_lifetime_can_be_shorter_for_one_mechanism() -> None:
    both = settings(connections_max_reauth_ms="5000")
    assert both.session_ms_max == {"PLAIN": 5000, "SCRAM-SHA-512": 5000}
    found = settings_of(
        {
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "connections.max.reauth.ms": "5000",
            "listener.name.clients.scram-sha-512.connections.max.reauth.ms": "700",
        }
    )
    assert found.session_ms_max == {"PLAIN": 5000, "SCRAM-SHA-512": 700}
    assert settings(connections_max_reauth_ms="-1").session_ms_max == {"PLAIN": 0, "SCRAM-SHA-512": 0}


def test_frame_sizes_and_the_users_file_are_configurable() -> None:
    found = settings(sasl_server_max_receive_size="77", barnabas_sasl_plain_users_file="/etc/users")
    assert (found.receive_bytes_max, found.users_file) == (77, Path("/etc/users"))
    assert (settings().receive_bytes_max, settings().users_file) == (524_288, None)


def test_oauthbearer_checks_tokens_unless_it_is_asked_not_to() -> None:
    accepting = {"sasl_enabled_mechanisms": "OAUTHBEARER"}
    with pytest.raises(ConfigError, match=r"jwks\.endpoint\.url: must be set for OAUTHBEARER"):
        settings(**accepting)
    with pytest.raises(ConfigError, match="must be a URL with one of http, https, file"):
        settings(**accepting, sasl_oauthbearer_jwks_endpoint_url="ftp://keys")
    with pytest.raises(ConfigError, match="must not be set together"):
        settings(
            **accepting,
            sasl_oauthbearer_jwks_endpoint_url="https://keys",
            barnabas_sasl_oauthbearer_unsecured="true",
        )
    assert settings(**accepting, barnabas_sasl_oauthbearer_unsecured="true").oauth == OauthSettings("")
    own = settings(
        **accepting,
        listener_name_clients_sasl_oauthbearer_jwks_endpoint_url="https://keys",
        sasl_oauthbearer_expected_audience="a,b",
        sasl_oauthbearer_expected_issuer="https://issuer",
        barnabas_sasl_oauthbearer_required_scopes="kafka",
    )
    assert own.oauth == OauthSettings(
        "https://keys", audiences=("a", "b"), issuer="https://issuer", scopes=("kafka",)
    )
    assert settings().oauth is None


def test_oauthbearer_has_settings_with_its_own_prefix_as_the_documentation_of_kafka_writes_them() -> None:
    found = settings(
        sasl_enabled_mechanisms="OAUTHBEARER",
        listener_name_clients_oauthbearer_sasl_oauthbearer_jwks_endpoint_url="https://keys",
        listener_name_clients_oauthbearer_sasl_oauthbearer_expected_issuer="https://issuer",
        listener_name_clients_sasl_oauthbearer_expected_issuer="https://of-the-listener",
        listener_name_other_oauthbearer_sasl_oauthbearer_expected_audience="others",
    )
    assert found.oauth == OauthSettings("https://keys", issuer="https://issuer")


def test_a_mechanisms_prefix_without_the_listener_has_no_effect() -> None:
    """Such keys are unknown, so they could be changed at runtime."""
    found = settings(
        sasl_enabled_mechanisms="OAUTHBEARER",
        sasl_oauthbearer_jwks_endpoint_url="https://keys",
        oauthbearer_sasl_oauthbearer_jwks_endpoint_url="https://others",
    )
    assert found.oauth == OauthSettings("https://keys")
