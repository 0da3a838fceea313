"""The authorization servers whose tokens the listeners accept."""

import asyncio
from importlib.util import find_spec

from barnabas.base.clock import Clock
from barnabas.config.definition import ConfigError
from barnabas.config.oauth import OAUTHBEARER, OauthSettings
from barnabas.security.jwks import Jwks
from barnabas.security.sasl.oauthbearer import TokenCheck
from barnabas.security.token_checks import token_check


class AuthorizationServers:
    """Keeps the keys of each server fresh; listeners with the same settings share them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._keys: dict[OauthSettings, Jwks] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def check(self, settings: OauthSettings) -> TokenCheck:
        """Return the check of tokens for a listener; its keys are loaded from now on.

        :raises ConfigError: If a package is missing.
        """
        if find_spec("jwt") is None:
            reason = "needs more packages: pip install '.[security]' in a checkout of Barnabas"
            raise ConfigError("sasl.enabled.mechanisms", OAUTHBEARER, reason)
        keys = None
        if settings.jwks_url:
            keys = self._keys.get(settings)
            if keys is None:
                keys = self._keys[settings] = Jwks(settings, self._clock.monotonic_ms)
                task = asyncio.get_running_loop().create_task(
                    keys.keep_fresh(), name="authorization-server-keys"
                )
                self._tasks.append(task)
        return token_check(settings, keys, self._clock.wall_ms)

    def stop(self) -> None:
        """Cancel the tasks that load keys."""
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()
        self._keys.clear()

    def statistics(self) -> dict[str, dict[str, int]]:
        return {settings.jwks_url: keys.statistics() for settings, keys in self._keys.items()}
