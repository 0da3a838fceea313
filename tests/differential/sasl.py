"""Both brokers with a SASL listener, and conversations with them, step by step."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from barnabas.wire.schema import Message, Struct
from differential.brokers import SETTINGS, SHARED
from interop import candidate, reference, sasl
from support.wire import Wire

#: Stands for bytes that are different each time.
RANDOM = b"(random)"


@dataclass(frozen=True)
class SaslPair:
    """Ports by the broker's name: of the SASL listener, and of the one without login."""

    clients: dict[str, int]
    plaintext: dict[str, int]


@contextmanager
def sasl_pair(home: Path, **more: str) -> Iterator[SaslPair]:
    """Run both brokers with SASL below `home`; `more` are settings, with underscores for dots."""
    settings = SETTINGS | sasl.SETTINGS | {key.replace("_", "."): value for key, value in more.items()}
    clients, plaintext = {}, {}
    with ExitStack() as stack:
        for name, start, own in (("kafka", reference.start, {}), ("barnabas", candidate.start, SHARED)):
            address = sasl.free_address()
            broker = start(home / name, own | settings, listeners=[f"{sasl.LISTENER}://{address}"])
            stack.callback(broker.stop)
            clients[name] = int(address.rpartition(":")[2])
            plaintext[name] = int(broker.bootstrap.rpartition(":")[2])
        yield SaslPair(clients, plaintext)


@dataclass(frozen=True)
class Ask:
    """A request at a version."""

    request: Message
    version: int


@dataclass(frozen=True)
class Say:
    """Bytes in a frame of their own."""

    token: bytes


#: The next step, or a function that derives it from the last token.
Step = Ask | Say | Callable[[bytes], Ask | Say]


def conversation(port: int, steps: Sequence[Step], mask: Callable[[bytes], bytes] = bytes) -> list[object]:
    """Return the response to each step, until the broker closes the connection. `mask` makes tokens comparable."""
    answers: list[object] = []
    token = b""
    with Wire(port) as wire:
        for step in steps:
            now = step if isinstance(step, Ask | Say) else step(token)
            try:
                if isinstance(now, Say):
                    wire.send_frame(now.token)
                    token = wire.receive_frame()[4:]
                    answers.append(mask(token))
                else:
                    response = wire.ask(now.request, now.version)
                    token = bytes(getattr(response, "auth_bytes", token))
                    answers.append(responses(response, now.version, mask))
            except EOFError:
                answers.append("closed")
                break
    return answers


def responses(response: Struct, version: int, mask: Callable[[bytes], bytes]) -> dict[str, object]:
    """Return the fields of an authentication response; other responses are reduced to their error."""
    step_request = {"error_code", "error_message", "mechanisms", "session_lifetime_ms", "auth_bytes"}
    fields: dict[str, object] = {"response": type(response).__name__}
    for field in response.FIELDS:
        if field.name in step_request and version in field.versions:
            value = getattr(response, field.name)
            fields[field.name] = mask(bytes(value)) if field.name == "auth_bytes" else value
    if "mechanisms" in fields:
        fields["mechanisms"] = sorted(response.mechanisms)  # type: ignore[attr-defined]  # Kafka's come from a hash set
    return fields
