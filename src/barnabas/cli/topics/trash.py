"""`barnabas topics trash`, `undelete` and `purge`."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from barnabas.base.ids import ZERO_UUID, uuid_from_text, uuid_to_text
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command
from barnabas.cli.support.failures import NOT_FOUND, CommandError, wrong_use
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.outcomes import error_json, raise_all
from barnabas.cli.support.output import notice, print_json, print_table
from barnabas.cli.support.times import format_timestamp
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.extensions.trash import Trashed, TrashedTopicDescription
from barnabas.wire.errors import ErrorCode, KafkaError

_COLUMNS = ("topic", "id", "partitions", "bytes", "deleted", "deleted by", "expires")

TopicId = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="ID", help="Topic id; required if several topics of this name are in the trash."
    ),
]


@command("trash", example="topics trash", apis=("DescribeTrash",), needs=("describe topic",), hides=True)
def show_trash(bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False) -> None:
    """List deleted topics that can be undeleted, and when they expire."""
    topics = with_admin(bootstrap, lambda admin: admin.describe_trash())
    if as_json:
        print_json([_as_json(topic) for topic in topics])
        return
    rows = [
        (
            topic.name,
            uuid_to_text(topic.topic_id),
            topic.partitions,
            topic.size_bytes,
            format_timestamp(topic.deleted_ms),
            topic.deleted_by,
            format_timestamp(topic.expires_ms),
        )
        for topic in topics
    ]
    print_table(_COLUMNS, rows)
    if not topics:
        notice("the trash is empty")


@command(
    "undelete",
    example="topics undelete orders --as orders-before",
    apis=("UndeleteTopic",),
    needs=("create topic", "delete topic", "read topic"),
)
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
    trashed = Trashed(name, _parse_id(topic_id))
    try:
        topic = with_admin(bootstrap, lambda admin: admin.undelete_topic(trashed, new_name))
    except KafkaError as error:
        raise _with_hint(error) from None
    if as_json:
        identity = {"topic": topic.name, "topic_id": uuid_to_text(topic.topic_id)}
        print_json({**identity, "partitions": topic.partitions, "offsets": topic.offsets})
    else:
        partitions = f"{topic.partitions} partition{'' if topic.partitions == 1 else 's'}"
        offsets = f"{topic.offsets} committed offset{'' if topic.offsets == 1 else 's'}"
        print(f"{topic.name}: undeleted with {partitions} and {offsets}")


@command("purge", example="topics purge orders", apis=("PurgeTopics",), needs=("delete topic",))
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
    names = names or []
    if everything == bool(names):
        raise wrong_use(
            "either topics or --all is required", "specify names of topics in the trash, or --all"
        )
    if topic_id is not None and len(names) != 1:
        raise wrong_use(f"--id {topic_id} requires exactly one topic", "specify the name of one topic")
    trashed = [Trashed(name, _parse_id(topic_id)) for name in names]
    errors = with_admin(bootstrap, lambda admin: _purge(admin, trashed, everything=everything))
    if as_json:
        print_json([{"topic": topic.name, **error_json(error)} for topic, error in errors.items()])
    for topic, error in errors.items() if not as_json else ():
        if error is None:
            print(f"{topic.name}: purged")
    raise_all(error and _with_hint(error) for error in errors.values())


def _with_hint(error: KafkaError) -> KafkaError | CommandError:
    """Return an error with a hint to the trash if it is about a topic that is not there."""
    if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return error
    hint = "'barnabas topics trash' shows the topics in the trash"
    return CommandError(str(error), hint=hint, exit_code=NOT_FOUND, kind=error.code.name)


async def _purge(
    admin: Admin, trashed: Sequence[Trashed], *, everything: bool
) -> dict[Trashed, KafkaError | None]:
    if everything:
        trashed = [Trashed(topic.name, topic.topic_id) for topic in await admin.describe_trash()]
    return await admin.purge_topics(trashed)


def _parse_id(text: str | None) -> bytes:
    try:
        return ZERO_UUID if text is None else uuid_from_text(text)
    except ValueError:
        message = f"--id {text}: not a valid topic id"
        raise wrong_use(message, "'barnabas topics trash' shows the topic ids") from None


def _as_json(topic: TrashedTopicDescription) -> dict[str, Any]:
    fields = topic._asdict()
    return {"topic": fields.pop("name"), **fields, "topic_id": uuid_to_text(topic.topic_id)}
