"""Apache Kafka and Barnabas with the same stores, users and superusers, whose listeners use TLS."""

import ssl
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from socket import socket

from cryptography import x509
from interop.brokers import Broker, free_ports

from barnabas.client.auth.sasl import OAUTHBEARER, PLAIN, Exchange, SaslLogin
from barnabas.client.auth.tokens import TokenSource
from barnabas.wire import scram
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from barnabas.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.wire.scram import MECHANISMS_BY_TITLE
from differential import brokers
from differential.sides import Side
from differential.world import Pair
from interop import candidate, reference
from support.certificates import PASSWORD, Authority
from support.oauth import AUDIENCE, ISSUER, AuthorizationServer, authorization_server

ANONYMOUS = "ANONYMOUS"
ADMIN = "admin"
SUPER_USER = "super"  #: whom ACLs deny everything

#: The listeners beside PLAINTEXT, which is for the probe of a broker that starts, and their security protocols.
LISTENERS = {
    "BROKERS": "SSL",
    "MUTUAL": "SSL",
    "ARCHIVED": "SSL",  # with stores in PKCS#12
    "OPEN": "SSL",  # asks for certificates, and takes clients without
    "RULES": "SSL",  # with rules of its own for the names of certificates
    "CLIENTS": "SASL_SSL",
    "BOTH": "SASL_SSL",  # requires certificates as well
}
#: How the listener RULES names users; it refuses other names.
RULES = (
    "RULE:^CN=(.*?),OU=Services,.*$/$1/",
    "RULE:^UID=([^,]*),.*DC=([^,]*),DC=([^,]*)$/$1@$2.$3/L",
    "RULE:^.*OU=(Robots|Things).*CN=(.*)$/$1-$2/U",
)
_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

_MODULES = "org.apache.kafka.common.security"
_PASSWORD = "secret-of-users"
_SALT, _ITERATIONS = b"salt", 4096

#: Kafka runs too short for the second compiler, which would take a third of its time.
_ONE_COMPILER = "-XX:TieredStopAtLevel=1"


@dataclass(frozen=True)
class ClientSecurity:
    """How a client connects and says who it is."""

    listener: str
    mechanism: str = ""
    has_certificate: bool = False


MODES = (
    ClientSecurity("MUTUAL", has_certificate=True),
    ClientSecurity("CLIENTS", PLAIN),
    ClientSecurity("ARCHIVED", has_certificate=True),
    *(ClientSecurity("CLIENTS", mechanism) for mechanism in MECHANISMS_BY_TITLE),
    ClientSecurity("OPEN", has_certificate=True),
    ClientSecurity("CLIENTS", OAUTHBEARER),
)
MODES_OF_ANONYMOUS = (ClientSecurity("OPEN"), ClientSecurity("PLAINTEXT"))


def subject(user: str) -> list[x509.RelativeDistinguishedName]:
    """Return the name CN=USER,O=Orders, which the brokers map to the user in small letters."""
    names = [(x509.NameOID.ORGANIZATION_NAME, "Orders"), (x509.NameOID.COMMON_NAME, user.upper())]
    return [x509.RelativeDistinguishedName([x509.NameAttribute(*name)]) for name in names]


@dataclass(frozen=True)
class Site:
    """What both brokers know: certificates in a directory, users, and the authorization server."""

    directory: Path
    users: Sequence[str]
    tokens: AuthorizationServer
    authority: Authority = field(default_factory=Authority)

    def write_stores(self) -> None:
        self.authority.write_pem(self.directory / "authority.pem")
        self.authority.write_pkcs12(self.directory / "authority.p12")
        broker = self.authority.issue(*subject("broker"))
        broker.write_pem(self.directory / "broker.pem")
        broker.write_pkcs12(self.directory / "broker.p12")

    def context(self, names: Sequence[x509.RelativeDistinguishedName] = ()) -> ssl.SSLContext:
        """Return the TLS of a client, whose certificate has the names if given."""
        context = ssl.create_default_context(cadata=self.authority.pem)
        if names:
            keystore = self.directory / "client.pem"
            context.load_cert_chain(self.authority.issue(*names, hosts=()).write_pem(keystore))
        return context

    def login(self, user: str, mechanism: str) -> Exchange:
        if mechanism == OAUTHBEARER:
            login = SaslLogin(OAUTHBEARER, user, token_source=TokenSource())
            return Exchange(login, token=self.tokens.signers[0].token(sub=user))
        return Exchange(SaslLogin(mechanism, user, _PASSWORD))

    def settings(self) -> dict[str, str]:
        """Return what both brokers are told about stores, users and superusers."""
        protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "SSL", **LISTENERS}
        return {
            "listener.security.protocol.map": ",".join(f"{name}:{each}" for name, each in protocols.items()),
            "inter.broker.listener.name": "BROKERS",
            **self._stores("PEM", "pem"),
            "ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=(.*?),O=Orders$/$1/L,DEFAULT",
            **_of_listener("ARCHIVED", self._stores("PKCS12", "p12", PASSWORD)),
            **_of_listener("OPEN", {"ssl.client.auth": "requested"}),
            **_of_listener("RULES", {"ssl.principal.mapping.rules": ",".join(RULES)}),
            **_of_listener("BOTH", {"ssl.client.auth": "required"}),
            **self._mechanisms(),
            "authorizer.class.name": _AUTHORIZER,
            "super.users": ";".join(f"User:{user}" for user in ("broker", ADMIN, SUPER_USER)),
            "delegation.token.secret.key": "secret of the brokers",
            "transaction.two.phase.commit.enable": "true",
        }

    def _stores(self, kind: str, suffix: str, password: str = "") -> dict[str, str]:
        found: dict[str, str] = {}
        for store, name in (("keystore", "broker"), ("truststore", "authority")):
            found[f"ssl.{store}.type"] = kind
            found[f"ssl.{store}.location"] = str(self.directory / f"{name}.{suffix}")
            if password:
                found[f"ssl.{store}.password"] = password
        return found

    def _mechanisms(self) -> dict[str, str]:
        users = " ".join(f'user_{user}="{_PASSWORD}"' for user in self.users)
        modules = {
            "plain": f"plain.PlainLoginModule required {users}",
            "scram-sha-256": "scram.ScramLoginModule required",
            "scram-sha-512": "scram.ScramLoginModule required",
            "oauthbearer": "oauthbearer.OAuthBearerLoginModule required",
        }
        handler = f"{_MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        logins = {f"{name}.sasl.jaas.config": f"{_MODULES}.{module};" for name, module in modules.items()}
        logins["oauthbearer.sasl.server.callback.handler.class"] = handler
        return {
            "sasl.enabled.mechanisms": ",".join(map(str.upper, modules)),
            "sasl.oauthbearer.jwks.endpoint.url": f"{self.tokens.url}/keys",
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            **_of_listener("CLIENTS", logins),
            **_of_listener("BOTH", logins),
        }


def _of_listener(name: str, settings: Mapping[str, str]) -> dict[str, str]:
    return {f"listener.name.{name.lower()}.{key}": value for key, value in settings.items()}


@dataclass
class SecuredSide(Side):
    """A user's connection to one of the brokers."""

    tls: ssl.SSLContext | None = None
    mechanism: str = ""
    login: Callable[[], Exchange] | None = None

    def connect(self) -> socket:
        plain = super().connect()
        return plain if self.tls is None else self.tls.wrap_socket(plain, server_hostname="127.0.0.1")

    def log_in(self) -> None:
        if self.login is None:
            return
        chosen = self.exchange(SaslHandshakeRequest(self.mechanism), SaslHandshakeResponse, 1).body
        assert isinstance(chosen, SaslHandshakeResponse)
        exchange = self.login()
        token: bytes | None = exchange.first
        while token is not None:
            answer = self.exchange(SaslAuthenticateRequest(token), SaslAuthenticateResponse, 2).body
            assert isinstance(answer, SaslAuthenticateResponse)
            assert not answer.error_code, answer
            token = exchange.answer(answer.auth_bytes)


@dataclass
class SecuredPair:
    """Both brokers, and a connection to each for every user and mode. `admins` are connections of a superuser."""

    site: Site
    admins: Pair
    addresses: Mapping[str, Mapping[str, str]]  #: by the broker's name and the listener's
    _sides: dict[tuple[str, str, ClientSecurity], SecuredSide] = field(default_factory=dict)
    _contexts: dict[str, ssl.SSLContext] = field(default_factory=dict)

    def side(self, broker: str, user: str, mode: ClientSecurity) -> SecuredSide:
        """Return the user's connection, which stays open."""
        key = (broker, user, mode)
        if key not in self._sides:
            named = user if mode.has_certificate else ""
            if named not in self._contexts:
                self._contexts[named] = self.site.context(subject(user) if named else ())
            self._sides[key] = self.new_side(broker, user, mode, self._contexts[named])
        return self._sides[key]

    def new_side(self, broker: str, user: str, mode: ClientSecurity, context: ssl.SSLContext) -> SecuredSide:
        return SecuredSide(
            broker,
            self.addresses[broker][mode.listener],
            tls=None if mode.listener == "PLAINTEXT" else context,
            mechanism=mode.mechanism,
            login=partial(self.site.login, user, mode.mechanism) if mode.mechanism else None,
        )

    def side_by_token(self, broker: str, mechanism: str, token_id: str, hmac: bytes) -> SecuredSide:
        """Return a connection by a delegation token."""
        login = SaslLogin(mechanism, token_id, b64encode(hmac).decode(), is_delegation_token=True)
        side = self.new_side(broker, token_id, ClientSecurity("CLIENTS", mechanism), self.site.context())
        side.login = partial(Exchange, login)
        return side

    def disconnect(self) -> None:
        for side in self._sides.values():
            side.disconnect()


@contextmanager
def secured_pair(home: Path, users: Sequence[str]) -> Iterator[SecuredPair]:
    """Run both brokers below `home`, with users who log in with every mechanism."""
    with ExitStack() as stack:
        site = Site(home, (*users, ADMIN), stack.enter_context(authorization_server()))
        site.write_stores()
        addresses = {}
        for name, start in (("kafka", _start_kafka), ("barnabas", _start_barnabas)):
            ports = zip(LISTENERS, free_ports(len(LISTENERS)), strict=True)
            addresses[name] = {listener: f"127.0.0.1:{port}" for listener, port in ports}
            listeners = [f"{listener}://{address}" for listener, address in addresses[name].items()]
            settings = brokers.SETTINGS | site.settings() | brokers.log_dirs(home / name)
            broker = start(home / name, settings, listeners, site)
            stack.callback(broker.stop)
            addresses[name]["PLAINTEXT"] = broker.bootstrap
        certificate = site.context(subject(ADMIN))
        left, right = (
            SecuredSide(name, addresses[name]["MUTUAL"], home=home / name, tls=certificate)
            for name in addresses
        )
        for side in (left, right):
            stack.callback(side.disconnect)
            brokers.wait_for_producer_ids(side)
            brokers.wait_for_coordinators(side)
            add_scram_users(side, site.users)
        addresses["kafka"]["CONTROLLER"] = controller_of(left)
        addresses["barnabas"]["CONTROLLER"] = addresses["barnabas"]["MUTUAL"]  # it has no controller listener
        pair = SecuredPair(site, Pair(left, right, brokers.served_by_both(left)), addresses)
        stack.callback(pair.disconnect)
        yield pair


def _start_kafka(home: Path, settings: Mapping[str, str], listeners: Sequence[str], site: Site) -> Broker:
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={site.tokens.url}/keys"
    more = {"unstable.api.versions.enable": "true"}  # InitProducerId 6
    return reference.start(
        home, dict(settings) | more, listeners=listeners, jvm_options=[allowed, _ONE_COMPILER]
    )


def _start_barnabas(home: Path, settings: Mapping[str, str], listeners: Sequence[str], _site: Site) -> Broker:
    return candidate.start(home, brokers.SHARED | dict(settings), listeners=listeners)


def controller_of(kafka: Side) -> str:
    """Return the address of Kafka's controller."""
    request = DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])
    found = kafka.exchange(request, DescribeQuorumResponse, 2).body
    assert isinstance(found, DescribeQuorumResponse)
    [listener] = found.nodes[0].listeners
    return f"{listener.host}:{listener.port}"


def add_scram_users(side: Side, users: Sequence[str]) -> None:
    """Give users their password for both kinds of SCRAM, and wait until they can log in."""
    for mechanism in scram.ScramMechanism:
        salted = scram.salted_password(mechanism, _PASSWORD, _SALT, _ITERATIONS)
        request = AlterUserScramCredentialsRequest(
            upsertions=[
                ScramCredentialUpsertion(user, mechanism, _ITERATIONS, _SALT, salted) for user in users
            ]
        )
        made = side.exchange(request, AlterUserScramCredentialsResponse, 0).body
        assert isinstance(made, AlterUserScramCredentialsResponse)
        assert not any(result.error_code for result in made.results), made
    brokers.wait_for(
        side,
        DescribeUserScramCredentialsRequest(users=None),
        DescribeUserScramCredentialsResponse,
        0,
        lambda found: sum(len(each.credential_infos) for each in found.results) == 2 * len(users),
    )
