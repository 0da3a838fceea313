from pathlib import Path

import pytest

from barnabas.policy import worker
from barnabas.policy.guarded import GuardedPolicy
from barnabas.policy.loading import PolicyLoadError
from barnabas.wire.errors import ErrorCode, KafkaError
from support.loop import on_loop
from support.policies import HEAD, PolicyModule, new_topic, policy_module

KEY = "create.topic.policy.class.name"

BAD = (
    HEAD
    + """
class Raises(Logged):
    def validate(self, request):
        raise {"topic": ValueError("secret"), "exit": SystemExit(), "stop": StopIteration()}[request.topic]

    def close(self):
        raise ValueError("cannot close")

class Silent(Logged):
    def validate(self, request):
        raise PolicyViolation

class Spins(Logged):
    def validate(self, request):
        while request.topic == "slow":
            pass

class NotConfigured(Logged):
    def configure(self, configs):
        raise KeyError("its.own.key")
"""
)


async def guarded(module: PolicyModule, class_name: str, time_limit_ms: int = 30_000) -> GuardedPolicy:
    policy = GuardedPolicy(KEY, module.named(class_name), time_limit_ms)
    await policy.load({"num.partitions": "3"})
    return policy


async def error_of(policy: GuardedPolicy, topic: str) -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        await policy.validate(new_topic(topic), f"topic '{topic}'")
    return caught.value


@on_loop
async def test_an_instance_is_configured_called_and_closed(tmp_path: Path) -> None:
    with policy_module(tmp_path, HEAD) as module:
        policy = await guarded(module, "Logged")
        await policy.validate(new_topic("t"), "topic 't'")
        await policy.close()
        assert module.calls == [
            ("configure", {"num.partitions": "3"}),
            ("validate", new_topic("t")),
            ("close",),
        ]


def test_a_violation_has_the_policys_message(naming: PolicyModule) -> None:
    @on_loop
    async def scenario() -> None:
        policy = await guarded(naming, "Naming")
        await policy.validate(new_topic("team.t"), "topic 'team.t'")
        error = await error_of(policy, "t")
        assert (error.code, error.message) == (ErrorCode.POLICY_VIOLATION, "t must begin with team.")
        counts = {"checks_count": 2, "refusals_count": 1, "failures_count": 0, "given_up_count": 0}
        assert policy.statistics() == counts
        await policy.close()

    scenario()


def test_a_violation_without_message_gets_a_default_message(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        with policy_module(tmp_path, BAD) as module:
            policy = await guarded(module, "Silent")
            error = await error_of(policy, "t")
            assert (error.code, error.message) == (ErrorCode.POLICY_VIOLATION, "The policy refuses.")
            await policy.close()

    scenario()


@pytest.mark.parametrize(
    ("topic", "kind"), [("topic", "ValueError"), ("exit", "SystemExit"), ("stop", "StopIteration")]
)
def test_a_policy_that_fails_rejects_everything_and_its_reason_is_only_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, topic: str, kind: str
) -> None:
    @on_loop
    async def scenario() -> None:
        with policy_module(tmp_path, BAD) as module:
            policy = await guarded(module, "Raises")
            error = await error_of(policy, topic)
            assert error.code == ErrorCode.UNKNOWN_SERVER_ERROR
            assert error.message == f"Policy {module.named('Raises')} failed, so nothing is changed: {kind}"
            await policy.close()

    scenario()
    assert "Traceback" in caplog.text
    assert "ValueError: cannot close" in caplog.text


def test_a_policy_that_is_too_slow_rejects_the_change_and_works_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "INTERRUPTED_AFTER_S", 0.01)

    @on_loop
    async def scenario() -> None:
        with policy_module(tmp_path, BAD) as module:
            policy = await guarded(module, "Spins", 500)
            error = await error_of(policy, "slow")
            assert error.code == ErrorCode.UNKNOWN_SERVER_ERROR
            assert "no answer within 500 ms" in error.message
            await policy.validate(new_topic("quick"), "topic 'quick'")
            await policy.close()

    scenario()


def test_a_policy_that_cannot_be_configured_is_not_loaded(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        failure = pytest.raises(PolicyLoadError, match=r"configure failed: KeyError: 'its.own.key'")
        with policy_module(tmp_path, BAD) as module, failure:
            await guarded(module, "NotConfigured")

    scenario()
