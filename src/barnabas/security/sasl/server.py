"""The SASL configuration of one listener."""

import random
from collections.abc import Callable
from functools import partial

from barnabas.base.clock import Clock
from barnabas.config.oauth import OAUTHBEARER
from barnabas.config.sasl import PLAIN, SaslSettings
from barnabas.metadata.scram import ScramCredential
from barnabas.security.sasl.authenticator import Authenticator, Mechanisms, Observe
from barnabas.security.sasl.delegation_tokens import DelegationTokens
from barnabas.security.sasl.mechanism import ServerMechanism
from barnabas.security.sasl.oauthbearer import OauthbearerServer, TokenCheck
from barnabas.security.sasl.plain import PlainServer
from barnabas.security.sasl.scram import ScramServer
from barnabas.security.sasl.stand_ins import StandIns
from barnabas.security.sasl.users_file import UsersFile
from barnabas.wire.scram import MECHANISMS_BY_TITLE, ScramMechanism

#: (user name, mechanism) -> credential; None if there is none
Credentials = Callable[[str, ScramMechanism], ScramCredential | None]


class SaslServer:
    """The mechanisms of one listener, its users and its limits."""

    def __init__(
        self,
        settings: SaslSettings,
        credential_of: Credentials,
        clock: Clock,
        rng: random.Random,
        *,
        stand_ins: StandIns,
        delegation_tokens: DelegationTokens,
        failure_delay_ms: int,
        observe: Observe,
        listener: str = "",
        token_check: TokenCheck | None = None,
    ) -> None:
        """:param failure_delay_ms: The delay of the response to a failed authentication.
        :param token_check: Checks the tokens of OAUTHBEARER; None without that mechanism.
        :raises OSError: When the users file cannot be read.
        :raises ValueError: When it is malformed.
        """
        self.receive_bytes_max = settings.receive_bytes_max
        self.failure_delay_ms = failure_delay_ms
        self._settings = settings
        self._credential_of = credential_of
        self._now_ms = clock.monotonic_ms
        self._observe = observe
        self._listener = listener
        self._rng = rng
        self._stand_ins = stand_ins
        self._delegation_tokens = delegation_tokens
        self._token_check = token_check
        self._users_file = UsersFile(settings.users_file) if settings.users_file else None
        self._mechanisms: Mechanisms = {title: self._mechanism(title) for title in settings.mechanisms}

    def authenticator(self, address: str, *, has_principal_builder: bool = False) -> Authenticator:
        """Return the authenticator of a new connection from `address`."""
        return Authenticator(
            self._mechanisms,
            self._settings.session_ms_max,
            self._now_ms,
            self._observe,
            address,
            self._listener,
            has_principal_builder=has_principal_builder,
        )

    def _mechanism(self, title: str) -> Callable[[], ServerMechanism]:
        if title == PLAIN:
            return partial(PlainServer, self._password_of)
        if title == OAUTHBEARER:
            assert self._token_check is not None
            return partial(OauthbearerServer, self._token_check)
        mechanism = MECHANISMS_BY_TITLE[title]

        def credential_of(user: str) -> ScramCredential | None:
            return self._credential_of(user, mechanism)

        token_credential_of = partial(self._delegation_tokens.credential_of, mechanism)
        stand_in_for = partial(self._stand_ins.of, mechanism)
        return partial(ScramServer, mechanism, credential_of, token_credential_of, stand_in_for, self._rng)

    def _password_of(self, user: str) -> str | None:
        password = self._settings.plain_users.get(user)
        if password is None and self._users_file is not None:
            password = self._users_file.password_of(user)
        return password
