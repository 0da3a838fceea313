"""`barnabas policy`: test policies."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from barnabas.base.yaml_nodes import YamlError
from barnabas.cli.support.commands import command, command_group
from barnabas.cli.support.failures import CommandError, wrong_use
from barnabas.cli.support.login import current_login, current_tls
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, key_value_pairs
from barnabas.cli.support.output import print_json, print_table
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.model import ConfigEntry
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.metadata import TopicInfo
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.config.config_source import ConfigSource
from barnabas.config.definition import ConfigError
from barnabas.policy import CreateTopicPolicy
from barnabas.policy.cases import Case, CaseResult, CaseStatus, Counts, Trial, read_cases
from barnabas.policy.loading import PolicyLoadError
from barnabas.policy.policies import ALTER_CONFIG_KEY, CREATE_TOPIC_KEY, FILE_KEY, PolicySettings

CheckedCase = tuple[Case, CaseResult]

_COLUMNS = ("", "line", "change", "expected", "result", "reason")


class PoliciesToTest(NamedTuple):
    """The policies to test, and the default partition and replica counts of new topics."""

    settings: PolicySettings
    defaults: Counts


@command(
    "test",
    example="policy test --rules policies.yaml",
    apis=("Metadata", "DescribeConfigs"),
    needs=("describe topic", "describe-configs topic"),
    hides=True,
)
def try_policy(
    cases: Annotated[
        Path | None,
        typer.Argument(
            metavar="CASES",
            help="YAML file of changes and expected results (default: the topics of the cluster at --bootstrap).",
            show_default=False,
        ),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option("--rules", metavar="FILE", help="File of rules, in the format of barnabas.policy.file."),
    ] = None,
    create_topic: Annotated[
        str | None,
        typer.Option(
            "--create-topic", metavar="MODULE:CLASS", help="Class that implements CreateTopicPolicy."
        ),
    ] = None,
    alter_config: Annotated[
        str | None,
        typer.Option(
            "--alter-config", metavar="MODULE:CLASS", help="Class that implements AlterConfigPolicy."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="The server.properties of a broker that has the policies."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Broker setting, overrides the file; may be repeated."
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Show which changes policies would reject, and why; exits with 1 if a result is not as expected.

    Existing topics are expected to be allowed.
    """
    overrides = dict(key_value_pairs(settings, "--set"))
    policies = _policies_to_test(config, overrides, rules, create_topic, alter_config)
    if cases is not None:
        _try_cases(policies, cases, as_json=as_json)
    else:
        _try_cluster(policies, bootstrap, as_json=as_json)


def _policies_to_test(
    config_file: Path | None,
    overrides: Mapping[str, str],
    rules: Path | None,
    create_topic: str | None,
    alter_config: str | None,
) -> PoliciesToTest:
    """Return the policies that a broker with this configuration would load.

    :raises CommandError: If the configuration is not valid, or has no policies.
    """
    # heavy: neither help nor completion needs the broker
    from barnabas.server.main import load
    from barnabas.server.policies import policy_settings

    options = {FILE_KEY: rules, CREATE_TOPIC_KEY: create_topic, ALTER_CONFIG_KEY: alter_config}
    policy_overrides = {key: str(value) for key, value in options.items() if value is not None}
    try:
        config = load(config_file, None, None, {**overrides, **policy_overrides}).config
    except ConfigError as error:
        raise wrong_use(str(error)) from None
    settings = policy_settings(config)
    if not (settings.file or settings.create_topic_class or settings.alter_config_class):
        raise wrong_use("no policy configured", "specify one with --rules, --create-topic or --alter-config")
    integer = config.integer
    return PoliciesToTest(settings, Counts(integer("num.partitions"), integer("default.replication.factor")))


def _try_cases(policies: PoliciesToTest, path: Path, *, as_json: bool) -> None:
    """Check the cases of a file against the policies, and print the results.

    :raises CommandError: If a result is not as expected, or the policies or the file are not valid.
    :raises OSError: If the file cannot be read.
    """
    path.stat()  # a missing file is reported as not found, not as invalid
    try:
        cases = read_cases(path, policies.defaults)
    except YamlError as error:
        message = f"{path}: {error}"
        raise wrong_use(message) from None

    async def read() -> list[Case]:
        return cases

    _print(_check(policies, read), as_json=as_json)


def _try_cluster(policies: PoliciesToTest, bootstrap: str, *, as_json: bool) -> None:
    """Check the topics of a cluster as if they were created now, and print the results.

    :raises CommandError: If a topic would be rejected, or the policies are not valid.
    """

    async def read() -> list[Case]:
        async with ClusterClient(
            bootstrap, client_id="barnabas-cli", login=current_login(), tls=current_tls()
        ) as cluster:
            return await _topics(Admin(cluster))

    _print(_check(policies, read), as_json=as_json)


async def _topics(admin: Admin) -> list[Case]:
    described = await admin.describe_topics()
    topics = [topic for topic in described.values() if isinstance(topic, TopicInfo) and not topic.is_internal]
    resources = [Resource(ResourceKind.TOPIC, topic.name) for topic in topics]
    configs = await admin.describe_configs(resources) if resources else {}
    return [_case(topic, configs[resource]) for topic, resource in zip(topics, resources, strict=True)]


def _case(topic: TopicInfo, configs: list[ConfigEntry] | Exception) -> Case:
    if isinstance(configs, Exception):
        raise configs
    own = (config for config in configs if config.source is ConfigSource.DYNAMIC_TOPIC_CONFIG)
    metadata = CreateTopicPolicy.RequestMetadata(
        topic=topic.name,
        num_partitions=len(topic.partitions),
        replication_factor=topic.replication_factor,
        replicas_assignments=None,
        configs={config.name: config.value for config in own if config.value is not None},
    )
    return Case(0, topic.name, lambda policies: policies.check_create_topic(metadata), CaseStatus.ALLOWED, "")


def _check(policies: PoliciesToTest, read: Callable[[], Awaitable[list[Case]]]) -> list[CheckedCase]:
    async def run() -> list[CheckedCase]:
        async with Trial(policies.settings) as trial:
            return [(case, await trial.outcome(case.ask)) for case in await read()]

    try:
        return asyncio.run(run())
    except PolicyLoadError as error:
        raise wrong_use(str(error)) from None


def _print(checked: Sequence[CheckedCase], *, as_json: bool) -> None:
    if as_json:
        print_json([_json(case, result) for case, result in checked])
    else:
        print_table(_COLUMNS, [_row(case, result) for case, result in checked])
    unexpected_count = sum(not result.is_as_expected(case) for case, result in checked)
    if unexpected_count:
        message = f"{unexpected_count} of {len(checked)} results are not as expected"
        raise CommandError(message)


def _row(case: Case, result: CaseResult) -> tuple[object, ...]:
    expected = f"{case.expected}: {case.expected_reason}" if case.expected_reason else case.expected
    mark = "ok" if result.is_as_expected(case) else "NOT"
    return mark, case.line or "", case.change, expected, result.result, result.why


def _json(case: Case, result: CaseResult) -> dict[str, Any]:
    return {
        "change": case.change,
        "line": case.line or None,
        "expected": case.expected,
        "says": case.expected_reason or None,
        "result": result.result,
        "why": result.why or None,
        "as_expected": result.is_as_expected(case),
    }


app = command_group(try_policy)
