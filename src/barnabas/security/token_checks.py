"""Checks of the tokens of OAUTHBEARER: JSON Web Tokens (RFC 7519), signed by an authorization server."""

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.config.oauth import OauthSettings
from barnabas.security.jwks import Jwks, UnknownKey
from barnabas.security.sasl.oauthbearer import InvalidToken, Token, TokenCheck

#: Algorithms with a public key. Those with a shared secret, and none, are never accepted.
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")

#: Longer tokens are refused before they are parsed.
TOKEN_CHARACTERS_MAX = 64 << 10


def token_check(settings: OauthSettings, keys: Jwks | None, wall_ms: Callable[[], int]) -> TokenCheck:
    """Return the check of a listener's tokens.

    :param keys: The keys of the authorization server; None for tokens without signature.
    """

    def check(token: str) -> Token:
        if len(token) > TOKEN_CHARACTERS_MAX:
            raise InvalidToken(f"a token of {len(token)} characters: {TOKEN_CHARACTERS_MAX} are accepted")
        return _checked(_claims(token, keys), settings, wall_ms())

    return check


def _claims(token: str, keys: Jwks | None) -> Mapping[str, Any]:
    """Return the claims of a token, whose signature one of the keys has made; without keys, whatever its signature."""
    import jwt

    key: Any = ""
    algorithms: list[str] = []
    try:
        header = jwt.get_unverified_header(token)
        algorithm = header.get("alg")
        if keys is not None:
            if algorithm not in _ALGORITHMS:
                raise InvalidToken(f"algorithm {algorithm!r} is not accepted")
            key, algorithms = keys.key_of(header.get("kid"), algorithm), [algorithm]
        elif algorithm == "none" and not token.endswith("."):
            raise InvalidToken("a token without algorithm must not have a signature")
        claims: Mapping[str, Any] = jwt.decode(
            token, key, algorithms=algorithms, options=_options(verify_signature=keys is not None)
        )
    except UnknownKey as error:
        raise InvalidToken(str(error)) from error
    except (
        jwt.PyJWTError,
        TypeError,
        ValueError,
    ) as error:  # PyJWT does not wrap all errors of a wrong type of key
        raise InvalidToken(f"the token is not valid: {error}") from error
    return claims


def _options(*, verify_signature: bool) -> Any:
    """Return options for `jwt.decode`: the claims are checked here, for signed and other tokens alike."""
    claims = ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")
    return {"verify_signature": verify_signature, **{f"verify_{claim}": False for claim in claims}}


def _checked(claims: Mapping[str, Any], settings: OauthSettings, now_ms: int) -> Token:
    skew_ms = settings.clock_skew_s * 1_000
    expires_ms, issued_ms = _time_ms(claims, "exp"), _time_ms(claims, "iat")
    if expires_ms is None or issued_ms is None:
        raise InvalidToken("the token must have the claims exp and iat")
    if now_ms >= expires_ms + skew_ms:
        raise InvalidToken("the token has expired")
    for name, time_ms in (("iat", issued_ms), ("nbf", _time_ms(claims, "nbf"))):
        if time_ms is not None and now_ms < time_ms - skew_ms:
            raise InvalidToken(f"the token is not valid yet ({name})")
    audiences = _texts(claims.get("aud"))
    if settings.audiences and audiences.isdisjoint(settings.audiences):
        wanted = ", ".join(settings.audiences)
        raise InvalidToken(
            f"the token is for {', '.join(sorted(audiences)) or 'no audience'}, not for {wanted}"
        )
    if settings.issuer is not None and claims.get("iss") != settings.issuer:
        raise InvalidToken(f"the token is from {claims.get('iss')!r}, not from {settings.issuer}")
    missing = {*settings.scopes} - _scopes_of(claims, settings.scope_claim)
    if missing:
        raise InvalidToken(f"the token lacks the scopes {', '.join(sorted(missing))}")
    user = claims.get(settings.subject_claim)
    if not isinstance(user, str) or not user.strip():
        raise InvalidToken(f"the claim {settings.subject_claim} must name a user")
    return Token(user, max(expires_ms - now_ms, 0))


def _time_ms(claims: Mapping[str, Any], name: str) -> int | None:
    """Return a time in a claim, in ms since the epoch."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise InvalidToken(f"the claim {name} must be a time in seconds")
    return int(value * 1_000)


def _scopes_of(claims: Mapping[str, Any], name: str) -> set[str]:
    """Return the scopes in a claim, which is a list, or a text with blanks between them."""
    value = claims.get(name)
    return {*value.split()} if isinstance(value, str) else _texts(value)


def _texts(value: object) -> set[str]:
    """Return the texts of a claim that is one or a list; others are left out."""
    return {each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)}
