"""Calls the user's authorizer and principal builder. If they fail, nothing is allowed."""

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from barnabas.policy.guarded import CallResult, UserObject
from barnabas.policy.security_interfaces import Action, AuthenticationContext, AuthorizableRequestContext

#: Calls at a time: they usually wait for another service.
CALLS_COUNT_MAX = 8

#: Clients can cause failures, so that not each one is logged.
LOGGED_INTERVAL_S = 1.0

ResultT = TypeVar("ResultT")

_PRINCIPAL = re.compile(r"\w+:.+", re.DOTALL)

_log = logging.getLogger("barnabas.security")


class NoPrincipal(Exception):
    """The principal builder has no principal for a client."""


class _SecurityObject(UserObject):
    """A user's object that is called for requests of any client."""

    def __init__(self, key: str, class_name: str, method: str, time_limit_ms: int) -> None:
        super().__init__(key, class_name, method, time_limit_ms, CALLS_COUNT_MAX, time_limit_ms)
        self.calls_count = 0
        self.failures_count = 0
        self._logged_s: float | None = None  #: time of the last logged failure

    async def _call(self, function: Callable[[Any], ResultT], what: object) -> CallResult[ResultT]:
        """Call the object; count and log a failure. `what` is the question, for the log."""
        self.calls_count += 1
        result = await self.call(function)
        if result.error is not None:
            self.failures_count += 1
            self._log_failure(what, result)
        return result

    def _log_failure(self, what: object, result: CallResult[Any]) -> None:
        now_s = asyncio.get_running_loop().time()
        if self._logged_s is None or now_s - self._logged_s >= LOGGED_INTERVAL_S:
            self._logged_s = now_s
            text = "%s failed for %s, so it is refused (failure %d): %s%s"
            _log.error(text, self.class_name, what, self.failures_count, result.error, result.details)


class GuardedAuthorizer(_SecurityObject):
    def __init__(self, key: str, class_name: str, time_limit_ms: int) -> None:
        super().__init__(key, class_name, "authorize", time_limit_ms)

    async def authorize(
        self, request_context: AuthorizableRequestContext, actions: Sequence[Action]
    ) -> list[bool | None] | None:
        """Return the decisions; None if the call fails."""
        result = await self._call(
            lambda authorizer: _decisions(authorizer, request_context, actions), request_context
        )
        return result.value

    async def authorize_by_resource_type(
        self, request_context: AuthorizableRequestContext, operation: str, resource_type: str
    ) -> bool | None:
        """Return the decision; False if the call fails."""
        result = await self._call(
            lambda authorizer: _decision(
                authorizer.authorize_by_resource_type(request_context, operation, resource_type)
            ),
            request_context,
        )
        return result.value if result.error is None else False


class GuardedPrincipalBuilder(_SecurityObject):
    def __init__(self, key: str, class_name: str, time_limit_ms: int) -> None:
        super().__init__(key, class_name, "build", time_limit_ms)

    async def build(self, context: AuthenticationContext) -> str:
        """Return the principal of a client.

        :raises NoPrincipal: If the call fails, or returns anything but `Type:name`.
        """
        result = await self._call(lambda builder: _principal(builder.build(context)), context)
        if result.value is None:
            raise NoPrincipal(f"the principal builder failed: {result.error}")
        return result.value


def _decisions(
    authorizer: Any, request_context: AuthorizableRequestContext, actions: Sequence[Action]
) -> list[bool | None]:
    decisions = list(authorizer.authorize(request_context, list(actions)))
    if len(decisions) != len(actions):
        message = f"{len(decisions)} decisions for {len(actions)} actions"
        raise ValueError(message)
    return [_decision(each) for each in decisions]


def _principal(value: Any) -> str:
    if not isinstance(value, str) or _PRINCIPAL.fullmatch(value) is None:
        message = f"a principal is Type:name, such as User:alice, not {value!r}"
        raise TypeError(message)
    return value


def _decision(value: Any) -> bool | None:
    if value is not None and not isinstance(value, bool):
        message = f"a decision is True, False or None, not {value!r}"
        raise TypeError(message)
    return value
