from dataclasses import replace

import pytest

from barnabas.tls.handshakes import agree
from barnabas.tls.settings import VERSIONS, ClientAuth, KeyStore, TlsSettings, TrustStore
from support.certificates import Authority


def settings(keys: Authority, trusted: Authority, client_auth: ClientAuth = ClientAuth.NONE) -> TlsSettings:
    issued = keys.issue(hosts=["elsewhere"])
    return TlsSettings(
        keys=KeyStore("PEM", key=issued.key_pem(), certificate_chain=issued.certificate_pem),
        trust=TrustStore("PEM", certificates=trusted.pem),
        client_auth=client_auth,
    )


@pytest.fixture(scope="module")
def authorities() -> tuple[Authority, Authority]:
    return Authority("one"), Authority("two")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("client_auth", ClientAuth)
def test_settings_whose_certificates_are_trusted_agree(
    authorities: tuple[Authority, Authority], client_auth: ClientAuth, version: str
) -> None:
    one, two = authorities
    own = replace(settings(one, one, client_auth), versions=(version,))
    assert agree(own, own)
    assert not agree(settings(one, two), own)
    assert agree(settings(two, one), own) is (client_auth is ClientAuth.NONE)


def test_settings_without_a_common_version_do_not_agree(authorities: tuple[Authority, Authority]) -> None:
    own = settings(authorities[0], authorities[0])
    assert not agree(replace(own, versions=("TLSv1.2",)), replace(own, versions=("TLSv1.3",)))
