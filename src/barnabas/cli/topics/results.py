"""Results of commands that change several topics."""

from collections.abc import Collection, Mapping
from typing import Any

from barnabas.base.ids import uuid_to_text
from barnabas.cli.support.outcomes import raise_all
from barnabas.cli.support.output import print_json
from barnabas.client.admin.model import CreatedTopic
from barnabas.wire.errors import ErrorCode, KafkaError


def print_results(
    results: Mapping[str, CreatedTopic | KafkaError | None],
    status: str,
    tolerated: Collection[ErrorCode] = (),
    *,
    as_json: bool,
) -> None:
    """Print the successful results, then raise the errors that are not tolerated.

    :param status: Text for topics without an error.
    """
    errors = {name: result for name, result in results.items() if isinstance(result, KafkaError)}
    if as_json:
        print_json([_result_json(name, result) for name, result in results.items()])
    else:
        for name in results:
            if name not in errors:
                print(f"{name}: {status}")
    raise_all(_with_topic(name, error) for name, error in errors.items() if error.code not in tolerated)


def _with_topic(name: str, error: KafkaError) -> KafkaError:
    return (
        error if f"'{name}'" in error.message else KafkaError(error.code, f"topic '{name}': {error.message}")
    )


def _result_json(name: str, result: CreatedTopic | KafkaError | None) -> dict[str, Any]:
    if isinstance(result, KafkaError):
        return {"topic": name, "error": result.code.name, "message": result.message}
    if result is None:
        return {"topic": name, "error": None}
    counts = {"partitions": result.partitions, "replication_factor": result.replication_factor}
    return {"topic": name, "error": None, "topic_id": uuid_to_text(result.topic_id), **counts}
