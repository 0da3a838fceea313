"""Tries in memory whether two settings agree."""

import ssl
from dataclasses import replace

from barnabas.tls.contexts import client_context, server_context
from barnabas.tls.settings import TlsSettings

#: A handshake is complete when each side has had its turn this often.
_TURNS_MAX = 8


def agree(client: TlsSettings, server: TlsSettings) -> bool:
    """Whether a client completes a handshake with a server. Names of hosts are not looked at.

    :raises TlsError: When a setting cannot be used.
    """
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = client_context(replace(client, verifies_host_name=False))
    left = [
        context.wrap_bio(to_client, to_server),
        server_context(server).wrap_bio(to_server, to_client, server_side=True),
    ]
    try:
        for _ in range(_TURNS_MAX):
            left = [side for side in left if not _is_complete(side)]
    except ssl.SSLError:
        return False
    return not left


def _is_complete(side: ssl.SSLObject) -> bool:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
