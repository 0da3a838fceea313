"""Settings of a registry."""

from dataclasses import dataclass
from typing import Any, Self

from barnabas.base.hosts import is_loopback
from barnabas.client.auth.sasl import SaslLogin
from barnabas.tls.settings import TlsSettings

TOPIC_DEFAULT = "_schemas"


@dataclass(frozen=True)
class RegistrySettings:
    """The cluster and the limits of a registry."""

    bootstrap: str  #: host:port, several with commas
    topic: str = TOPIC_DEFAULT
    login: SaslLogin | None = None
    tls: TlsSettings | None = None  #: of the connections to the brokers
    #: the only names that clients may use, beside this machine's own; None for any
    hosts: tuple[str, ...] | None = None
    start_timeout_ms: int = 30_000  #: how long a request waits until the topic is read
    users_file: str = ""  #: with a NAME=PASSWORD in each line, for HTTP basic authentication; empty for none

    @classmethod
    def on(cls, address: str, bootstrap: str, **settings: Any) -> Self:
        """Return the settings of a registry that listens on an address.

        On a loopback address it may have no other name, so that no page of another site can read it (DNS rebinding).
        """
        return cls(bootstrap, hosts=() if is_loopback(address) else None, **settings)
