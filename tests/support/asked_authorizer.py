"""An authorizer that must be asked for each decision, as a user's class without a cache."""

import asyncio
from collections.abc import Sequence

from barnabas.api.context import BrokerContext
from barnabas.security.authorizer import Action, StandardAuthorizer
from barnabas.wire.acls import AclOperation, ResourceType


class AskedAuthorizer:
    """Decides like `acls`, but only after other work had a turn."""

    asks = True
    version = 0
    since_ms = 0

    def __init__(self, acls: StandardAuthorizer) -> None:
        self._acls = acls
        self.asked: list[Action] = []

    def known(self, *question: object) -> None:
        """Know nothing: each request asks."""

    reported = known

    async def ask(self, principal: str, host: str, actions: Sequence[Action]) -> list[bool]:
        self.asked += actions
        await asyncio.sleep(0)
        return [self._acls.known(principal, host, *action) for action in actions]

    async def allows_any(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        await asyncio.sleep(0)
        return self._acls.known_any(principal, host, operation, resource_type)


def ask_for_each_decision(broker: BrokerContext) -> None:
    acls = broker.authorizer
    assert isinstance(acls, StandardAuthorizer)
    broker.authorizer = AskedAuthorizer(acls)
