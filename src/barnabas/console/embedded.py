"""The console of a broker, with its metrics, in the broker's process."""

import socket
from typing import TYPE_CHECKING

from barnabas.console.settings import ConsoleSettings
from barnabas.server.web import Site
from barnabas.web.embedded import EmbeddedWebApp

if TYPE_CHECKING:
    from barnabas.console.serving import ConsoleServer


class EmbeddedConsole(EmbeddedWebApp):
    """Serves a broker's console and metrics (`barnabas.server.web.WebServer`)."""

    def __init__(self, site: Site) -> None:
        super().__init__("barnabas-console", site.host, site.port)
        self._site = site

    def create_server(self, listener: socket.socket) -> "ConsoleServer":
        """Import and create the server, in its own thread."""
        from barnabas.console.serving import ConsoleServer

        site = self._site
        settings = ConsoleSettings(
            site.bootstrap,
            read_only=site.read_only,
            tls=site.tls,
            hosts=site.hosts,
            trusted_proxies=site.trusted_proxies,
            registry=site.registry,
        )
        return ConsoleServer(settings, listener, scrape=site.scrape, https=site.https)
