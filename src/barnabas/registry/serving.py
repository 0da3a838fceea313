"""The registry over HTTP."""

import socket
import ssl

from barnabas.registry.app import create_registry_app
from barnabas.registry.options import RegistrySettings
from barnabas.web.serving import WebAppServer


class RegistryServer(WebAppServer):
    """Serves a registry."""

    def __init__(
        self, settings: RegistrySettings, listener: socket.socket, *, https: ssl.SSLContext | None = None
    ) -> None:
        """:param https: For HTTPS.
        :raises ValueError: If the file of users cannot be used.
        """
        super().__init__(create_registry_app(settings), listener, name="barnabas-registry", https=https)
