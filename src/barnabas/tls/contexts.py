"""OpenSSL contexts of listeners and clients."""

import ssl

from barnabas.tls.cipher_suites import apply_cipher_suites
from barnabas.tls.settings import ClientAuth, KeyStore, TlsError, TlsSettings, TrustStore
from barnabas.tls.stores import as_file, read_keys, read_trusted

_VERIFY_MODES = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the context of a listener.

    :raises TlsError: When a setting cannot be used.
    """
    if settings.keys is None:
        raise TlsError("ssl.keystore.location", "", "or ssl.keystore.key must be set")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _apply(context, settings)
    context.verify_mode = _VERIFY_MODES[settings.client_auth]
    # As in Java: a client needs one to resume, and each costs a tenth of the handshake.
    context.num_tickets = 1
    return context


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the context of a client.

    :raises TlsError: When a setting cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.verifies_host_name
    _apply(context, settings)
    return context


def _apply(context: ssl.SSLContext, settings: TlsSettings) -> None:
    versions = [ssl.TLSVersion[name.replace(".", "_")] for name in settings.versions]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    apply_cipher_suites(context, settings.cipher_suites)
    context.options |= ssl.OP_NO_RENEGOTIATION
    # A trusted certificate needs no issuer that is trusted, too; so it is in Java.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if settings.keys is not None:
        _load_keys(context, settings.keys)
    if settings.trust is not None:
        _load_trusted(context, settings.trust)
    else:
        context.load_default_certs(
            ssl.Purpose.CLIENT_AUTH
            if context.protocol is ssl.PROTOCOL_TLS_SERVER
            else ssl.Purpose.SERVER_AUTH
        )


def _load_keys(context: ssl.SSLContext, store: KeyStore) -> None:
    keys = read_keys(store)
    asked = False

    def password() -> str:  # without a function OpenSSL would ask the terminal
        nonlocal asked
        asked = True
        return keys.password

    try:
        with as_file(keys.pem) as path:
            context.load_cert_chain(path, password=password)
    except (ssl.SSLError, ValueError) as error:
        if asked:
            raise TlsError("ssl.key.password", "", "must open the private key") from error
        key = "ssl.keystore.location" if store.location else "ssl.keystore.key"
        raise TlsError(
            key,
            store.location,
            "must have a private key and its certificates; the certificate of the key must be first",
        ) from error


def _load_trusted(context: ssl.SSLContext, store: TrustStore) -> None:
    certificates = read_trusted(store)
    try:
        context.load_verify_locations(cadata=certificates)
    except (ssl.SSLError, ValueError, TypeError) as error:
        key = "ssl.truststore.location" if store.location else "ssl.truststore.certificates"
        raise TlsError(key, store.location, "must have certificates") from error
