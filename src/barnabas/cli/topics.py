"""`barnabas topics`: list, create, describe, delete, undelete and purge topics, add partitions."""

from typing import Annotated

import typer

from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, Wait, key_value_pairs

app = typer.Typer(
    help="List, create, describe, delete and undelete topics, add partitions.", no_args_is_help=True
)

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="TOPIC...", help="Names of topics.", show_default=False, autocompletion=candidates.topics
    ),
]
TopicId = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="ID", help="Topic id; required if several topics of this name are in the trash."
    ),
]
Dry = Annotated[bool, typer.Option("--validate-only", help="Validate the request without applying it.")]


@app.command("list")
@handle_errors
def list_topics(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    internal: Annotated[bool, typer.Option("--internal", help="Include internal topics.")] = False,
    as_json: Json = False,
) -> None:
    """List the topics."""
    from barnabas.cli.work import topics

    topics.show_list(bootstrap, internal=internal, as_json=as_json)


@app.command("create")
@handle_errors
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
    validate_only: Dry = False,
    as_json: Json = False,
) -> None:
    """Create topics."""
    configs = dict(key_value_pairs(config, "--config"))
    from barnabas.cli.work import topics

    new_topics = topics.new_topics(names, partitions, replication_factor, configs)
    topics.create(
        bootstrap, new_topics, if_not_exists=if_not_exists, validate_only=validate_only, as_json=as_json
    )


@app.command("describe")
@handle_errors
def describe_topics(names: Names, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False) -> None:
    """Show partitions, their offsets, and the configs that are set for the topic."""
    from barnabas.cli.work import topics

    topics.describe(bootstrap, names, as_json=as_json)


@app.command("delete")
@handle_errors
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
    from barnabas.cli.work import topics

    topics.delete(bootstrap, names, if_exists=if_exists, wait_s=wait_s, as_json=as_json)


@app.command("add-partitions")
@handle_errors
def add_partitions(
    names: Names,
    total: Annotated[
        int,
        typer.Option(
            "--total", min=1, help="Total number of partitions of each topic afterwards.", show_default=False
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    validate_only: Dry = False,
    as_json: Json = False,
) -> None:
    """Add partitions to topics, up to a total number."""
    from barnabas.cli.work import topics

    topics.add_partitions(bootstrap, names, total, validate_only=validate_only, as_json=as_json)


@app.command("partitions")
@handle_errors
def show_partitions(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOPIC]...",
            help="Topics to show (default: all).",
            show_default=False,
            autocompletion=candidates.topics,
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    unhealthy: Annotated[
        bool,
        typer.Option("--unhealthy", help="Only partitions that are offline or under-replicated."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show leaders and replicas of partitions: in-sync, eligible (ELR, KIP-966) and offline replicas."""
    from barnabas.cli.work import topic_partitions

    topic_partitions.show(bootstrap, names or [], unhealthy=unhealthy, as_json=as_json)


@app.command("trash")
@handle_errors
def show_trash(bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False) -> None:
    """List deleted topics that can be undeleted, and when they expire."""
    from barnabas.cli.work import trash

    trash.show(bootstrap, as_json=as_json)


@app.command("undelete")
@handle_errors
def undelete_topic(
    name: Annotated[
        str, typer.Argument(metavar="TOPIC", help="Name of the deleted topic.", show_default=False)
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    topic_id: TopicId = None,
    new_name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="New name (default: the old name).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Undelete a topic: records, configs, id, and offsets of groups that have no members and no newer offsets."""
    from barnabas.cli.work import trash

    trash.undelete(bootstrap, name, topic_id, new_name, as_json=as_json)


@app.command("purge")
@handle_errors
def purge_topics(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC...]", help="Names of topics in the trash.")
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    topic_id: TopicId = None,
    everything: Annotated[bool, typer.Option("--all", help="Purge all topics in the trash.")] = False,
    as_json: Json = False,
) -> None:
    """Remove deleted topics from the trash for good, and free their disk space."""
    from barnabas.cli.work import trash

    trash.purge(bootstrap, names or [], topic_id, everything=everything, as_json=as_json)
