import pytest

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.config.listener_validation import check_listener_change, check_listeners
from barnabas.config.tls import listener_tls_settings
from barnabas.tls.settings import ClientAuth

SASL = {"listeners": "SASL_PLAINTEXT://127.0.0.1:9092", "inter.broker.listener.name": "SASL_PLAINTEXT"}


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_a_listener_with_tls_needs_keys_and_valid_settings(protocol: str) -> None:
    values = {"listeners": f"{protocol}://127.0.0.1:9092", "sasl.enabled.mechanisms": "PLAIN"}
    with pytest.raises(ConfigError, match=f"must be set for listener {protocol}, which uses TLS"):
        check_listeners(BrokerConfig(values))
    values["ssl.keystore.location"] = "own.pem"
    check_listeners(BrokerConfig(values))
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules: must be DEFAULT or RULE"):
        check_listeners(BrokerConfig({**values, "ssl.principal.mapping.rules": "garbage"}))
    with pytest.raises(ConfigError, match=r"ssl\.enabled\.protocols: must be among TLSv1\.2"):
        check_listeners(BrokerConfig({**values, "ssl.enabled.protocols": "SSLv3"}))


def test_with_sasl_only_client_certificates_of_the_listener_itself_are_required() -> None:
    values = {
        "listeners": "SASL_SSL://127.0.0.1:9092",
        "sasl.enabled.mechanisms": "PLAIN",
        "ssl.keystore.location": "own.pem",
        "ssl.client.auth": "required",
    }
    config = BrokerConfig(values)
    assert listener_tls_settings(config, config.listeners[0]).client_auth is ClientAuth.NONE
    config = BrokerConfig({**values, "listener.name.sasl_ssl.ssl.client.auth": "requested"})
    assert listener_tls_settings(config, config.listeners[0]).client_auth is ClientAuth.REQUESTED


def test_a_listener_with_sasl_needs_a_usable_mechanism() -> None:
    check_listeners(BrokerConfig({**SASL, "sasl.enabled.mechanisms": "PLAIN"}))
    with pytest.raises(ConfigError, match="cannot offer 'GSSAPI'"):
        check_listeners(BrokerConfig(SASL))


def test_listeners_can_be_added_and_removed_and_others_keep_their_protocol() -> None:
    before = BrokerConfig(
        {"listeners": "A://:1,B://:2", "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT"}
    )
    check_listener_change(
        before,
        BrokerConfig(
            {"listeners": "A://:3,C://:4", "listener.security.protocol.map": "A:PLAINTEXT,C:PLAINTEXT"}
        ),
    )
    other = BrokerConfig(
        {
            "listeners": "A://:1",
            "listener.security.protocol.map": "A:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
        }
    )
    with pytest.raises(ConfigError, match="listener A is open with PLAINTEXT"):
        check_listener_change(before, other)
