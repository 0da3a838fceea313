"""The schema registry in the process of a broker."""

import socket
import ssl
from typing import TYPE_CHECKING

from barnabas.base.hosts import EVERY_INTERFACE
from barnabas.client.core.address import BrokerAddress
from barnabas.registry.options import RegistrySettings
from barnabas.telemetry.http import LOOPBACK
from barnabas.web.embedded import EmbeddedWebApp

if TYPE_CHECKING:
    from barnabas.registry.serving import RegistryServer


class EmbeddedRegistry(EmbeddedWebApp):
    """Serves a registry that connects to this broker as any client does."""

    def __init__(
        self, host: str, port: int, settings: RegistrySettings, https: ssl.SSLContext | None
    ) -> None:
        super().__init__("barnabas-registry", host, port)
        self._host = host
        self._settings = settings
        self._https = https

    @property
    def own_url(self) -> str:
        """The URL for others in this process; empty if they would need a password or a certificate."""
        if self._https is not None or self._settings.users_file:
            return ""
        host = LOOPBACK if self._host in EVERY_INTERFACE else self._host
        return f"http://{BrokerAddress(host, self.port)}"

    def create_server(self, listener: socket.socket) -> "RegistryServer":
        """Import and create the server, in its own thread."""
        from barnabas.registry.serving import RegistryServer

        return RegistryServer(self._settings, listener, https=self._https)
