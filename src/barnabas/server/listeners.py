"""The listeners of a broker: opened at the start, and opened and closed when `listeners` changes (KIP-226)."""

import random
import resource
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from barnabas.api.dispatch import Dispatcher
from barnabas.base.clock import Clock
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.broker_validation import parse_connection_overrides
from barnabas.config.definition import ConfigError
from barnabas.config.keys.broker import LISTENER_PREFIX
from barnabas.config.listeners import Listener
from barnabas.config.sasl import SaslSettings, sasl_settings
from barnabas.config.tls import config_error, listener_tls_settings
from barnabas.metadata.brokers import Endpoint
from barnabas.metadata.cluster import KEY as CLUSTER_KEY
from barnabas.metadata.delegation_tokens import SECRET_KEY
from barnabas.metadata.scram import ScramCredential
from barnabas.metadata.writer import MetadataWriter
from barnabas.net.connections import ConnectionLimits, Connections
from barnabas.net.creation_rate import CreationRates
from barnabas.net.listener import NetworkListener, StartError
from barnabas.security.authorization_servers import AuthorizationServers
from barnabas.security.sasl.authenticator import LoginEvent, LoginOutcome
from barnabas.security.sasl.delegation_tokens import DelegationTokens
from barnabas.security.sasl.server import SaslServer
from barnabas.security.sasl.stand_ins import StandIns
from barnabas.security.security_log import SecurityLog
from barnabas.security.tls_server import TlsServer
from barnabas.telemetry import names
from barnabas.telemetry.logs import get_logger
from barnabas.telemetry.metrics import MetricsRegistry, Values
from barnabas.tls.settings import TlsError, TlsSettings
from barnabas.wire.scram import ScramMechanism

_log = get_logger("barnabas.listeners")

#: Open files reserved for the logs, each of which has two open segments, and for the store. If the process may open few
#: files, connections get half of them.
FILES_RESERVED = 1000

CREATION_RATE = "max.connection.creation.rate"


@dataclass(slots=True)
class _Opened:
    """An open listener and its configuration."""

    listener: Listener
    network: NetworkListener
    sasl_settings: SaslSettings | None
    tls_settings: TlsSettings | None


class Listeners:
    """Keeps the configured listeners open. A change that fails is logged; the others are applied."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        connections: Connections,
        metadata: MetadataWriter,
        clock: Clock,
        rng: random.Random,
        security_log: SecurityLog,
    ) -> None:
        self._security_log = security_log
        self._dispatcher = dispatcher
        self._connections = connections
        self._metadata = metadata
        self._clock = clock
        self._rng = rng
        self._opened: dict[str, _Opened] = {}
        self._stopped = False  #: nothing is opened any more
        self._authorization_servers = AuthorizationServers(clock)
        secret = metadata.image.cluster[CLUSTER_KEY].secret
        self._stand_ins = StandIns(secret, lambda: metadata.image.scram_credentials)
        #: (listener, mechanism or "", outcome) -> number of logins
        self.logins: Counter[tuple[str, str, LoginOutcome]] = Counter()
        #: called when the advertised endpoints have changed; `accept` must be called afterwards
        self.on_changed: Callable[[], None] = lambda: None

    async def start(self, config: BrokerConfig, static: BrokerConfig) -> None:
        """Bind every address; connections before `accept` are refused.

        If dynamically configured listeners cannot be opened, those of the static configuration are opened instead.

        :raises StartError: If an address cannot be used, or a users file cannot be read.
        """
        try:
            await self._open_all(config)
        except StartError as error:
            if config.listeners == static.listeners:
                raise
            _log.error(
                "cannot open the dynamically configured listeners; using the static ones", why=str(error)
            )
            await self.stop()
            self._stopped = False
            await self._open_all(static)

    async def _open_all(self, config: BrokerConfig) -> None:
        for listener in config.listeners:
            await self._open(listener, config)

    async def accept(self) -> None:
        """Begin to serve on listeners that do not serve yet."""
        for opened in list(self._opened.values()):
            await opened.network.accept()

    async def stop(self) -> None:
        """Stop accepting; open connections are not closed. Later changes of the configuration open nothing."""
        self._stopped = True
        while self._opened:
            await self._opened.popitem()[1].network.stop()
        self._authorization_servers.stop()

    def register_metrics(self, registry: MetricsRegistry) -> None:
        registry.add_metric(names.LOGINS, self._login_counts)

    def _login_counts(self) -> Values:
        return [
            ({"listener": listener, "mechanism": mechanism, "outcome": login_outcome.value}, count)
            for (listener, mechanism, login_outcome), count in self.logins.items()
        ]

    def check(self, after: BrokerConfig) -> None:
        """Refuse certificates without the names of those in use.

        :raises ConfigError: If a listener would get one, and its settings do not allow it.
        """
        for listener in after.listeners:
            opened = self._opened.get(listener.name)
            handshakes = opened.network.handshakes if opened is not None else None
            tls = _tls_settings(listener, after)
            if tls is None or handshakes is None or tls == handshakes.tls.settings:
                continue
            try:
                handshakes.tls.context.check(tls)
            except TlsError as error:
                raise config_error(error) from error

    async def reconfigure(self, before: BrokerConfig, after: BrokerConfig) -> None:
        """Close removed listeners with their connections, open new ones, and apply changes of SASL and TLS settings."""
        endpoints = self.endpoints
        listeners = {listener.name: listener for listener in after.listeners}
        for name, opened in list(self._opened.items()):
            if listeners.get(name) != opened.listener:
                await self._close(name)
        for listener in after.listeners:
            if self._stopped:  # meanwhile
                return
            await _log_failure_of(listener.name, self._renew(listener, after))
        if self.endpoints == endpoints:
            await self.accept()
        else:
            self.on_changed()

    async def _renew(self, listener: Listener, config: BrokerConfig) -> None:
        opened = self._opened.get(listener.name)
        if opened is None:
            await self._open(listener, config)
            return
        if (sasl := _sasl_settings(listener, config)) != opened.sasl_settings:
            opened.network.sasl = self._sasl_server(listener, sasl, config)
            opened.sasl_settings = sasl
        if (tls := _tls_settings(listener, config)) != opened.tls_settings:
            server = self._tls_server(listener, tls)
            assert server is not None
            assert opened.network.handshakes is not None
            opened.network.handshakes.tls = server
            opened.tls_settings = tls

    async def _open(self, listener: Listener, config: BrokerConfig) -> None:
        sasl_settings, tls_settings = _sasl_settings(listener, config), _tls_settings(listener, config)
        sasl = self._sasl_server(listener, sasl_settings, config)
        tls = self._tls_server(listener, tls_settings)
        network = NetworkListener(listener, config, self._dispatcher, self._connections, sasl, tls)
        await network.start()
        if self._stopped:
            await network.stop()
            return
        self._opened[listener.name] = _Opened(listener, network, sasl_settings, tls_settings)

    async def _close(self, name: str) -> None:
        if opened := self._opened.pop(name, None):
            await opened.network.stop()
        self._connections.close_listener(name)

    def _sasl_server(
        self, listener: Listener, settings: SaslSettings | None, config: BrokerConfig
    ) -> SaslServer | None:
        """Return the SASL server of a listener; None if it requires no authentication."""
        if settings is None:
            return None
        try:
            return SaslServer(
                settings,
                self._credential_of,
                self._clock,
                self._rng,
                stand_ins=self._stand_ins,
                delegation_tokens=DelegationTokens(
                    config.text_or_none(SECRET_KEY),
                    lambda: self._metadata.image.delegation_tokens,
                    self._clock,
                ),
                failure_delay_ms=config.integer("connection.failed.authentication.delay.ms"),
                observe=self._observe,
                listener=listener.name,
                token_check=None
                if settings.oauth is None
                else self._authorization_servers.check(settings.oauth),
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            message = f"Users file {settings.users_file} cannot be read: {why}."
            raise StartError(message) from error

    def _tls_server(self, listener: Listener, settings: TlsSettings | None) -> TlsServer | None:
        """Return the TLS server of a listener; None if it does not encrypt."""
        if settings is None:
            return None
        try:
            return TlsServer(settings, self._clock.monotonic_ms, self._observe, listener.name)
        except TlsError as error:
            raise StartError(f"Listener {listener.name} cannot use TLS: {error}.") from error

    def _observe(self, event: LoginEvent) -> None:
        self.logins[event.listener, event.mechanism, event.outcome] += 1
        self._security_log.login(event)

    def _credential_of(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        return self._metadata.image.scram_credentials.get(user, {}).get(mechanism)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The endpoints in the metadata for clients."""
        networks = [opened.network for opened in self._opened.values()]
        return tuple(
            Endpoint(network.name, *network.advertised) for network in networks if network.advertised
        )

    @property
    def addresses(self) -> list[tuple[str, str, int]]:
        """(listener name, host, port) of every open listener, with the bound port."""
        return [(name, *opened.network.address) for name, opened in self._opened.items()]


def open_files_max() -> int | None:
    """Return how many files this process may open; None if there is no limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def connection_limits(config: BrokerConfig, files_max: int | None) -> ConnectionLimits:
    """Return the configured limits of connections: in total, by address and by listener.

    The total leaves enough open files for the logs: a log that cannot be opened takes its directory offline.
    """
    count_max = config.integer("max.connections")
    if files_max is not None:
        count_max = min(count_max, max(files_max - FILES_RESERVED, files_max // 2))

    def of_listeners(key: str) -> dict[str, int]:
        names = [listener.name for listener in config.listeners]
        own = {name: f"{LISTENER_PREFIX}{name.lower()}.{key}" for name in names}
        return {name: config.integer(own_key) for name, own_key in own.items() if config.is_set(own_key)}

    is_limited = config.is_set(CREATION_RATE)
    return ConnectionLimits(
        count_max=count_max,
        address_count_max=config.integer("max.connections.per.ip"),
        overrides=parse_connection_overrides(config),
        listeners=of_listeners("max.connections"),
        creation_rates=CreationRates(
            config.integer(CREATION_RATE) if is_limited else None,
            of_listeners(CREATION_RATE),
            config.inter_broker_listener_name if len(config.listeners) > 1 else None,
        ),
    )


def _sasl_settings(listener: Listener, config: BrokerConfig) -> SaslSettings | None:
    return sasl_settings(config, listener.name) if listener.security_protocol.has_sasl else None


def _tls_settings(listener: Listener, config: BrokerConfig) -> TlsSettings | None:
    return listener_tls_settings(config, listener) if listener.security_protocol.has_tls else None


async def _log_failure_of(name: str, work: Awaitable[None]) -> None:
    try:
        await work
    except (StartError, ConfigError) as error:
        _log.error("cannot apply the configuration of a listener", listener=name, why=str(error))
