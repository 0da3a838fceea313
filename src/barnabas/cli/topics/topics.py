"""`barnabas topics list`, `create` and `delete`."""

from collections.abc import Mapping
from typing import Annotated

import typer

from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command
from barnabas.cli.support.options import (
    BOOTSTRAP_DEFAULT,
    Bootstrap,
    Json,
    ValidateOnly,
    Wait,
    key_value_pairs,
)
from barnabas.cli.support.output import notice, print_json, print_table
from barnabas.cli.support.waiting import until_done
from barnabas.cli.topics.describe import topic_json
from barnabas.cli.topics.options import Names
from barnabas.cli.topics.results import print_results
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.model import BROKER_DEFAULT, NewTopic
from barnabas.client.core.metadata import TopicInfo
from barnabas.wire.errors import ErrorCode, KafkaError


@command("list", example="topics list", apis=("Metadata",), needs=("describe topic",), hides=True)
def list_topics(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    internal: Annotated[bool, typer.Option("--internal", help="Include internal topics.")] = False,
    as_json: Json = False,
) -> None:
    """List the topics."""
    described = with_admin(bootstrap, lambda admin: admin.describe_topics())
    topics = [
        topic
        for topic in described.values()
        if isinstance(topic, TopicInfo) and (internal or not topic.is_internal)
    ]
    if as_json:
        print_json([topic_json(topic) for topic in topics])
        return
    rows = [(topic.name, len(topic.partitions), topic.replication_factor) for topic in topics]
    print_table(("topic", "partitions", "replicas"), rows)
    if not topics:
        notice("no topics; 'barnabas topics create NAME' creates one")


@command(
    "create",
    example="topics create orders --partitions 3 --config retention.ms=86400000",
    apis=("CreateTopics",),
    needs=("create topic",),
)
def create_topics(
    names: Names,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", "-p", min=1, help="Number of partitions (default: num.partitions of the broker)."
        ),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "--replication-factor",
            "-r",
            min=1,
            help="Number of replicas (default: default.replication.factor of the broker).",
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            "-c",
            metavar="KEY=VALUE",
            help="Topic config; may be repeated.",
            autocompletion=candidates.topic_settings,
        ),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Do not fail if a topic already exists.")
    ] = False,
    validate_only: ValidateOnly = False,
    as_json: Json = False,
) -> None:
    """Create topics."""
    configs = dict(key_value_pairs(config, "--config"))
    topics = [
        NewTopic(name, partitions or BROKER_DEFAULT, replication_factor or BROKER_DEFAULT, configs)
        for name in names
    ]
    results = with_admin(bootstrap, lambda admin: admin.create_topics(topics, validate_only=validate_only))
    tolerated = {ErrorCode.TOPIC_ALREADY_EXISTS} if if_not_exists else ()
    print_results(results, "could be created" if validate_only else "created", tolerated, as_json=as_json)


@command("delete", example="topics delete orders --wait 60", apis=("DeleteTopics",), needs=("delete topic",))
def delete_topics(
    names: Names,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Do not fail if a topic does not exist.")
    ] = False,
    wait_s: Wait = None,
    as_json: Json = False,
) -> None:
    """Delete topics and all their records."""

    async def delete(admin: Admin) -> Mapping[str, KafkaError | None]:
        errors = await admin.delete_topics(names)
        deleted = {name for name, error in errors.items() if error is None}

        async def remaining() -> int:
            described = await admin.describe_topics(deleted)
            return sum(isinstance(topic, TopicInfo) for topic in described.values())

        if wait_s is not None:
            await until_done(admin.cluster, remaining, wait_s, "deletion of topics")
        return errors

    results = with_admin(bootstrap, delete)
    tolerated = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION} if if_exists else ()
    print_results(results, "deleted", tolerated, as_json=as_json)
