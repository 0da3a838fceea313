"""What `barnabas policy` does."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.base.yaml_nodes import YamlError
from barnabas.cli.failures import CommandError, wrong_use
from barnabas.cli.login import current_login
from barnabas.cli.output import print_json, print_table
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.model import ConfigEntry, ConfigSource
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.metadata import TopicInfo
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.config.definition import ConfigError
from barnabas.policy import CreateTopicPolicy
from barnabas.policy.cases import Case, CaseResult, CaseStatus, Counts, Trial, read_cases
from barnabas.policy.loading import PolicyLoadError
from barnabas.policy.policies import ALTER_CONFIG_KEY, CREATE_TOPIC_KEY, FILE_KEY, PolicySettings
from barnabas.server.main import load
from barnabas.server.policies import policy_settings

Judged = tuple[Case, CaseResult]

_COLUMNS = ("", "line", "change", "expected", "verdict", "why")


class Chosen(NamedTuple):
    """The policies to try, and the counts that a broker gives topics that leave theirs open."""

    settings: PolicySettings
    defaults: Counts


def settings(
    config_file: Path | None,
    overrides: Mapping[str, str],
    rules: Path | None,
    create_topic: str | None,
    alter_config: str | None,
) -> Chosen:
    """What a broker with this configuration would load.

    :raises CommandError: For a configuration that cannot be, or has no policies.
    """
    given = {FILE_KEY: rules, CREATE_TOPIC_KEY: create_topic, ALTER_CONFIG_KEY: alter_config}
    named = {key: str(value) for key, value in given.items() if value is not None}
    try:
        config = load(config_file, None, None, {**overrides, **named}).config
    except ConfigError as error:
        raise wrong_use(str(error)) from None
    chosen = policy_settings(config)
    if not (chosen.file or chosen.create_topic_class or chosen.alter_config_class):
        raise wrong_use(
            "there is no policy to try", "name one with --rules, --create-topic or --alter-config"
        )
    integer = config.integer
    return Chosen(chosen, Counts(integer("num.partitions"), integer("default.replication.factor")))


def try_cases(chosen: Chosen, path: Path, *, as_json: bool) -> None:
    """Put the cases of a file to the policies and print the verdicts.

    :raises CommandError: When one is not as expected, or the policies or the file are wrong.
    :raises OSError: When there is no file.
    """
    path.stat()  # one that is not there is not found, rather than wrong
    try:
        cases = read_cases(path, chosen.defaults)
    except YamlError as error:
        message = f"{path}: {error}"
        raise wrong_use(message) from None

    async def read() -> list[Case]:
        return cases

    _print(_judged(chosen, read), as_json=as_json)


def try_cluster(chosen: Chosen, bootstrap: str, *, as_json: bool) -> None:
    """Put the topics of a cluster, as if they were new, to the policies and print the verdicts.

    :raises CommandError: When one would be refused, or the policies are wrong.
    """

    async def read() -> list[Case]:
        async with ClusterClient(bootstrap, client_id="barnabas-cli", login=current_login()) as cluster:
            return await _topics(Admin(cluster))

    _print(_judged(chosen, read), as_json=as_json)


async def _topics(admin: Admin) -> list[Case]:
    """A case for each topic."""
    found = await admin.describe_topics()
    topics = [topic for topic in found.values() if isinstance(topic, TopicInfo) and not topic.is_internal]
    resources = [Resource(ResourceKind.TOPIC, topic.name) for topic in topics]
    configs = await admin.describe_configs(resources) if resources else {}
    return [_existing(topic, configs[resource]) for topic, resource in zip(topics, resources, strict=True)]


def _existing(topic: TopicInfo, configs: list[ConfigEntry] | Exception) -> Case:
    if isinstance(configs, Exception):
        raise configs
    own = (config for config in configs if config.source is ConfigSource.DYNAMIC_TOPIC_CONFIG)
    metadata = CreateTopicPolicy.RequestMetadata(
        topic=topic.name,
        num_partitions=len(topic.partitions),
        replication_factor=max((len(each.replicas) for each in topic.partitions), default=0),
        replicas_assignments=None,
        configs={config.name: config.value for config in own if config.value is not None},
    )
    return Case(0, topic.name, lambda policies: policies.check_create_topic(metadata), CaseStatus.ALLOWED, "")


def _judged(chosen: Chosen, read: Callable[[], Awaitable[list[Case]]]) -> list[Judged]:
    async def run() -> list[Judged]:
        async with Trial(chosen.settings) as trial:
            return [(case, await trial.outcome(case.ask)) for case in await read()]

    try:
        return asyncio.run(run())
    except PolicyLoadError as error:
        raise wrong_use(str(error)) from None


def _print(judged: Sequence[Judged], *, as_json: bool) -> None:
    if as_json:
        print_json([_json(case, outcome) for case, outcome in judged])
    else:
        print_table(_COLUMNS, [_row(case, outcome) for case, outcome in judged])
    unexpected_count = sum(not outcome.is_as_expected(case) for case, outcome in judged)
    if unexpected_count:
        message = f"{unexpected_count} of {len(judged)} verdicts are not as expected"
        raise CommandError(message)


def _row(case: Case, outcome: CaseResult) -> tuple[object, ...]:
    expected = f"{case.expected}: {case.says}" if case.says else case.expected
    mark = "ok" if outcome.is_as_expected(case) else "NOT"
    return mark, case.line or "", case.change, expected, outcome.verdict, outcome.why


def _json(case: Case, outcome: CaseResult) -> dict[str, Any]:
    return {
        "change": case.change,
        "line": case.line or None,
        "expected": case.expected,
        "says": case.says or None,
        "verdict": outcome.verdict,
        "why": outcome.why or None,
        "as_expected": outcome.is_as_expected(case),
    }
