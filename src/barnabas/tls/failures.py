"""Why a TLS handshake has failed, in words."""

import ssl
from collections.abc import Mapping

#: What a server's alerts say about the certificate of its client.
_CERTIFICATE_ALERTS = {
    "SSLV3_ALERT_BAD_CERTIFICATE": "it refuses the client certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it reports that the client certificate has expired",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it refuses the client certificate",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it requires a client certificate",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust the client certificate",
}
_REASONS_OF_SERVER = {
    **_CERTIFICATE_ALERTS,
    "UNSUPPORTED_PROTOCOL": "it supports only versions of TLS that are not allowed here",
    "WRONG_VERSION_NUMBER": "it does not use TLS",
}


def server_failure_reason(error: ssl.SSLError) -> str:
    """Return why the handshake with a server has failed."""
    return failure_reason(error, _REASONS_OF_SERVER, "its certificate is not trusted")


def refuses_certificate(error: ssl.SSLError) -> bool:
    """Whether a server does not accept the certificate of its client, and so has served nothing on this connection.

    With TLS 1.3 the client learns that after its side of the handshake is complete.
    """
    return error.reason in _CERTIFICATE_ALERTS


def failure_reason(error: ssl.SSLError, words: Mapping[str, str], certificate: str) -> str:
    """Return the reason of a failed handshake; OpenSSL's own, in lower case, if `words` does not have it.

    :param words: OpenSSL's reasons, and what they mean on this side of the connection.
    :param certificate: What to say if the certificate of the other side is not accepted; the cause follows it.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{certificate}: {error.verify_message}"
    reason = error.reason or str(error)
    return words.get(reason, f"the TLS handshake failed: {reason.lower().replace('_', ' ')}")
