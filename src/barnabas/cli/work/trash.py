"""Implementation of `barnabas topics trash`, `undelete` and `purge`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from barnabas.base.ids import ZERO_UUID, uuid_from_text, uuid_to_text
from barnabas.cli.failures import wrong_use
from barnabas.cli.output import notice, print_json, print_table
from barnabas.cli.work.calls import with_admin
from barnabas.cli.work.outcomes import raise_all
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.extensions.trash import Trashed, TrashedTopicDescription
from barnabas.wire.errors import KafkaError

_COLUMNS = ("topic", "id", "partitions", "bytes", "deleted", "deleted by", "expires")


def show(bootstrap: str, *, as_json: bool) -> None:
    """Print the topics in the trash, the most recently deleted first."""
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
            _format_time(topic.deleted_ms),
            topic.deleted_by,
            _format_time(topic.expires_ms),
        )
        for topic in topics
    ]
    print_table(_COLUMNS, rows)
    if not topics:
        notice("the trash is empty")


def undelete(bootstrap: str, name: str, topic_id: str | None, new_name: str | None, *, as_json: bool) -> None:
    """Undelete a topic, and print its name and counts."""
    trashed = Trashed(name, _parse_id(topic_id))
    topic = with_admin(bootstrap, lambda admin: admin.undelete_topic(trashed, new_name))
    if as_json:
        identity = {"topic": topic.name, "topic_id": uuid_to_text(topic.topic_id)}
        print_json({**identity, "partitions": topic.partitions, "offsets": topic.offsets})
    else:
        partitions = f"{topic.partitions} partition{'' if topic.partitions == 1 else 's'}"
        offsets = f"{topic.offsets} committed offset{'' if topic.offsets == 1 else 's'}"
        print(f"{topic.name}: undeleted with {partitions} and {offsets}")


def purge(
    bootstrap: str, names: Sequence[str], topic_id: str | None, *, everything: bool, as_json: bool
) -> None:
    """Purge topics, and print them, then raise the errors of other topics."""
    if everything == bool(names):
        raise wrong_use(
            "either topics or --all is required", "specify names of topics in the trash, or --all"
        )
    if topic_id is not None and len(names) != 1:
        raise wrong_use(f"--id {topic_id} requires exactly one topic", "specify the name of one topic")
    trashed = [Trashed(name, _parse_id(topic_id)) for name in names]
    errors = with_admin(bootstrap, lambda admin: _purge(admin, trashed, everything=everything))
    if as_json:
        print_json(
            [{"topic": topic.name, "error": error and error.code.name} for topic, error in errors.items()]
        )
    for topic, error in errors.items() if not as_json else ():
        if error is None:
            print(f"{topic.name}: purged")
    raise_all(errors.values())


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


def _format_time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000).astimezone().isoformat(" ", "seconds")


def _as_json(topic: TrashedTopicDescription) -> dict[str, Any]:
    fields = topic._asdict()
    return {"topic": fields.pop("name"), **fields, "topic_id": uuid_to_text(topic.topic_id)}
