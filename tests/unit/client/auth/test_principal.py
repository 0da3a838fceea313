import pytest

from barnabas.client.auth.principal import known_principal
from barnabas.client.auth.sasl import OAUTHBEARER, PLAIN, SaslLogin
from barnabas.client.auth.tokens import TokenSource
from barnabas.tls.settings import KeyStore, TlsSettings

ALICE = SaslLogin(PLAIN, "alice", "secret")
CERTIFICATE = TlsSettings(keys=KeyStore(location="alice.p12"))


@pytest.mark.parametrize(
    ("login", "tls", "principal"),
    [
        (None, None, "User:ANONYMOUS"),
        (None, TlsSettings(), "User:ANONYMOUS"),
        (None, CERTIFICATE, None),
        (ALICE, None, "User:alice"),
        (ALICE, CERTIFICATE, "User:alice"),
        (SaslLogin("SCRAM-SHA-256", "token-1", "mac", is_delegation_token=True), None, None),
        (SaslLogin(OAUTHBEARER, "client", token_source=TokenSource(unsecured_user="alice")), None, None),
    ],
)
def test_only_a_login_by_password_names_the_principal(
    login: SaslLogin | None, tls: TlsSettings | None, principal: str | None
) -> None:
    assert known_principal(login, tls) == principal
