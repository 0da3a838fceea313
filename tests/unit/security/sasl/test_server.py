import random
from pathlib import Path

from barnabas.base.clock import ManualClock
from barnabas.client.auth.sasl import Exchange, SaslLogin
from barnabas.config.sasl import SaslSettings
from barnabas.metadata.scram import ScramCredential
from barnabas.security.sasl.delegation_tokens import DelegationTokens
from barnabas.security.sasl.server import SaslServer
from barnabas.security.sasl.stand_ins import StandIns
from barnabas.wire.errors import ErrorCode
from barnabas.wire.scram import ScramMechanism


def server(users_file: Path | None = None) -> SaslServer:
    settings = SaslSettings(
        mechanisms=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
        plain_users={"alice": "plain"},
        users_file=users_file,
        session_ms_max={"PLAIN": 5000},
        receive_bytes_max=1000,
    )

    def credential_of(user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        return ScramCredential.of_password(mechanism, mechanism.title, b"salt") if user == "alice" else None

    return SaslServer(
        settings,
        credential_of,
        ManualClock(),
        random.Random(1),
        stand_ins=StandIns(b"secret", dict),
        delegation_tokens=DelegationTokens(None, dict, ManualClock()),
        failure_delay_ms=100,
        observe=lambda event: None,
    )


def session_ms(server: SaslServer, login: SaslLogin) -> int:
    """Return the session lifetime of a login that must succeed."""
    authenticator = server.authenticator("10.1.2.3")
    assert authenticator.handshake(login.mechanism, 1) is ErrorCode.NONE
    exchange = Exchange(login)
    token: bytes | None = exchange.first
    while token is not None:
        answer, session_ms = authenticator.authenticate(token)
        token = exchange.answer(answer)
    assert authenticator.user == login.user
    return session_ms


def test_each_mechanism_has_its_own_users() -> None:
    assert session_ms(server(), SaslLogin("PLAIN", "alice", "plain")) == 5000
    for mechanism in ScramMechanism:
        assert session_ms(server(), SaslLogin(mechanism.title, "alice", mechanism.title)) == 0


def test_plain_users_may_be_in_a_separate_file(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("alice=hidden\nbob=file\n")
    both = server(tmp_path / "users")
    assert session_ms(both, SaslLogin("PLAIN", "alice", "plain")) == 5000
    assert session_ms(both, SaslLogin("PLAIN", "bob", "file")) == 5000
