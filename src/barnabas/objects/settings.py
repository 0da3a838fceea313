"""Settings of object stores: which part of obstore takes them, and which of their values are secret."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from barnabas.objects.location import LocationError

_PREFIX = re.compile("^(aws|google|gcp|azure)_")
_SECRET_NAME = re.compile(
    r"secret|token|password|sas|access_key$|account_key|service_account|proxy_url|_key$", re.IGNORECASE
)
#: Not secret, although the name looks like it.
_PUBLIC_NAME = re.compile(
    r"token_file|sse_kms_key_id|bucket_key|service_account_path|service_account$", re.IGNORECASE
)
_ENVIRONMENT = re.compile("^(AWS|AZURE|GOOGLE)_")
_SIGNATURE = re.compile(r"(?i)\b(sig|signature|x-amz-[a-z-]+|se|sv)=[^&\s\"']+")
_SECRET_CHARACTERS_MIN = 4
#: Options of HTTP connections, which obstore takes apart from those of the store.
_CLIENT = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "default_content_type",
        "http1_only",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_url",
        "proxy_ca_certificate",
        "proxy_excludes",
        "read_timeout",
        "root_certificate",
        "timeout",
        "user_agent",
    }
)
_MAX_RETRIES, _RETRY_TIMEOUT = "max_retries", "retry_timeout"


@dataclass(frozen=True)
class StoreSettings:
    """Settings that precede those of the environment, by names in lower case. Neither `repr` nor `str` shows them."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    def secrets(self) -> list[str]:
        """Return the secret values of these settings and of the environment."""
        environment = {name: value for name, value in os.environ.items() if _ENVIRONMENT.match(name)}
        return [
            value
            for name, value in (*self.values.items(), *environment.items())
            if is_secret(name) and len(value) >= _SECRET_CHARACTERS_MIN
        ]

    def redacted(self, text: str) -> str:
        """Return the text without secret values and signatures."""
        for secret in sorted(self.secrets(), key=len, reverse=True):
            text = text.replace(secret, "***")
        return _SIGNATURE.sub(r"\1=***", text)

    def delta_options(self) -> dict[str, str]:
        """Return the options of delta-rs, which wants a unit for times."""
        return {name: f"{value}s" if name == _RETRY_TIMEOUT else value for name, value in self.values.items()}

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of obstore's classes.

        :raises LocationError: A number is not valid.
        """
        config: dict[str, str] = {}
        client: dict[str, str] = {}
        retry: dict[str, object] = {}
        for name, value in self.values.items():
            if name in (_MAX_RETRIES, _RETRY_TIMEOUT):
                number = _number(name, value)
                retry[name] = number if name == _MAX_RETRIES else timedelta(seconds=number)
            elif (short := _PREFIX.sub("", name)) in _CLIENT:
                client[short] = value
            else:
                config[name] = value
        arguments = {"config": config, "client_options": client, "retry_config": retry}
        return {name: value for name, value in arguments.items() if value}


def parse_settings(pairs: Iterable[str]) -> StoreSettings:
    """Parse `KEY=VALUE` texts; keys are those of obstore in any case, such as `AWS_REGION` or `aws_region`.

    :raises LocationError: A text has another form. Its value is not in the message, because it may be secret.
    """
    values: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise LocationError(
                "a store option must have the form KEY=VALUE, such as AWS_REGION=eu-central-1"
            )
        values[name.lower()] = value
    return StoreSettings(values)


def is_secret(name: str) -> bool:
    """Whether the value of a setting with this name must not be shown."""
    return _SECRET_NAME.search(name) is not None and _PUBLIC_NAME.search(name) is None


def _number(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit()):
        unit = "a number of seconds" if name == _RETRY_TIMEOUT else "a number"
        raise LocationError(f"store option {name}={value}: must be {unit}")
    return int(value)
