"""What a console is told when it starts."""

from dataclasses import dataclass

from barnabas.client.auth.sasl import SaslLogin

_MINUTE_MS = 60_000


@dataclass(frozen=True)
class ConsoleSettings:
    """Which cluster, for whom, and for how long."""

    bootstrap: str  #: host:port, several with commas
    read_only: bool = False  #: nothing can be changed, whatever the principal may do
    login: SaslLogin | None = None  #: lent to everybody who opens the console; None: people log in themselves
    hosts: tuple[str, ...] = ()  #: names, beside this machine's own, by which browsers may call it
    #: addresses or networks whose X-Forwarded-For and X-Forwarded-Proto are believed
    trusted_proxies: tuple[str, ...] = ()
    idle_ms: int = 30 * _MINUTE_MS  #: a session ends when nobody has used it for so long
    lifetime_ms: int = 12 * 60 * _MINUTE_MS  #: and after this in any case
    sessions_max: int = 1_000
    page_timeout_ms: int = 20_000  #: how long a page may work before an error is shown
    connect_timeout_ms: int = 3_000
    request_timeout_ms: int = 15_000
    retry_timeout_ms: int = 4_000  #: how long the same question is asked again
    body_max_bytes: int = 8 * 1024 * 1024  #: of a form that is sent
