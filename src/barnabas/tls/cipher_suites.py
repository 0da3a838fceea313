"""Names of cipher suites: Kafka's settings have those of Java and IANA, OpenSSL has its own."""

import re
import ssl
from collections.abc import Sequence

from barnabas.tls.settings import TlsError

#: The suites of TLS 1.3. Python's ssl offers them together.
TLS_1_3 = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")

_KEY = "ssl.cipher.suites"


def openssl_name(suite: str) -> str:
    """Return OpenSSL's name of a suite of TLS 1.2; other names are returned as they are.

    `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` is `ECDHE-RSA-AES128-GCM-SHA256`.
    """
    match = re.fullmatch(r"(?:TLS|SSL)_(\w+)_WITH_(\w+)", suite)
    if match is None:
        return suite
    exchange = "" if match[1] == "RSA" else match[1].replace("_", "-") + "-"
    cipher = re.sub(r"AES_(\d+)", r"AES\1", match[2]).replace("_CBC", "")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    return exchange + cipher.replace("_", "-")


def apply_cipher_suites(context: ssl.SSLContext, suites: Sequence[str]) -> None:
    """Allow only these suites. TLS 1.3 is off if none of its suites is among them.

    :raises TlsError: If a suite is unknown, or not secure.
    """
    if not suites:
        return
    older = [suite for suite in suites if suite not in TLS_1_3]
    known = [each["name"] for each in context.get_ciphers()]
    for suite in older:
        if openssl_name(suite) not in known:
            raise TlsError(_KEY, suite, f"must be a secure suite, such as {', '.join(known)}")
    if older:
        context.set_ciphers(":".join(map(openssl_name, older)))
    else:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if len(older) == len(suites):
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if context.minimum_version > context.maximum_version:
        raise TlsError(_KEY, ",".join(suites), "must have a suite of a version in ssl.enabled.protocols")
