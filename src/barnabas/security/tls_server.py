"""The TLS configuration of one listener, and the principals of its clients."""

import ssl
from collections.abc import Callable
from importlib import import_module

from barnabas.security.sasl.authenticator import LoginEvent, LoginOutcome, Observe
from barnabas.tls.contexts import server_context
from barnabas.tls.principals import NoMatchingRule, PrincipalRules, distinguished_name
from barnabas.tls.reloading import ReloadingContext
from barnabas.tls.settings import ClientAuth, TlsError, TlsSettings

MECHANISM = "TLS"
ANONYMOUS = "ANONYMOUS"


class ClientRefused(Exception):
    """The certificate of a client has no principal."""


def _import_certificates(client_auth: ClientAuth) -> None:
    """Import what reads certificates: with the first client, this would occupy the event loop for a tenth of a second.

    :raises TlsError: If it is not installed.
    """
    try:
        import_module("cryptography.x509")
    except ImportError as error:
        reason = "needs the package cryptography: pip install '.[security]' in a checkout of Barnabas"
        raise TlsError("ssl.client.auth", client_auth.value, reason) from error


class TlsServer:
    """Certificates, and what the clients' certificates mean."""

    def __init__(
        self, settings: TlsSettings, now_ms: Callable[[], int], observe: Observe, listener: str
    ) -> None:
        """:raises TlsError: When a setting cannot be used."""
        if settings.client_auth is not ClientAuth.NONE:
            _import_certificates(settings.client_auth)
        self.settings = settings
        self.context = ReloadingContext(settings, server_context, now_ms)
        self._rules = PrincipalRules(settings.principal_rules)
        self._observe = observe
        self._listener = listener

    def user_of(self, tls: ssl.SSLObject, address: str) -> str:
        """Return the user that a client's certificate names; `ANONYMOUS` without one.

        :raises ClientRefused: If no rule applies to its distinguished name.
        """
        certificate = tls.getpeercert(True) if self.settings.client_auth is not ClientAuth.NONE else None
        if certificate is None:
            return ANONYMOUS
        name = ""
        try:
            name = distinguished_name(certificate)
            user = self._rules.name_of(name)
        except (NoMatchingRule, ValueError) as error:
            reason = str(error) if name else f"the subject of the certificate is malformed: {error}"
            self._notify(LoginOutcome.FAILED, name, reason, address)
            raise ClientRefused(reason) from error
        self._notify(LoginOutcome.SUCCEEDED, user, "", address)
        return user

    def handshake_failed(self, address: str, reason: str) -> None:
        self._notify(LoginOutcome.FAILED, "", reason, address)

    def _notify(self, outcome: LoginOutcome, user: str, reason: str, address: str) -> None:
        self._observe(LoginEvent(MECHANISM, outcome, user, reason, address, self._listener))
