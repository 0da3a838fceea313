"""OAUTHBEARER settings of one listener."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError

OAUTHBEARER = "OAUTHBEARER"

_URL = "sasl.oauthbearer.jwks.endpoint.url"
_UNSECURED = "barnabas.sasl.oauthbearer.unsecured"
_SCHEMES = ("http", "https", "file")


@dataclass(frozen=True, slots=True)
class OauthSettings:
    """What a token for OAUTHBEARER must have, and where the keys are that check its signature."""

    jwks_url: str  #: http, https or file; empty for tokens without signature
    refresh_ms: int = 3_600_000
    retry_ms: int = 100  #: before the keys are requested again after a failure, doubled each time
    retry_ms_max: int = 10_000
    audiences: tuple[str, ...] = ()  #: one of them must be in the token; empty for any
    issuer: str | None = None
    scopes: tuple[str, ...] = ()  #: all of them must be in the token
    scope_claim: str = "scope"
    subject_claim: str = "sub"  #: names the user
    clock_skew_s: int = 30


def oauth_settings(config: BrokerConfig) -> OauthSettings:
    """Return the settings of a listener, from the configuration for it.

    :raises ConfigError: If the keys cannot be found, or tokens would not be checked without being asked for.
    """
    url = config.text_or_none(_URL) or ""
    if url and urlsplit(url).scheme not in _SCHEMES:
        raise ConfigError(_URL, url, f"must be a URL with one of {', '.join(_SCHEMES)}")
    if not url and not config.boolean(_UNSECURED):
        raise ConfigError(
            _URL, url, f"must be set for OAUTHBEARER; only for tests {_UNSECURED}=true accepts any token"
        )
    if url and config.boolean(_UNSECURED):
        raise ConfigError(_UNSECURED, "true", f"must not be set together with {_URL}")
    return OauthSettings(
        url,
        config.integer("sasl.oauthbearer.jwks.endpoint.refresh.ms"),
        config.integer("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
        config.integer("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
        config.items("sasl.oauthbearer.expected.audience"),
        config.text_or_none("sasl.oauthbearer.expected.issuer"),
        config.items("barnabas.sasl.oauthbearer.required.scopes"),
        config.text("sasl.oauthbearer.scope.claim.name"),
        config.text("sasl.oauthbearer.sub.claim.name"),
        config.integer("sasl.oauthbearer.clock.skew.seconds"),
    )
