import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.policy.loading import PolicyLoadError
from barnabas.policy.policies import Policies, PolicySettings
from barnabas.policy.rules import AclAction
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from support.loop import on_loop
from support.policies import NAMING, PolicyModule, altered_topic, new_topic, policy_module

BOTH = (
    NAMING
    + """
class Retention(AlterConfigPolicy):
    def validate(self, request):
        calls.append(("alter", request))
        if request.configs.get("retention.ms") == "-1":
            raise PolicyViolation("retention.ms must have an end")

class NotConfigured(Logged):
    def configure(self, configs):
        raise ValueError
"""
)


async def loaded(create_topic: str = "", alter_config: str = "") -> Policies:
    policies = Policies(PolicySettings(create_topic, alter_config, time_limit_ms=30_000, configs={"a": "b"}))
    await policies.load()
    return policies


async def refusal(policies: Policies, topic: str, **configs: str) -> str:
    """Return the error for a new topic; empty if it passes."""
    try:
        await policies.check_create_topic(
            new_topic(topic, configs={k.replace("_", "."): v for k, v in configs.items()})
        )
    except KafkaError as error:
        return f"{error.code.name}: {error.message}"
    return ""


@on_loop
async def test_without_settings_everything_passes_without_calls() -> None:
    policies = Policies()
    await policies.load()
    assert not policies.guards_creation
    assert await refusal(policies, "anything", retention_ms="-1") == ""
    await policies.check_alter_config(altered_topic("t", retention_ms="-1"))
    await policies.close()


def test_the_configs_of_a_new_topic_are_checked_by_the_alter_config_policy_first(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        with policy_module(tmp_path, BOTH) as module:
            policies = await loaded(module.named("Naming"), module.named("Retention"))
            assert policies.guards_creation
            assert (
                await refusal(policies, "t", retention_ms="-1")
                == "POLICY_VIOLATION: retention.ms must have an end"
            )
            assert (
                await refusal(policies, "t", retention_ms="5") == "POLICY_VIOLATION: t must begin with team."
            )
            assert await refusal(policies, "team.t", retention_ms="5") == ""
            assert [call[0] for call in module.calls] == [
                "configure",
                "alter",
                "alter",
                "validate",
                "alter",
                "validate",
            ]
            assert policies.statistics()["checks_count"] == 5
            assert policies.statistics()["refusals_count"] == 2
            await policies.close()

    scenario()


def test_a_new_topic_without_configs_is_not_checked_by_the_alter_config_policy(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        with policy_module(tmp_path, BOTH) as module:
            policies = await loaded("", module.named("Retention"))
            assert await refusal(policies, "t") == ""
            assert module.calls == []
            await policies.close()

    scenario()


def test_a_reload_loads_the_present_code_and_closes_the_former_policy(naming: PolicyModule) -> None:
    @on_loop
    async def scenario() -> None:
        policies = await loaded(naming.named("Naming"))
        assert await refusal(policies, "t") == "POLICY_VIOLATION: t must begin with team."
        calls_before = naming.calls
        naming.write(NAMING.replace("team.", "crew."))
        await policies.reload()
        assert await refusal(policies, "team.t") == "POLICY_VIOLATION: team.t must begin with crew."
        assert calls_before[-1] == ("close",)
        assert naming.calls[0] == ("configure", {"a": "b"})
        counts = policies.statistics()
        assert (counts["reloads_count"], counts["checks_count"], counts["refusals_count"]) == (1, 2, 2)
        await policies.close()

    scenario()


@pytest.mark.parametrize(
    "text",
    [
        "1 +",
        NAMING + "Naming = Logged = None\n",
        NAMING.replace("configure", "kaputt", 1)
        + """
class Naming(CreateTopicPolicy):
    def configure(self, configs):
        raise ValueError
""",
    ],
)
def test_a_failed_reload_keeps_the_former_policy_and_is_reported(
    naming: PolicyModule, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    @on_loop
    async def scenario() -> None:
        policies = await loaded(naming.named("Naming"))
        naming.write(text)
        with pytest.raises(PolicyLoadError):
            await policies.reload()
        assert await refusal(policies, "t") == "POLICY_VIOLATION: t must begin with team."
        assert ("close",) not in naming.calls
        assert policies.statistics()["failed_reloads_count"] == 1
        await policies.close()

    scenario()
    assert "the previous ones stay in force" in caplog.text


def test_when_one_of_two_cannot_be_loaded_the_other_is_closed(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        with policy_module(tmp_path, BOTH) as module:
            with pytest.raises(PolicyLoadError, match=r"for alter\.config\.policy\.class\.name"):
                await loaded(module.named("Naming"), module.named("NotConfigured"))
            assert module.calls[-1] == ("close",)

    scenario()


RULES = """
topics:
  - name: "[a-z]+"
    partitions: {max: 3}
  - prefix: pay
    protected: true
  - prefix: soft
    mode: warn
    partitions: {max: 2}
    protected: true
"""


async def ruled(directory: Path, on_warning: Callable[[str], None] | None = None) -> tuple[Policies, Path]:
    path = directory / "policies.yaml"
    path.write_text(RULES)
    policies = Policies(PolicySettings(file=path), on_warning)
    await policies.load()
    return policies, path


def code_of(check: Callable[[], None]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        check()
    return caught.value.code


def test_rules_from_a_file_apply_where_kafkas_policies_do_not(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        policies, _ = await ruled(tmp_path)
        assert policies.guards_creation
        assert await refusal(policies, "good") == ""
        assert code_of(lambda: policies.check_delete_topic("pay")) == ErrorCode.POLICY_VIOLATION
        assert code_of(lambda: policies.check_create_partitions("pay", 2)) == ErrorCode.POLICY_VIOLATION
        binding = AclBinding(
            ResourceType.TOPIC,
            "pay",
            PatternType.LITERAL,
            "User:a",
            "*",
            AclOperation.READ,
            AclPermission.DENY,
        )
        assert code_of(lambda: policies.check_acl(AclAction.CREATE, binding)) == ErrorCode.POLICY_VIOLATION
        with pytest.raises(KafkaError):
            await policies.check_alter_config(altered_topic("pay", retention_ms="1"))
        policies.check_delete_topic("good")
        policies.check_create_partitions("good", 3)
        await policies.check_alter_config(altered_topic("good", retention_ms="1"))
        assert policies.statistics()["refusals_count"] == 4

    scenario()


def test_an_error_has_every_violation(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        policies, _ = await ruled(tmp_path)
        with pytest.raises(KafkaError) as caught:
            await policies.check_create_topic(new_topic("A", 4))
        message = "Topic name 'A' must match [a-z]+; Topic 'A' has 4 partitions: it must be at most 3."
        assert caught.value.message == message

    scenario()


def test_in_mode_warn_a_change_passes_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    @on_loop
    async def scenario() -> None:
        policies, _ = await ruled(tmp_path)
        await policies.check_create_topic(new_topic("soft", 3))
        policies.check_delete_topic("soft")
        assert policies.statistics()["warnings_count"] == 2
        warnings: list[str] = []
        policies, _ = await ruled(tmp_path, warnings.append)
        policies.check_delete_topic("soft")
        assert warnings == ["Topic 'soft' is protected: it must not be deleted"]

    scenario()
    assert "allowed despite a policy violation (mode warn): Topic 'soft' has 3" in caplog.text


def test_a_reload_reads_the_file_again_or_keeps_the_rules_if_it_is_invalid(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        policies, path = await ruled(tmp_path)
        path.write_text("topics: [{protected: maybe}]")
        with pytest.raises(PolicyLoadError, match=r"line 1: topics.0..protected is 'maybe'"):
            await policies.reload()
        assert code_of(lambda: policies.check_delete_topic("pay")) == ErrorCode.POLICY_VIOLATION
        path.write_text("topics: []")
        await policies.reload()
        policies.check_delete_topic("pay")

    scenario()


def test_concurrent_reloads_run_one_after_the_other(naming: PolicyModule) -> None:
    @on_loop
    async def scenario() -> None:
        policies = await loaded(naming.named("Naming"))
        naming.write(NAMING.replace("team.", "crew."))
        await asyncio.gather(policies.reload(), policies.reload(), policies.reload())
        assert policies.statistics()["reloads_count"] == 3
        assert await refusal(policies, "t") == "POLICY_VIOLATION: t must begin with crew."
        await policies.close()

    scenario()
