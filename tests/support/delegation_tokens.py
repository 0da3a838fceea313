"""Delegation tokens in tests."""

from base64 import b64encode

from barnabas.metadata.delegation_tokens import DelegationToken


def secrets_of(hmac: bytes, token: DelegationToken) -> list[str]:
    """Return what belongs to a token and may be in no output, as texts in base64 and hexadecimal digits."""
    keys = [
        key for each in token.credentials.values() for key in (each.salt, each.stored_key, each.server_key)
    ]
    return [text for secret in (hmac, *keys) for text in (b64encode(secret).decode(), secret.hex())]
