from itertools import pairwise
from pathlib import Path

import pytest

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.config.listener_validation import check_listener_change, check_listeners
from barnabas.config.tls import listener_tls_settings
from barnabas.tls.settings import ClientAuth
from support.certificates import Authority

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


def with_tls(directory: Path, keys: str, trusted: str, inter_broker: str = "SSL") -> BrokerConfig:
    """Return a configuration with stores of this directory, written before by `write_stores`."""
    return BrokerConfig(
        {
            "listeners": "SSL://:1,PLAINTEXT://:2",
            "inter.broker.listener.name": inter_broker,
            "listener.name.ssl.ssl.keystore.location": str(directory / f"{keys}.pem"),
            "listener.name.ssl.ssl.truststore.location": str(directory / f"trusts-{trusted}.pem"),
        }
    )


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates `one` and `two`, and truststores for them and for both."""
    directory = tmp_path_factory.mktemp("stores")
    authorities = {name: Authority(name) for name in ("one", "two")}
    for name, authority in authorities.items():
        authority.issue().write_pem(directory / f"{name}.pem")
        authority.write_pem(directory / f"trusts-{name}.pem")
    (directory / "trusts-both.pem").write_text("".join(each.pem for each in authorities.values()))
    return directory


def test_certificates_between_brokers_are_replaced_in_steps_in_which_brokers_trust_each_other(
    stores: Path,
) -> None:
    steps = [("one", "one"), ("one", "both"), ("two", "both"), ("two", "two")]
    configs = [with_tls(stores, *step) for step in steps]
    for before, after in pairwise(configs):
        check_listener_change(before, after)
    with pytest.raises(ConfigError, match=r"two\.pem' for ssl\.keystore\.location: must have a cert"):
        check_listener_change(configs[0], configs[2])
    with pytest.raises(ConfigError, match=r"two\.pem' for ssl\.truststore\.location: must have what"):
        check_listener_change(configs[1], with_tls(stores, "one", "two"))


def test_certificates_for_clients_alone_need_not_be_trusted_by_brokers(stores: Path) -> None:
    before, after = (with_tls(stores, name, "one", inter_broker="PLAINTEXT") for name in ("one", "two"))
    check_listener_change(before, after)


def test_brokers_that_did_not_trust_each_other_before_may_get_any_certificate(stores: Path) -> None:
    check_listener_change(with_tls(stores, "one", "two"), with_tls(stores, "one", "one"))
