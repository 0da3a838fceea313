"""Runs user classes in isolation, so that their errors do not affect the broker."""

import logging
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from barnabas.policy.interfaces import PolicyViolation
from barnabas.policy.loading import PolicyLoadError, instantiate
from barnabas.policy.worker import OutOfTime, PolicyWorker
from barnabas.wire.errors import ErrorCode, KafkaError

ResultT = TypeVar("ResultT")

#: Time limit for importing and configuring a class.
LOAD_LIMIT_MS = 30_000

_log = logging.getLogger("barnabas.policy")


class CallResult(NamedTuple, Generic[ResultT]):
    """The outcome of a call: a value, or an error with the traceback as its details."""

    value: ResultT | None = None
    error: str | None = None
    details: str = ""


class UserObject:
    """An instance of a user class. Its methods are called in threads, each call with a time limit."""

    def __init__(
        self,
        key: str,
        class_name: str,
        method: str,
        time_limit_ms: int,
        threads_count: int = 1,
        turn_limit_ms: int | None = None,
    ) -> None:
        """:param key: The setting that names the class.
        :param method: The method that the class must have.
        :param threads_count: Number of calls at a time.
        :param turn_limit_ms: How long a call waits for a thread at most; None without limit.
        """
        self.class_name = class_name
        self.time_limit_ms = time_limit_ms
        self._key = key
        self._method = method
        self._worker = PolicyWorker(f"policy-{class_name}", threads_count, turn_limit_ms)
        self._instance: Any = None

    async def load(self, configs: Mapping[str, str]) -> None:
        """Create the instance and configure it.

        :raises PolicyLoadError: When that fails or takes too long.
        """
        try:
            loaded = await self._worker.call(lambda: self._load(configs), LOAD_LIMIT_MS)
        except OutOfTime as error:
            loaded = PolicyLoadError(self._key, self.class_name, f"cannot be loaded: {error}")
        if isinstance(loaded, PolicyLoadError):
            self._worker.close()
            raise loaded
        self._instance = loaded

    def _load(self, configs: Mapping[str, str]) -> Any:
        try:
            instance = instantiate(self._key, self.class_name, self._method)
            instance.configure(dict(configs))
        except PolicyLoadError as error:
            return error
        except BaseException as error:  # user code may raise anything
            reason = f"configure failed: {type(error).__name__}: {error}"
            return PolicyLoadError(self._key, self.class_name, reason)
        return instance

    async def call(self, function: Callable[[Any], ResultT]) -> CallResult[ResultT]:
        """Call `function` with the instance. Whatever it raises is an error in the result."""
        instance = self._instance
        try:
            return await self._worker.call(lambda: _result(function, instance), self.time_limit_ms)
        except OutOfTime as error:
            return CallResult(error=str(error))

    async def close(self) -> None:
        """Close the instance when the calls that run have ended; a failure or timeout is only logged."""
        await self._worker.when_idle()
        result = await self.call(_close)
        if result.error is not None:
            _log.warning("cannot close %s: %s%s", self.class_name, result.error, result.details)
        self._worker.close()

    def statistics(self) -> dict[str, int]:
        return self._worker.statistics()


class GuardedPolicy(UserObject):
    """A policy, which is asked about one request at a time."""

    def __init__(self, key: str, class_name: str, time_limit_ms: int) -> None:
        super().__init__(key, class_name, "validate", time_limit_ms)
        self._counts = {"checks_count": 0, "refusals_count": 0, "failures_count": 0}

    async def validate(self, request_metadata: object, what: str) -> None:
        """Call the policy; `what` names the subject for the log.

        :raises KafkaError: POLICY_VIOLATION for a refusal; UNKNOWN_SERVER_ERROR when the policy itself failed or
            timed out.
        """
        self._counts["checks_count"] += 1
        result = await self.call(lambda policy: _refusal(policy, request_metadata))
        if result.error is not None:
            self._counts["failures_count"] += 1
            _log.error("policy %s failed on %s: %s%s", self.class_name, what, result.error, result.details)
            message = f"Policy {self.class_name} failed, so nothing is changed: {result.error}"
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        if result.value is not None:
            self._counts["refusals_count"] += 1
            raise KafkaError(ErrorCode.POLICY_VIOLATION, result.value)

    def statistics(self) -> dict[str, int]:
        return {**self._counts, **super().statistics()}


def _result(function: Callable[[Any], ResultT], instance: Any) -> CallResult[ResultT]:
    try:
        return CallResult(function(instance))
    except BaseException as error:  # user code may raise anything
        return CallResult(error=type(error).__name__, details=f"\n{traceback.format_exc().rstrip()}")


def _refusal(policy: Any, request_metadata: object) -> str | None:
    """Return why the policy refuses; None if it accepts."""
    try:
        policy.validate(request_metadata)
    except PolicyViolation as violation:
        return str(violation) or "The policy refuses."
    return None


def _close(instance: Any) -> None:
    instance.close()
