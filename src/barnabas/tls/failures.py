"""Why a TLS handshake has failed, in words."""

import ssl
from collections.abc import Mapping


def failure_reason(error: ssl.SSLError, words: Mapping[str, str], certificate: str) -> str:
    """Return the reason of a failed handshake; OpenSSL's own, in lower case, if `words` does not have it.

    :param words: OpenSSL's reasons, and what they mean on this side of the connection.
    :param certificate: What to say if the certificate of the other side is not accepted; the cause follows it.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{certificate}: {error.verify_message}"
    reason = error.reason or str(error)
    return words.get(reason, f"the TLS handshake failed: {reason.lower().replace('_', ' ')}")
