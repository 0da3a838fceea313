"""Apache Kafka itself: fetched by Maven, started as one KRaft node, and its command-line tools.

python -m interop.reference fetch
python -m interop.reference serve --port 9092 --home /tmp/kafka --set auto.create.topics.enable=false
python -m interop.reference tool kafka-topics --bootstrap-server 127.0.0.1:9092 --list
"""

import argparse
import base64
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from interop import maven
from interop.brokers import Broker, free_ports, launch

KAFKA_VERSION = "4.3.1"
HERE = Path(__file__).resolve().parent
CACHE = HERE / ".cache"
POM = HERE / "reference" / "pom.xml"
JARS = CACHE / f"kafka-{KAFKA_VERSION}"
TOOL_TIMEOUT_S = 180.0

#: The JVM options of Kafka's kafka-server-start script.
SERVER_JVM_OPTIONS = [
    *["-Xms1G", "-Xmx1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"],
    *["-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15"],
    "-Djava.awt.headless=true",
]
#: The tools run beside a broker on few cores: they start faster with a small heap and no second compiler.
TOOL_JVM_OPTIONS = ["-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]

#: Kafka's config/server.properties, except directories and ports.
SERVER_PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "num.network.threads": "3",
    "num.io.threads": "8",
    "socket.send.buffer.bytes": "102400",
    "socket.receive.buffer.bytes": "102400",
    "socket.request.max.bytes": "104857600",
    "num.partitions": "1",
    "num.recovery.threads.per.data.dir": "2",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.retention.hours": "168",
    "log.segment.bytes": "1073741824",
    "log.retention.check.interval.ms": "300000",
}

#: For a broker that is killed and restarted: it may register when its last session has expired, after 9 s by default.
SHORT_SESSION = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "300"}

#: The class of each of Kafka's scripts.
TOOLS = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
}


def fetch() -> Path:
    """Fetch Kafka's jars into the cache (once per version of the pom); return their directory."""
    return maven.jars(POM, JARS)


def java(
    *arguments: str | Path, log4j: str = "tools-log4j2.properties", classes: Path | None = None
) -> list[str]:
    """Return the command line of a JVM with Kafka on its class path, after ``classes`` if given."""
    config = HERE / "reference" / log4j
    class_path = f"{classes}:{fetch()}/*" if classes else f"{fetch()}/*"
    return ["java", f"-Dlog4j2.configurationFile={config}", "-cp", class_path, *map(str, arguments)]


def tool(
    name: str,
    *arguments: str | Path,
    check: bool = True,
    standard_input: str = "",
    classes: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's command-line tools, by the name of its script; return its output as text.

    Raises:
        KeyError: no such tool in TOOLS.
        subprocess.CalledProcessError: ``check`` is set and the tool failed.
        subprocess.TimeoutExpired: the tool ran longer than TOOL_TIMEOUT_S.
    """
    return subprocess.run(
        java(*TOOL_JVM_OPTIONS, TOOLS[name], *arguments, classes=classes),
        check=check,
        capture_output=True,
        text=True,
        timeout=TOOL_TIMEOUT_S,
        input=standard_input,
    )


def start(
    home: Path,
    properties: Mapping[str, str] | None = None,
    port: int | None = None,
    classes: Path | None = None,
    listeners: Sequence[str] = (),
    jvm_options: Sequence[str] = (),
) -> Broker:
    """Start Kafka on ``home/data``, formatted if it is new, with ``classes`` on its class path if given.

    Returns once it responds. ``listeners`` are additional ones, as NAME://HOST:PORT; ``jvm_options`` as well.
    Its settings are in ``home/server.properties``, its log in ``home/kafka.log``.
    """
    data_dir = home / "data"
    data_dir.mkdir(parents=True, exist_ok=True)
    broker_port, controller_port = free_ports(2)
    bootstrap = f"127.0.0.1:{port or broker_port}"
    config = home / "server.properties"
    settings = _settings(data_dir, bootstrap, controller_port, listeners) | dict(properties or {})
    write_properties(config, settings)
    if not (data_dir / "meta.properties").exists():
        options = ("--standalone", "--cluster-id", new_cluster_id(), "--config", config)
        tool("kafka-storage", "format", *options, classes=classes)
    options = (*SERVER_JVM_OPTIONS, *jvm_options)
    command = java(*options, "kafka.Kafka", config, log4j="log4j2.properties", classes=classes)
    return launch("kafka", command, bootstrap, data_dir, home / "kafka.log")


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    """Write a file of Kafka's settings."""
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))


def new_cluster_id() -> str:
    """Return an id like `kafka-storage random-uuid`, which takes a second; none begins with a dash."""
    return base64.urlsafe_b64encode(b"\0" + os.urandom(15)).decode().rstrip("=")


def _settings(
    data_dir: Path, bootstrap: str, controller_port: int, listeners: Sequence[str]
) -> dict[str, str]:
    controller = f"127.0.0.1:{controller_port}"
    return SERVER_PROPERTIES | {
        "listeners": ",".join([f"PLAINTEXT://{bootstrap}", f"CONTROLLER://{controller}", *listeners]),
        "controller.quorum.bootstrap.servers": controller,
        "log.dirs": str(data_dir),
    }


@contextlib.contextmanager
def kafka(
    properties: Mapping[str, str] | None = None, port: int | None = None, classes: Path | None = None
) -> Iterator[Broker]:
    """Run Apache Kafka on a free port (or ``port``) in a directory that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="kafka-") as home:
        broker = start(Path(home), properties, port, classes)
        try:
            yield broker
        finally:
            broker.stop()


def main() -> int:
    """Run the command line; see the module's docstring."""
    options = _arguments()
    if options.command == "fetch":
        print(fetch())
        return 0
    if options.command == "tool":
        fetch()
        command = java(*TOOL_JVM_OPTIONS, TOOLS[options.name], *options.arguments)
        os.execvp(command[0], command)
    return _serve(options.home, options.port, dict(pair.split("=", 1) for pair in options.set))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m interop.reference", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch", help="bring Kafka's jars into the cache")
    serve = commands.add_parser("serve", help="run Kafka until interrupted")
    serve.add_argument("--port", type=int, help="default: a free port")
    serve.add_argument(
        "--home", type=Path, help="for data, settings and log; default: one removed afterwards"
    )
    serve.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a broker setting")
    run = commands.add_parser("tool", help="run one of Kafka's tools")
    run.add_argument("name", choices=sorted(TOOLS))
    run.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser.parse_args()


def _serve(home: Path | None, port: int | None, properties: Mapping[str, str]) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.ExitStack() as stack:
        if home is None:
            broker = stack.enter_context(kafka(properties, port))
        else:
            broker = start(home.resolve(), properties, port)
            stack.callback(broker.stop)
        print(f"bootstrap={broker.bootstrap} pid={broker.pid} data_dir={broker.data_dir}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            return broker.process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
