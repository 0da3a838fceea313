"""Produce a record by hand."""

import base64
import binascii
import json
from typing import Any

from starlette.responses import Response

from barnabas.client.producer.producer import Producer
from barnabas.console.forms import Form
from barnabas.console.page import Route
from barnabas.console.pages.topic import frame, topic_of, topic_path
from barnabas.console.problems import sentence
from barnabas.console.topic_view import TopicView
from barnabas.console.view import View
from barnabas.wire.errors import KafkaError
from barnabas.wire.records.record import RecordHeaders

FORMS = ("text", "json", "hex", "base64")
#: Size limit of JSON, because parsing it holds up other pages.
JSON_CHARACTERS_MAX = 1 << 20
_DELIVERY_TIMEOUT_MS = 10_000


async def ask(view: View) -> Response:
    """Show the form."""
    topic = await topic_of(view)
    return await _form(view, topic, {"partition": view.query.get("partition", "")}, {})


async def produce(view: View) -> Response:
    """Write the record, and report its position."""
    topic, form = await topic_of(view), await view.form("key", "value", "headers")
    partition = form.whole("partition", maximum=max(0, len(topic.partitions) - 1))
    key, value = field_bytes(form, "key"), field_bytes(form, "value")
    headers = headers_in(form)
    if not form.errors:
        producer = Producer(
            view.cluster, linger_ms=0, delivery_timeout_ms=_DELIVERY_TIMEOUT_MS, clock=view.access.clock
        )
        try:
            async with producer:
                delivery = await producer.send_and_wait(
                    topic.name, value, key, partition=partition, headers=headers
                )
        except KafkaError as error:
            form.refuse("", sentence(error))
        else:
            path = topic_path(topic)
            notice = f"Written to partition {delivery.tp.partition} at offset {delivery.offset}."
            return view.redirect_with_notice(f"{path}/messages?partition={delivery.tp.partition}", notice)
    names = ("partition", "key", "value", "headers", "key_form", "value_form", "no_key", "no_value")
    return await _form(view, topic, {name: form.raw(name) for name in names}, form.errors)


def field_bytes(form: Form, name: str) -> bytes | None:
    """Key or value in the form's encoding; None for null."""
    if form.flag(f"no_{name}"):
        return None
    text, written = form.raw(name), form.one_of(f"{name}_form", FORMS)
    try:
        if written == "hex":
            return bytes.fromhex(text)
        if written == "base64":
            return base64.b64decode("".join(text.split()), validate=True)
        if written == "json" and len(text) > JSON_CHARACTERS_MAX:
            form.refuse(
                name,
                f"JSON of more than {JSON_CHARACTERS_MAX} characters is not validated: choose the format text.",
            )
            return None
        if written == "json":
            json.loads(text)
    except (ValueError, binascii.Error, RecursionError) as error:
        form.refuse(name, f"Not valid {written.upper() if written == 'json' else written}: {error}.")
        return None
    return text.encode()


def headers_in(form: Form) -> RecordHeaders:
    """Headers, one line `name: value` each."""
    headers = []
    for line in form.raw("headers").splitlines():
        name, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon or not name.strip():
            form.refuse("headers", f"'{line[:60]}' is not a header: write each as 'name: value'.")
            break
        headers.append((name.strip(), value.strip().encode()))
    return tuple(headers)


async def _form(view: View, topic: TopicView, values: dict[str, Any], errors: dict[str, str]) -> Response:
    status = 400 if errors else 200
    head = await frame(view, topic)
    return await view.page("produce.html", status=status, **head, values=values, errors=errors)


ROUTES = (
    Route("/topics/{name}/produce", ask),
    Route("/topics/{name}/produce", produce, "POST"),
)
