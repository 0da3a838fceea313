"""Settings of a console."""

from dataclasses import dataclass

from barnabas.client.auth.sasl import SaslLogin
from barnabas.tls.settings import TlsSettings

_MINUTE_MS = 60_000


@dataclass(frozen=True)
class ConsoleSettings:
    """The cluster, the login and the limits of a console."""

    bootstrap: str  #: host:port, several with commas
    read_only: bool = False  #: no changes, whatever the principal may do
    login: SaslLogin | None = (
        None  #: used for everybody who opens the console; None: people log in themselves
    )
    tls: TlsSettings | None = None  #: of the connections to the brokers
    hosts: tuple[str, ...] = ()  #: names, beside this machine's own, that browsers may use
    #: addresses or networks whose X-Forwarded-For and X-Forwarded-Proto are trusted
    trusted_proxies: tuple[str, ...] = ()
    registry: str = ""  #: URL of the schema registry that decodes records; empty for none
    idle_ms: int = 30 * _MINUTE_MS  #: a session ends after this time without use
    lifetime_ms: int = 12 * 60 * _MINUTE_MS  #: and after this time in any case
    sessions_max: int = 1_000
    page_timeout_ms: int = 20_000  #: time limit of a page
    connect_timeout_ms: int = 3_000
    request_timeout_ms: int = 15_000
    retry_timeout_ms: int = 4_000  #: time limit of retries of one request
    body_max_bytes: int = 8 * 1024 * 1024  #: size limit of a form
