"""The principal as which brokers know a client."""

from barnabas.client.auth.sasl import OAUTHBEARER, SaslLogin
from barnabas.tls.settings import TlsSettings
from barnabas.wire.acls import ANONYMOUS_PRINCIPAL


def known_principal(login: SaslLogin | None, tls: TlsSettings | None) -> str | None:
    """Return the principal of a client; None if only the brokers know it.

    They decide what a client certificate and a token of OAUTHBEARER stand for, and know who owns a delegation token.
    """
    if login is None:
        return ANONYMOUS_PRINCIPAL if tls is None or tls.keys is None else None
    return None if login.mechanism == OAUTHBEARER or login.is_delegation_token else f"User:{login.user}"
