from pathlib import Path

import pytest

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.config.sasl import SaslSettings, sasl_settings

JAAS = "listener.name.clients.plain.sasl.jaas.config"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def settings(**values: str) -> SaslSettings:
    """Those of listener CLIENTS; keys have underscores for their dots."""
    given = {key.replace("__", "-").replace("_", "."): value for key, value in values.items()}
    return settings_of({"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512", **given})


def settings_of(originals: dict[str, str]) -> SaslSettings:
    base = {
        "listeners": "CLIENTS://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
    }
    return sasl_settings(BrokerConfig({**base, **originals}), "CLIENTS")


def test_a_listener_offers_the_mechanisms_of_its_own_or_those_of_all() -> None:
    assert settings().mechanisms == ("PLAIN", "SCRAM-SHA-512")
    own = settings(listener_name_clients_sasl_enabled_mechanisms="SCRAM-SHA-256")
    assert own.mechanisms == ("SCRAM-SHA-256",)


@pytest.mark.parametrize("mechanisms", ["GSSAPI", "PLAIN,OAUTHBEARER", "plain"])
def test_a_mechanism_that_there_is_not_is_named_with_those_that_there_are(mechanisms: str) -> None:
    with pytest.raises(
        ConfigError, match=r"CLIENTS cannot offer .*: it must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"
    ):
        settings(sasl_enabled_mechanisms=mechanisms)


def test_a_listener_must_offer_something() -> None:
    with pytest.raises(ConfigError, match="CLIENTS must offer a mechanism"):
        settings(sasl_enabled_mechanisms="")


def test_users_of_plain_are_in_the_login_module() -> None:
    text = f'{MODULE} required username="admin" password="x" user_admin="x" user_alice="y";'
    found = settings_of({"sasl.enabled.mechanisms": "PLAIN", JAAS: text})
    assert found.plain_users == {"admin": "x", "alice": "y"}
    assert "user_alice" not in repr(found)
    assert "'y'" not in repr(found)


@pytest.mark.parametrize("key", ["sasl.jaas.config", "listener.name.clients.sasl.jaas.config"])
def test_a_login_module_without_listener_and_mechanism_counts_for_nothing_as_in_kafka(key: str) -> None:
    text = f'{MODULE} required user_alice="y";'
    assert settings_of({"sasl.enabled.mechanisms": "PLAIN", key: text}).plain_users == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f'{MODULE} required user_alice="secret"', "must be one login module"),
        ('a.ScramLoginModule required user_alice="secret";', f"must be {MODULE}"),
    ],
)
def test_a_login_module_that_cannot_be_is_refused_without_its_passwords(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        settings_of({"sasl.enabled.mechanisms": "PLAIN", JAAS: text})
    assert "secret" not in str(refused.value)


def test_a_session_may_end_and_sooner_for_one_mechanism() -> None:
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


def test_frames_and_the_users_file_are_bounded_and_named() -> None:
    found = settings(sasl_server_max_receive_size="77", barnabas_sasl_plain_users_file="/etc/users")
    assert (found.receive_bytes_max, found.users_file) == (77, Path("/etc/users"))
    assert (settings().receive_bytes_max, settings().users_file) == (524_288, None)
