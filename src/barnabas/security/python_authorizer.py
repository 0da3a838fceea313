"""An authorizer that asks the class of `authorizer.class.name`, and keeps its decisions for a while."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from weakref import WeakValueDictionary

from barnabas.base.clock import Clock
from barnabas.config.broker_config import BrokerConfig
from barnabas.metadata.writer import MetadataWriter
from barnabas.policy import Action as AskedAction
from barnabas.policy import AuthorizableRequestContext
from barnabas.policy.policies import AUTHORIZER_KEY, Policies
from barnabas.policy.security_calls import GuardedAuthorizer
from barnabas.security.acl_use import AclUseRecord
from barnabas.security.authorizer import (
    DECISIONS_COUNT_MAX,
    AclTimes,
    Action,
    BrokerAuthorizer,
    StandardAuthorizer,
    standard_authorizer,
)
from barnabas.security.operations import needs_cluster_alter
from barnabas.security.recorded_decisions import KEPT_NAME_LENGTH_MAX
from barnabas.telemetry.logs import get_logger
from barnabas.wire.acls import CLUSTER_NAME, AclOperation, DecisionRecord, ResourceType

_log = get_logger("barnabas.security")

#: How long decisions of a user's class are used again, in ms.
CACHE_KEY = "barnabas.authorizer.cache.ms"

_ALTER_CLUSTER: Action = (AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)

#: Calls for one principal at a time, of `CALLS_COUNT_MAX` in all.
CALLS_OF_PRINCIPAL_MAX = 2

#: Principal, host, and the action.
_Question = tuple[str, str, AclOperation, ResourceType, str]


class PythonAuthorizer:
    """Decides by the user's class. What it leaves open, the cluster's ACLs decide.

    :param cache_ms: How long a decision is used again.
    """

    asks = True

    def __init__(self, policies: Policies, acls: StandardAuthorizer, cache_ms: int, clock: Clock) -> None:
        self._policies = policies
        self._acls = acls
        self._cache_ms = cache_ms
        self._clock = clock
        self._asked: GuardedAuthorizer | None = None  #: the instance that has decided; a reload replaces it
        self._decisions: dict[_Question, tuple[bool | None, int]] = {}  #: decision, and its end in ms
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()  #: by principal
        self._pending: dict[_Question, asyncio.Future[bool | None]] = {}

    @property
    def version(self) -> int:
        return self._acls.version

    @property
    def since_ms(self) -> int:
        return self._acls.since_ms

    def used(self) -> list[AclTimes]:
        return self._acls.used()

    def take_use_record(self) -> AclUseRecord:
        return self._acls.take_use_record()

    def decision_record(self) -> DecisionRecord:
        """Return what the ACLs have decided; decisions of the class do not depend on them."""
        return self._acls.decision_record()

    def known(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool | None:
        if self._acls.is_super_user(principal):
            return True
        self._drop_replaced()
        question = principal, host, operation, resource_type, name
        decision, end_ms = self._decisions.get(question, (None, 0))
        if self._clock.monotonic_ms() >= end_ms:
            return None
        allowed = self._acls.known(*question) if decision is None else decision
        if allowed and needs_cluster_alter(operation, resource_type, name):
            return self.known(principal, host, *_ALTER_CLUSTER)
        return allowed

    def reported(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool | None:
        return self.known(principal, host, operation, resource_type, name)

    def _drop_replaced(self) -> None:
        """Forget the decisions of an instance that a reload has replaced."""
        if self._asked is not self._policies.authorizer:
            self._decisions.clear()
            self._asked = self._policies.authorizer

    async def ask(self, principal: str, host: str, actions: Sequence[Action]) -> list[bool]:
        """Decide each action. Requests that ask the same at a time share one call."""
        decisions = await self._ask(principal, host, actions)
        protected = [
            at for at, action in enumerate(actions) if decisions[at] and needs_cluster_alter(*action)
        ]
        if protected:
            [may_alter] = await self._ask(principal, host, [_ALTER_CLUSTER])
            for at in protected:
                decisions[at] = may_alter
        return decisions

    async def _ask(self, principal: str, host: str, actions: Sequence[Action]) -> list[bool]:
        questions: list[_Question] = [(principal, host, *action) for action in actions]
        fresh = [question for question in questions if question not in self._pending]
        if fresh:
            self._begin(principal, host, fresh)
        waits = [self._pending[question] for question in questions]
        # The client may go away, but others may wait for the same decisions.
        await asyncio.wait(waits)
        decided = [wait.result() for wait in waits]
        return [
            self._acls.known(*question) if decision is None else decision
            for question, decision in zip(questions, decided, strict=True)
        ]

    def _begin(self, principal: str, host: str, questions: Sequence[_Question]) -> None:
        loop = asyncio.get_running_loop()
        for question in questions:
            self._pending[question] = loop.create_future()
        call = loop.create_task(self._call(principal, host, questions))
        call.add_done_callback(lambda done: self._finish(questions, done))

    async def _call(self, principal: str, host: str, questions: Sequence[_Question]) -> list[bool | None]:
        self._drop_replaced()
        authorizer = self._asked
        if authorizer is None:  # the broker is stopping
            return [False] * len(questions)
        actions = [
            AskedAction(operation.name, resource_type.name, name)
            for _, _, operation, resource_type, name in questions
        ]
        turn = self._turn_of(principal)
        try:
            async with asyncio.timeout(authorizer.time_limit_ms / 1000):
                await turn.acquire()
        except TimeoutError:  # so many of its requests wait that the next ones must not wait, too
            return [False] * len(questions)
        try:
            decisions = await authorizer.authorize(AuthorizableRequestContext(principal, host), actions)
        finally:
            turn.release()
        if decisions is None:
            return [False] * len(questions)
        if authorizer is self._policies.authorizer:
            self._keep(questions, decisions)
        return decisions

    def _turn_of(self, principal: str) -> asyncio.Semaphore:
        """Return what a call for a principal must hold, so that one client does not use all threads."""
        turn = self._turns.get(principal)
        if turn is None:
            turn = self._turns[principal] = asyncio.Semaphore(CALLS_OF_PRINCIPAL_MAX)
        return turn

    def _keep(self, questions: Sequence[_Question], decisions: Sequence[bool | None]) -> None:
        if self._cache_ms == 0:
            return
        end_ms = self._clock.monotonic_ms() + self._cache_ms
        for question, decision in zip(questions, decisions, strict=True):
            if len(self._decisions) >= DECISIONS_COUNT_MAX:
                del self._decisions[next(iter(self._decisions))]  # the oldest
            if len(question[-1]) <= KEPT_NAME_LENGTH_MAX:
                self._decisions[question] = decision, end_ms

    def _finish(self, questions: Sequence[_Question], done: "asyncio.Task[list[bool | None]]") -> None:
        failed = done.cancelled() or done.exception() is not None
        if not done.cancelled() and done.exception() is not None:
            _log.error("cannot ask the authorizer: everything is denied", exc_info=done.exception())
        decisions = [False] * len(questions) if failed else done.result()
        for question, decision in zip(questions, decisions, strict=True):
            self._pending.pop(question).set_result(decision)

    async def allows_any(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        authorizer = self._policies.authorizer
        decision = None
        if authorizer is not None and not self._acls.is_super_user(principal):
            context = AuthorizableRequestContext(principal, host)
            async with self._turn_of(principal):
                decision = await authorizer.authorize_by_resource_type(
                    context, operation.name, resource_type.name
                )
        return (
            self._acls.known_any(principal, host, operation, resource_type) if decision is None else decision
        )

    def statistics(self) -> dict[str, int]:
        return {
            **self._acls.statistics(),
            "asked_decisions_count": len(self._decisions),
            "pending_count": len(self._pending),
        }


def configured_authorizer(
    config: BrokerConfig, metadata: MetadataWriter, policies: Policies, clock: Clock, directory: Path
) -> BrokerAuthorizer | None:
    """Return the authorizer of `authorizer.class.name`; None if it is empty.

    :param directory: Has the record of used ACLs.
    """
    if not config.part(AUTHORIZER_KEY):
        return None
    acls = standard_authorizer(config, metadata, clock, directory)
    if policies.authorizer is not None:
        return PythonAuthorizer(policies, acls, config.integer(CACHE_KEY), clock)
    if acls.may_deny_everyone and not metadata.image.acls:
        _log.warning("all requests will be denied: no ACLs and no super.users are configured")
    return acls
