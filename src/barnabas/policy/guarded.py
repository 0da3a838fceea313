"""Runs a user's policy in isolation, so that its errors do not affect the broker."""

import logging
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from barnabas.policy.interfaces import PolicyViolation
from barnabas.policy.loading import PolicyLoadError, instantiate
from barnabas.policy.worker import OutOfTime, PolicyWorker
from barnabas.wire.errors import ErrorCode, KafkaError

#: Time limit for importing and configuring a class.
LOAD_LIMIT_MS = 30_000

_log = logging.getLogger("barnabas.policy")


class _CallResult(NamedTuple):
    """The outcome of a call: passed, refused, or failed."""

    refusal: str | None = None
    error: str | None = None
    details: str = ""


class GuardedPolicy:
    """An instance of a policy class, called in a thread, one request at a time, each with a time limit."""

    def __init__(self, key: str, class_name: str, time_limit_ms: int) -> None:
        """:param key: The setting that names the class."""
        self._key = key
        self._class_name = class_name
        self._time_limit_ms = time_limit_ms
        self._worker = PolicyWorker(f"policy-{class_name}")
        self._policy: Any = None
        self._counts = {"checks_count": 0, "refusals_count": 0, "failures_count": 0}

    async def load(self, configs: Mapping[str, str]) -> None:
        """Create the instance and configure it.

        :raises PolicyLoadError: When that fails or takes too long.
        """
        loaded = await self._in_time(lambda: _load(self._key, self._class_name, configs), LOAD_LIMIT_MS)
        if isinstance(loaded, PolicyLoadError):
            self._worker.close()
            raise loaded
        self._policy = loaded

    async def _in_time(self, function: Callable[[], Any], limit_ms: int) -> Any:
        try:
            return await self._worker.call(function, limit_ms)
        except OutOfTime as error:
            return PolicyLoadError(self._key, self._class_name, f"cannot be loaded: {error}")

    async def validate(self, request_metadata: object, what: str) -> None:
        """Call the policy; `what` names the subject for the log.

        :raises KafkaError: POLICY_VIOLATION for a refusal; UNKNOWN_SERVER_ERROR when the policy itself failed or
            timed out.
        """
        self._counts["checks_count"] += 1
        policy = self._policy
        try:
            result = await self._worker.call(lambda: _evaluate(policy, request_metadata), self._time_limit_ms)
        except OutOfTime as error:
            result = _CallResult(error=str(error))
        if result.error is not None:
            self._counts["failures_count"] += 1
            _log.error("policy %s failed on %s: %s%s", self._class_name, what, result.error, result.details)
            message = f"Policy {self._class_name} failed, so nothing is changed: {result.error}"
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        if result.refusal is not None:
            self._counts["refusals_count"] += 1
            raise KafkaError(ErrorCode.POLICY_VIOLATION, result.refusal)

    async def close(self) -> None:
        """Close the instance; a failure or timeout is only logged."""
        policy = self._policy
        try:
            error = await self._worker.call(lambda: _close(policy), self._time_limit_ms)
        except OutOfTime as late:
            error = str(late)
        if error is not None:
            _log.warning("cannot close policy %s: %s", self._class_name, error)
        self._worker.close()

    def statistics(self) -> dict[str, int]:
        return {**self._counts, **self._worker.statistics()}


def _load(key: str, class_name: str, configs: Mapping[str, str]) -> Any:
    try:
        policy = instantiate(key, class_name)
        policy.configure(dict(configs))
    except PolicyLoadError as error:
        return error
    except BaseException as error:  # user code may raise anything
        reason = f"configure failed: {type(error).__name__}: {error}"
        return PolicyLoadError(key, class_name, reason)
    return policy


def _evaluate(policy: Any, request_metadata: object) -> _CallResult:
    try:
        policy.validate(request_metadata)
    except PolicyViolation as violation:
        return _CallResult(refusal=str(violation) or "The policy refuses.")
    except BaseException as error:  # user code may raise anything
        return _CallResult(error=type(error).__name__, details=f"\n{traceback.format_exc().rstrip()}")
    return _CallResult()


def _close(policy: Any) -> str | None:
    try:
        policy.close()
    except BaseException as error:  # user code may raise anything
        return f"{type(error).__name__}: {error}"
    return None
