import ssl
from pathlib import Path

import pytest

from barnabas.base.clock import ManualClock
from barnabas.client.auth.sasl import SaslLogin
from barnabas.client.auth.tokens import TokenSource
from barnabas.config.broker_config import BrokerConfig, LayeredConfig
from barnabas.config.definition import ConfigError
from barnabas.metadata.dynamic_config import DynamicConfig
from barnabas.server.inter_broker import InterBrokerSecurity
from barnabas.tls.reloading import CHECK_INTERVAL_MS
from support.certificates import Authority
from support.sasl import MODULE
from support.tls import write_keystore

AUTHORITY = Authority()


def config_of(tmp_path: Path, protocol: str = "SASL_SSL", **others: str) -> BrokerConfig:
    keystore = AUTHORITY.issue().write_pem(tmp_path / "own.pem")
    values = {
        "listeners": "INTERNAL://127.0.0.1:0",
        "listener.security.protocol.map": f"INTERNAL:{protocol}",
        "inter.broker.listener.name": "INTERNAL",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.internal.plain.sasl.jaas.config": f'{MODULE} required username="b" password="p" user_b="p";',
        "listener.name.internal.scram-sha-256.sasl.jaas.config": 'x.y required username="c" password="q";',
        "ssl.keystore.location": str(keystore),
        "ssl.truststore.certificates": AUTHORITY.pem,
        "ssl.truststore.type": "PEM",
    }
    return BrokerConfig(values | {name.replace("_", "."): value for name, value in others.items()})


def layers_of(tmp_path: Path, **others: str) -> LayeredConfig:
    return LayeredConfig.of(config_of(tmp_path, **others))


def security_of(config: BrokerConfig) -> InterBrokerSecurity:
    return InterBrokerSecurity(DynamicConfig(config), ManualClock().monotonic_ms)


def test_the_listener_between_brokers_says_how_they_connect(tmp_path: Path) -> None:
    security = security_of(config_of(tmp_path))
    assert security.login() == SaslLogin("PLAIN", "b", "p")
    tls = security.tls()
    assert tls is not None
    assert (tls.verify_mode, tls.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_plain_connections_need_neither(tmp_path: Path) -> None:
    security = security_of(config_of(tmp_path, "PLAINTEXT"))
    assert (security.login(), security.tls()) == (None, None)


def test_new_connections_follow_the_configuration(tmp_path: Path) -> None:
    dynamic_config = DynamicConfig(config_of(tmp_path))
    security = InterBrokerSecurity(dynamic_config, ManualClock().monotonic_ms)
    dynamic_config.layers = layers_of(
        tmp_path,
        ssl_endpoint_identification_algorithm="",
        sasl_mechanism_inter_broker_protocol="SCRAM-SHA-256",
    )
    tls = security.tls()
    assert tls is not None
    assert not tls.check_hostname
    assert security.login() == SaslLogin("SCRAM-SHA-256", "c", "q")
    dynamic_config.layers = layers_of(tmp_path, ssl_keystore_location="missing")
    assert security.tls() is tls


@pytest.mark.parametrize("allowed", ["false", "true"])
def test_a_certificate_with_another_name_is_presented_only_if_that_is_allowed(
    tmp_path: Path, allowed: str
) -> None:
    clock = ManualClock()
    config = config_of(tmp_path, ssl_allow_dn_changes=allowed)
    security = InterBrokerSecurity(DynamicConfig(config), clock.monotonic_ms)
    first = security.tls()
    write_keystore(AUTHORITY.issue(name="other"), tmp_path / "own.pem")
    clock.advance(CHECK_INTERVAL_MS)
    assert (security.tls() is first) == (allowed == "false")
    write_keystore(AUTHORITY.issue(), tmp_path / "own.pem")
    clock.advance(CHECK_INTERVAL_MS)
    assert security.tls() is not first


def test_an_unusable_keystore_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="missing"):
        security_of(config_of(tmp_path, ssl_keystore_location="missing"))


TOKENS = {
    "sasl_mechanism_inter_broker_protocol": "OAUTHBEARER",
    "sasl_oauthbearer_token_endpoint_url": "https://login.example/token",
    "listener_name_internal_sasl_oauthbearer_client_credentials_client_id": "broker",
    "listener_name_internal_oauthbearer_sasl_oauthbearer_client_credentials_client_secret": "hidden",
    "sasl_oauthbearer_client_credentials_client_secret": "of others",
    "sasl_oauthbearer_scope": "kafka",
}


def test_several_brokers_log_in_to_each_other_with_tokens(tmp_path: Path) -> None:
    login = security_of(config_of(tmp_path, **TOKENS, barnabas_store=f"sqlite:{tmp_path}/s")).login()
    source = TokenSource("https://login.example/token", "broker", "hidden", "kafka")
    assert login == SaslLogin("OAUTHBEARER", "broker", token_source=source)


def test_credentials_for_tokens_may_be_in_the_jaas_configuration(tmp_path: Path) -> None:
    options = {
        **TOKENS,
        "listener_name_internal_sasl_oauthbearer_client_credentials_client_id": "",
        "listener_name_internal_oauthbearer_sasl_oauthbearer_client_credentials_client_secret": "",
        "barnabas_store": f"sqlite:{tmp_path}/s",
    }
    jaas = {
        "listener.name.internal.oauthbearer.sasl.jaas.config": (
            'x.y required clientId="one" clientSecret="two";'
        )
    }
    login = security_of(BrokerConfig({**config_of(tmp_path, **options).originals, **jaas})).login()
    assert login is not None
    assert login.token_source == TokenSource("https://login.example/token", "one", "two", "kafka")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"sasl_oauthbearer_token_endpoint_url": ""}, "sasl.oauthbearer.token.endpoint.url must be set"),
        ({"sasl_oauthbearer_token_endpoint_url": "login.example"}, "must be an http, https or file URL"),
        (
            {"listener_name_internal_sasl_oauthbearer_client_credentials_client_id": ""},
            "client.id must be set for https://login.example/token",
        ),
    ],
)
def test_a_login_with_tokens_that_cannot_work_is_reported_without_the_secret(
    tmp_path: Path, changed: dict[str, str], says: str
) -> None:
    config = config_of(tmp_path, **{**TOKENS, **changed}, barnabas_store=f"sqlite:{tmp_path}/s")
    with pytest.raises(ConfigError, match=says) as raised:
        security_of(config)
    assert "hidden" not in str(raised.value)


def test_a_single_broker_needs_no_login_with_tokens(tmp_path: Path) -> None:
    mechanism = {"sasl_mechanism_inter_broker_protocol": "OAUTHBEARER"}
    assert security_of(config_of(tmp_path, **mechanism)).login() is None


def test_a_login_keeps_its_tokens_when_other_settings_change(tmp_path: Path) -> None:
    others = {**TOKENS, "barnabas_store": f"sqlite:{tmp_path}/s"}
    dynamic_config = DynamicConfig(config_of(tmp_path, **others))
    security = InterBrokerSecurity(dynamic_config, ManualClock().monotonic_ms)
    login = security.login()
    dynamic_config.layers = layers_of(tmp_path, **others, ssl_endpoint_identification_algorithm="")
    tls = security.tls()
    assert tls is not None
    assert not tls.check_hostname
    assert security.login() is login
