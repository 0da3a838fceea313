import asyncio
from pathlib import Path

import pytest

from barnabas.config.broker_config import BrokerConfig
from barnabas.server.web import Site, site_of
from barnabas.telemetry.metrics import MetricsRegistry
from barnabas.tls.settings import TlsSettings, TrustStore
from support.certificates import Authority

AUTHORITY = Authority()
BROKER = AUTHORITY.issue()


def site_for(listeners: str, **others: str) -> Site | None:
    """Return the site of a broker that has opened its listeners on their ports; `_` in names stands for a dot."""
    values = {
        "listeners": listeners,
        "inter.broker.listener.name": listeners.partition(":")[0],
        "sasl.enabled.mechanisms": "PLAIN",
        "barnabas.metrics.listener": "127.0.0.1:9404",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": BROKER.key_pem(),
        "ssl.keystore.certificate.chain": BROKER.certificate_pem,
        **{name.replace("_", "."): value for name, value in others.items()},
    }
    config = BrokerConfig(values)
    addresses = [(each.name, each.host, each.port) for each in config.listeners]

    async def find() -> Site | None:
        return site_of(config, addresses, MetricsRegistry())

    return asyncio.run(find())


@pytest.mark.parametrize(
    ("listeners", "bootstrap"),
    [
        ("PLAINTEXT://127.0.0.1:1", "127.0.0.1:1"),
        ("PLAINTEXT://127.0.0.1:1,SASL_PLAINTEXT://127.0.0.1:2", "127.0.0.1:2"),
        ("SASL_PLAINTEXT://127.0.0.1:2,SASL_SSL://127.0.0.1:3", "127.0.0.1:3"),
        ("SSL://127.0.0.1:4,PLAINTEXT://127.0.0.1:1", "127.0.0.1:1"),
        ("SSL://127.0.0.1:4", "127.0.0.1:4"),
        ("PLAINTEXT://:5", "127.0.0.1:5"),
    ],
)
def test_the_pages_use_the_listener_that_asks_for_most(listeners: str, bootstrap: str) -> None:
    site = site_for(listeners)
    assert site is not None
    assert site.bootstrap == bootstrap
    assert (site.tls is not None) == bootstrap.endswith(("3", "4"))


def test_the_pages_trust_only_the_brokers_own_certificate_if_the_listener_trusts_no_other() -> None:
    site = site_for("SSL://127.0.0.1:4")
    assert site is not None
    own = TrustStore("PEM", certificates=BROKER.certificate_pem.strip())
    assert site.tls == TlsSettings(trust=own, verifies_host_name=False)


def test_the_pages_connect_to_the_advertised_name_if_they_verify_it(tmp_path: Path) -> None:
    site = site_for(
        "SSL://127.0.0.1:4",
        advertised_listeners="SSL://localhost:4",
        ssl_truststore_certificates=AUTHORITY.pem,
        ssl_truststore_type="PEM",
    )
    assert site is not None
    assert site.bootstrap == "localhost:4"
    assert site.tls == TlsSettings(trust=TrustStore("PEM", certificates=AUTHORITY.pem.strip()))


def test_without_a_usable_listener_there_are_no_pages() -> None:
    required = {"ssl_client_auth": "required", "ssl_truststore_certificates": AUTHORITY.pem}
    assert site_for("SSL://127.0.0.1:4", ssl_truststore_type="PEM", **required) is None
    assert site_for("PLAINTEXT://127.0.0.1:1", barnabas_console_enable="false") is None
    assert site_for("PLAINTEXT://127.0.0.1:1", barnabas_metrics_listener="0.0.0.0:9404") is None
