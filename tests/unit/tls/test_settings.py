import json

import pytest

from barnabas.tls.settings import ClientAuth, KeyStore, TlsError, TlsSettings, TrustStore, tls_settings


def settings_of(**values: str) -> TlsSettings:
    """Return the settings of values by Kafka's names, with `_` for dots."""
    given = {name.replace("_", "."): value for name, value in values.items()}

    def items(name: str) -> list[str]:
        return [each for each in given.get(name, "").split(",") if each]

    return tls_settings(lambda name: given.get(name, ""), items)


def test_stores_are_files() -> None:
    settings = settings_of(
        ssl_keystore_location="own.p12",
        ssl_keystore_password="a",
        ssl_key_password="b",
        ssl_truststore_location="ca.pem",
        ssl_truststore_type="pem",
        ssl_client_auth="required",
    )
    assert settings.keys == KeyStore("JKS", "own.p12", "a", "b")
    assert settings.trust == TrustStore("PEM", "ca.pem")
    assert settings.client_auth is ClientAuth.REQUIRED
    assert settings.files == ("own.p12", "ca.pem")


def test_stores_are_texts() -> None:
    settings = settings_of(
        ssl_keystore_type="PEM",
        ssl_keystore_key="k",
        ssl_keystore_certificate_chain="c",
        ssl_truststore_certificates="t",
        ssl_truststore_type="PEM",
    )
    assert settings.keys == KeyStore("PEM", key="k", certificate_chain="c")
    assert settings.trust == TrustStore("PEM", certificates="t")
    assert settings.files == ()


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"ssl_keystore_type": "BKS"}, "ssl.keystore.type=BKS: must be PEM, PKCS12 or JKS"),
        (
            {"ssl_keystore_key": "k"},
            "ssl.keystore.key must be set together with ssl.keystore.certificate.chain",
        ),
        ({"ssl_truststore_certificates": "t"}, "ssl.truststore.type=JKS: must be PEM for PEM texts"),
        (
            {
                "ssl_truststore_certificates": "t",
                "ssl_truststore_location": "f",
                "ssl_truststore_type": "PEM",
            },
            "ssl.truststore.location=f: must not be set beside PEM texts",
        ),
        (
            {"ssl_enabled_protocols": "TLSv1.1,TLSv1.2"},
            "ssl.enabled.protocols=TLSv1.1: must be among TLSv1.2, TLSv1.3",
        ),
    ],
)
def test_invalid_values_are_reported(values: dict[str, str], why: str) -> None:
    with pytest.raises(TlsError) as refused:
        settings_of(**values)
    assert str(refused.value) == why


def test_the_representation_shows_no_secret() -> None:
    keys = KeyStore("PEM", password="secret", key_password="secret", key="secret")
    assert "secret" not in repr(TlsSettings(keys, TrustStore(password="secret")))


def test_settings_survive_json() -> None:
    settings = TlsSettings(
        KeyStore("PEM", "f", "a", "b"),
        TrustStore("PEM", "t"),
        ClientAuth.REQUESTED,
        versions=("TLSv1.3",),
        allows_dn_changes=False,
        allows_san_changes=False,
    )
    assert TlsSettings.from_plain(json.loads(json.dumps(settings.to_plain()))) == settings
    assert TlsSettings.from_plain(TlsSettings().to_plain()) == TlsSettings()
