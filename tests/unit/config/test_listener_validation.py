import pytest

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.config.listener_validation import check_listener_change, check_listeners

SASL = {"listeners": "SASL_PLAINTEXT://127.0.0.1:9092", "inter.broker.listener.name": "SASL_PLAINTEXT"}


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_an_unsupported_security_protocol_is_rejected(protocol: str) -> None:
    with pytest.raises(
        ConfigError, match=f"has protocol {protocol}: it must be PLAINTEXT and SASL_PLAINTEXT"
    ):
        check_listeners(BrokerConfig({"listeners": f"{protocol}://127.0.0.1:9092"}))


def test_a_listener_with_sasl_needs_a_usable_mechanism() -> None:
    check_listeners(BrokerConfig({**SASL, "sasl.enabled.mechanisms": "PLAIN"}))
    with pytest.raises(ConfigError, match="cannot offer GSSAPI"):
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
