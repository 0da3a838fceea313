"""The interfaces of an authorizer and a principal builder: Kafka's `Authorizer` (KIP-504) and `KafkaPrincipalBuilder`
(KIP-189) in Python.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.policy.interfaces import Configurable


class Action(NamedTuple):
    """An operation on a resource, by Kafka's names, such as `READ`, `TOPIC`, `orders`."""

    operation: str
    resource_type: str
    resource_name: str


class AuthorizableRequestContext(NamedTuple):
    """The client of a request. Decisions are cached by these attributes and the action."""

    principal: str  #: such as `User:alice`
    client_address: str


class Authorizer(Configurable, ABC):
    """Decides what principals may do. Its methods are called by several threads at a time."""

    @abstractmethod
    def authorize(
        self, request_context: AuthorizableRequestContext, actions: Sequence[Action]
    ) -> Sequence[bool | None]:
        """Return a decision for each action: True, False, or None to leave it to the cluster's ACLs.

        After an exception or a timeout all actions are denied.
        """

    def authorize_by_resource_type(
        self, request_context: AuthorizableRequestContext, operation: str, resource_type: str
    ) -> bool | None:
        """Decide whether the operation is allowed on any resource of that type (KIP-679).

        That is asked for `WRITE` on `TOPIC` when an idempotent producer starts. If it is denied, the producer needs
        `IDEMPOTENT_WRITE` on the cluster. By default the ACLs decide.
        """
        return None


@dataclass(frozen=True, slots=True)
class AuthenticationContext:
    """A client that has connected, and logged in if its listener requires that."""

    listener: str
    security_protocol: str  #: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
    client_address: str
    #: the name by which the client logged in or, with SSL, what `ssl.principal.mapping.rules` makes of its certificate;
    #: ANONYMOUS without either
    user: str
    sasl_mechanism: str | None = None  #: None if the listener does not use SASL
    certificate: bytes | None = field(default=None, repr=False)  #: the client's, in DER; None without one


class PrincipalBuilder(Configurable, ABC):
    """Names the principals of clients. Its method is called by several threads at a time."""

    @abstractmethod
    def build(self, context: AuthenticationContext) -> str:
        """Return the principal as `Type:name`, such as `User:alice`.

        After an exception or a timeout the client is refused. Clients that log in with a delegation token are named by
        its owner.
        """
