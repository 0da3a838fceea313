"""The clients under test: how each is started, its operations, and its errors."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interop import reference

HERE = Path(__file__).resolve().parent
BINARIES = HERE / ".cache" / "bin"
ANSWER_TIMEOUT_S = 45.0

#: What interop/README.md describes.
_LOGIN_VARIABLES = ("INTEROP_MECHANISM", "INTEROP_USER", "INTEROP_PASSWORD", "INTEROP_TOKEN")
_TLS_VARIABLES = ("INTEROP_AUTHORITY", "INTEROP_KEYSTORE")

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

#: The broker errors that every client's users can get, in the order of the tables below.
ERRORS = (
    "topic exists",
    "invalid topic",
    "invalid partitions",
    "invalid config",
    "message too large",
    "unknown topic",
    "offset out of range",
    "election not needed",
)


class ClientError(Exception):
    """An exception of the client: ``name`` as its users see it, and its message."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message


@dataclass(frozen=True)
class Kind:
    """One client library: how to start its program, and its differences from the others."""

    name: str
    command: Callable[[], Sequence[str]]
    errors: Mapping[str, str]
    cannot: frozenset[str] = frozenset()  #: operations that the library does not have
    has_the_brokers_message: bool = True
    creates_topics_by_producing: bool = True
    creates_topics_by_describing: bool = False
    distinguishes_empty_from_null: bool = True
    #: its assignors; none if it cannot join a group
    strategies: tuple[str, ...] = ()
    is_secure: bool = False  #: whether its program supports logins and TLS
    takes_tokens: bool = False  #: whether the library logs in with delegation tokens

    def can(self, *operations: str) -> bool:
        """Return whether the library has every one of ``operations``."""
        return self.cannot.isdisjoint(operations)


class Client:
    """A running client program; ``do`` sends it a command and waits for the response."""

    def __init__(
        self,
        kind: Kind,
        bootstrap: str,
        log: Path,
        login: Sequence[str] = (),
        tls: Sequence[Path] = (),
        patience_s: float | None = None,
    ) -> None:
        """Start the program; what it logs is in ``log``.

        ``login`` is a SASL mechanism, a user and a password, and "token" if these are a delegation token's.
        ``tls`` is a file with the authority that it trusts, and one with its own key and certificate if it has them.
        ``patience_s`` is for a client that will be refused: about how long it tries.
        """
        self.kind = kind
        self.log = log
        given = {
            **dict(zip(_LOGIN_VARIABLES, login, strict=False)),
            **dict(zip(_TLS_VARIABLES, map(str, tls), strict=False)),
            **({} if patience_s is None else {"INTEROP_PATIENCE_S": str(patience_s)}),
        }
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                [*kind.command(), bootstrap],
                cwd=HERE.parent,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env={**os.environ, **given},
            )

    def do(self, operation: str, **arguments: Any) -> Any:
        """Return the result of one operation (interop/README.md lists them).

        Raises:
            ClientError: the client library failed the call.
            TimeoutError: no response came within ANSWER_TIMEOUT_S.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": operation, **arguments}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._read_line(operation))
        if "error" in answer:
            raise ClientError(answer["error"], answer["message"])
        return answer["ok"]

    def _read_line(self, operation: str) -> str:
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], ANSWER_TIMEOUT_S)
        if not readable:
            message = f"{self.kind.name} gave no answer to {operation} in {ANSWER_TIMEOUT_S:.0f} s"
            raise TimeoutError(message)
        line = self._process.stdout.readline()
        if not line:
            message = f"{self.kind.name} ended with status {self._process.wait()} during {operation}"
            raise EOFError(message)
        return line

    def close(self) -> None:
        """Close the program's input, which ends it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def _python(module: str) -> Callable[[], Sequence[str]]:
    return lambda: [sys.executable, "-m", f"interop.python.{module}"]


def _go(program: str) -> Callable[[], Sequence[str]]:
    return lambda: [str(BINARIES / program)]


def _java() -> Sequence[str]:
    classes = HERE / "java" / "target" / "classes"
    return reference.java(*reference.TOOL_JVM_OPTIONS, "barnabas.interop.Main", classes=classes)


def _errors(*names: str) -> Mapping[str, str]:
    return dict(zip(ERRORS, names, strict=True))


_PYTHON_ERRORS = _errors(
    "TopicAlreadyExistsError",
    "InvalidTopicError",
    "InvalidPartitionsError",
    "InvalidConfigurationError",
    "MessageSizeTooLargeError",
    "UnknownTopicOrPartitionError",
    "OffsetOutOfRangeError",
    "ElectionNotNeededError",
)
#: Operations on quotas, replicas, and the whole cluster.
_QUOTAS = frozenset({"alter_quota", "quotas"})
_REPLICAS = frozenset({"reassign", "reassignments", "log_dirs"})
_CLUSTER = frozenset(
    {
        *["alter_topic_config", "create_acl", "acls", "delete_acls", "alter_scram", "scram", "delete_scram"],
        *["elect_leader", "config_resources", *_QUOTAS, *_REPLICAS],
    }
)
_ADMINISTRATION = frozenset(
    {
        *["create_topic", "delete_topic", "create_partitions"],
        *["topic_configs", "broker_configs", "delete_records"],
    }
)

KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "kcat",
            _python("kcat"),
            {
                "invalid topic": "Broker: Invalid topic",
                "message too large": "% Delivery failed for message: Broker: Message size too large",
                "unknown topic": "Broker: Unknown topic or partition",
            },
            cannot=_ADMINISTRATION | _CLUSTER | {"replace_topic_configs", "transact"},
            has_the_brokers_message=False,
            creates_topics_by_describing=True,
        ),
        Kind(
            "confluent-kafka",
            _python("confluent"),
            _errors(
                "TOPIC_ALREADY_EXISTS",
                "TOPIC_EXCEPTION",
                "INVALID_PARTITIONS",
                "INVALID_CONFIG",
                "MSG_SIZE_TOO_LARGE",
                "UNKNOWN_TOPIC_OR_PART",
                "OFFSET_OUT_OF_RANGE",
                "ELECTION_NOT_NEEDED",
            ),
            cannot=_QUOTAS | _REPLICAS | {"config_resources"},
            creates_topics_by_describing=True,
            is_secure=True,
            strategies=("range", "roundrobin", "cooperative-sticky"),
        ),
        Kind(
            "kafka-python",
            _python("kafka_python"),
            _PYTHON_ERRORS,
            cannot=_QUOTAS | {"config_resources", "replace_topic_configs"},
            is_secure=True,
            strategies=("",),
        ),
        Kind(
            "aiokafka",
            _python("aiokafka_client"),
            _PYTHON_ERRORS,
            cannot=_CLUSTER,
            creates_topics_by_describing=True,
            strategies=("",),
        ),
        Kind(
            "java",
            _java,
            _errors(
                "TopicExistsException",
                "InvalidTopicException",
                "InvalidPartitionsException",
                "InvalidConfigurationException",
                "RecordTooLargeException",
                "UnknownTopicOrPartitionException",
                "OffsetOutOfRangeException",
                "ElectionNotNeededException",
            ),
            cannot=frozenset({"replace_topic_configs"}),
            is_secure=True,
            takes_tokens=True,
            strategies=("range", "roundrobin", "sticky", "cooperative-sticky"),
        ),
        Kind(
            "franz-go",
            _go("franz"),
            _errors(
                "TOPIC_ALREADY_EXISTS",
                "INVALID_TOPIC_EXCEPTION",
                "INVALID_PARTITIONS",
                "INVALID_CONFIG",
                "MESSAGE_TOO_LARGE",
                "UNKNOWN_TOPIC_OR_PARTITION",
                "OFFSET_OUT_OF_RANGE",
                "ELECTION_NOT_NEEDED",
            ),
            cannot=frozenset({"config_resources"}),
            has_the_brokers_message=False,
            creates_topics_by_producing=False,
            is_secure=True,
            takes_tokens=True,
            strategies=("range", "cooperative-sticky"),
        ),
        Kind(
            "sarama",
            _go("sarama"),
            _errors(*(f"KError({code})" for code in (36, 17, 37, 40, 10, 3, 1, 84))),
            cannot=frozenset({"config_resources"}),
            is_secure=True,
            strategies=("range", "sticky"),
        ),
        Kind(
            "kafka-go",
            _go("kafkago"),
            _errors(
                "Topic Already Exists",
                "Invalid Topic",
                "Invalid Partition Number",
                "Invalid Configuration",
                "Message Size Too Large",
                "Unknown Topic Or Partition",
                "Offset Out Of Range",
                "Election Not Needed",
            ),
            cannot=_CLUSTER | {"delete_records", "idempotence", "transact"},
            creates_topics_by_producing=False,
            distinguishes_empty_from_null=False,
            strategies=("",),
        ),
        Kind(
            "kafkajs",
            lambda: ["node", str(HERE / "node" / "main.js")],
            _errors(
                "false",
                "INVALID_TOPIC_EXCEPTION",
                "INVALID_PARTITIONS",
                "INVALID_CONFIG",
                "MESSAGE_TOO_LARGE",
                "UNKNOWN_TOPIC_OR_PARTITION",
                "KafkaJSDeleteTopicRecordsError",
                "ELECTION_NOT_NEEDED",
            ),
            cannot=_CLUSTER | {"consume"},
            has_the_brokers_message=False,
            is_secure=True,
            strategies=("",),
        ),
    )
}


def kinds_that(*operations: str) -> list[str]:
    """Return the names of the clients that have every one of ``operations``."""
    return [kind.name for kind in KINDS.values() if kind.can(*operations)]


class Clients:
    """The client programs for one broker, each started on first use."""

    def __init__(self, bootstrap: str, log_dir: Path) -> None:
        self._bootstrap = bootstrap
        self._log_dir = log_dir
        self._running: dict[str, Client] = {}

    def __getitem__(self, name: str) -> Client:
        if name not in self._running:
            kind = KINDS[name]
            self._running[name] = Client(kind, self._bootstrap, self._log_dir / f"{name}.log")
        return self._running[name]

    def close(self) -> None:
        """End every program."""
        for client in self._running.values():
            client.close()
