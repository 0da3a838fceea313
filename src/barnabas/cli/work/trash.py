"""What `barnabas topics trash`, `undelete` and `purge` do."""

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

_COLUMNS = ("topic", "id", "partitions", "bytes", "deleted", "by", "expires")


def show(bootstrap: str, *, as_json: bool) -> None:
    """Print the topics in the trash, the latest deleted first."""
    found = with_admin(bootstrap, lambda admin: admin.describe_trash())
    if as_json:
        print_json([_plain(each) for each in found])
        return
    rows = [
        (
            each.name,
            uuid_to_text(each.topic_id),
            each.partitions,
            each.size_bytes,
            _moment(each.deleted_ms),
            each.deleted_by,
            _moment(each.expires_ms),
        )
        for each in found
    ]
    print_table(_COLUMNS, rows)
    if not found:
        notice("the trash is empty")


def undelete(bootstrap: str, name: str, topic_id: str | None, new_name: str | None, *, as_json: bool) -> None:
    """Bring a topic back and print what it is now."""
    wanted = Trashed(name, _id_of(topic_id))
    topic = with_admin(bootstrap, lambda admin: admin.undelete_topic(wanted, new_name))
    if as_json:
        found = {"topic": topic.name, "topic_id": uuid_to_text(topic.topic_id)}
        print_json({**found, "partitions": topic.partitions, "offsets": topic.offsets})
    else:
        partitions = f"{topic.partitions} partition{'' if topic.partitions == 1 else 's'}"
        offsets = f"{topic.offsets} committed offset{'' if topic.offsets == 1 else 's'}"
        print(f"{topic.name}: back with {partitions} and {offsets}")


def purge(
    bootstrap: str, names: Sequence[str], topic_id: str | None, *, everything: bool, as_json: bool
) -> None:
    """Let go of topics and print which, then raise what stood in the way of others."""
    if everything == bool(names):
        raise wrong_use("neither topics nor --all, or both", "name topics of the trash, or say --all")
    if topic_id is not None and len(names) != 1:
        raise wrong_use(f"--id {topic_id} is for one topic", "name it, and no other")
    wanted = [Trashed(name, _id_of(topic_id)) for name in names]
    outcomes = with_admin(bootstrap, lambda admin: _purge(admin, wanted, everything=everything))
    if as_json:
        print_json(
            [{"topic": each.name, "error": error and error.code.name} for each, error in outcomes.items()]
        )
    for each, error in outcomes.items() if not as_json else ():
        if error is None:
            print(f"{each.name}: purged")
    raise_all(outcomes.values())


async def _purge(
    admin: Admin, wanted: Sequence[Trashed], *, everything: bool
) -> dict[Trashed, KafkaError | None]:
    if everything:
        wanted = [Trashed(each.name, each.topic_id) for each in await admin.describe_trash()]
    return await admin.purge_topics(wanted)


def _id_of(text: str | None) -> bytes:
    try:
        return ZERO_UUID if text is None else uuid_from_text(text)
    except ValueError:
        message = f"--id {text} is no topic id"
        raise wrong_use(message, "'barnabas topics trash' shows them") from None


def _moment(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000).astimezone().isoformat(" ", "seconds")


def _plain(topic: TrashedTopicDescription) -> dict[str, Any]:
    fields = topic._asdict()
    return {"topic": fields.pop("name"), **fields, "topic_id": uuid_to_text(topic.topic_id)}
