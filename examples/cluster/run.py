"""Run three members of etcd and three brokers on this machine until Ctrl-C; see README.md.

python -m examples.cluster.run [--data data/cluster] [--broker-port 9092] [--etcd-port 12379] [--console 127.0.0.1:9404]
"""

import argparse
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from interop.install import install_etcd

from interop import etcd

COUNT = 3
RACKS = "abc"
#: A killed broker is replaced after this time; 9 s is the default.
SESSION_TIMEOUT_MS = 3000
RESTART_PAUSE_S = 5.0
LOOK_INTERVAL_S = 0.2
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0


class Broker:
    """A broker as a process, with its log in a file."""

    def __init__(self, number: int, options: argparse.Namespace, store: str) -> None:
        self.name = f"broker {number}"
        self.port = options.broker_port + number - 1
        self.log_path = options.data / f"broker-{number}.log"
        self._command = [
            str(Path(sys.executable).with_name("barnabas")),
            "serve",
            f"--data={options.data / f'broker-{number}'}",
            f"--listen=127.0.0.1:{self.port}",
            f"--store={store}",
            f"--node-id={number}",
            f"--rack={RACKS[number - 1]}",
            f"--set=broker.session.timeout.ms={SESSION_TIMEOUT_MS}",
            *([f"--set=barnabas.metrics.listener={options.console}"] if number == 1 else []),
        ]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def wait_until_ready(self) -> None:
        """Return once the broker accepts connections.

        Raises:
            RuntimeError: it does not; the message quotes its log.
        """
        end_s = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                if self.process is None or self.process.poll() is not None or time.monotonic() > end_s:
                    tail = "\n".join(self.log_path.read_text(errors="replace").splitlines()[-5:])
                    raise RuntimeError(f"{self.name} does not start; its last output:\n{tail}") from None
                time.sleep(LOOK_INTERVAL_S)
            else:
                return

    def stop(self) -> None:
        """Stop in order: its partitions get other leaders first."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="examples.cluster.run", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=Path, default=Path("data/cluster"), help="directory of all data and logs"
    )
    parser.add_argument("--broker-port", type=int, default=9092, help="port of the first broker")
    parser.add_argument("--etcd-port", type=int, default=12379, help="first of the nine ports of etcd")
    parser.add_argument("--console", default="127.0.0.1:9404", help="address of the console")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = options_of(arguments)
    install_etcd()
    options.data.mkdir(parents=True, exist_ok=True)
    members = etcd.plan(options.data, range(options.etcd_port, options.etcd_port + 3 * COUNT))
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    with ExitStack() as stack:
        stack.callback(etcd.stop, members)
        for member in members:
            member.start()
        etcd.wait_until_healthy(members)
        brokers = []
        for number, first in enumerate(members, start=1):
            others = [member for member in members if member is not first]
            brokers.append(Broker(number, options, etcd.url([first, *others])))
            stack.callback(brokers[-1].stop)
            brokers[-1].start()
            brokers[-1].wait_until_ready()
        print_help(options, members, brokers)
        keep_running([*members, *brokers], stopping)
        print("Stopping.", flush=True)
    return 0


def keep_running(parts: Sequence[etcd.Member | Broker], stopping: threading.Event) -> None:
    """Start processes again that have ended, some time later, until `stopping` is set."""
    ended_s: dict[str, float] = {}
    while not stopping.wait(LOOK_INTERVAL_S):
        for part in parts:
            if part.process is None or part.process.poll() is None:
                continue
            now_s = time.monotonic()
            if part.name not in ended_s:
                ended_s[part.name] = now_s
                print(f"{part.name} has ended; it starts again in {RESTART_PAUSE_S:.0f} s.", flush=True)
            elif now_s > ended_s[part.name] + RESTART_PAUSE_S:
                del ended_s[part.name]
                part.start()
                print(f"{part.name} starts again, process {part.process.pid}.", flush=True)


def print_help(
    options: argparse.Namespace, members: Sequence[etcd.Member], brokers: Sequence[Broker]
) -> None:
    bootstrap = ",".join(f"127.0.0.1:{broker.port}" for broker in brokers)
    processes = [*members, *brokers]
    pids = ", ".join(f"{part.name} {part.process.pid}" for part in processes if part.process is not None)
    command = Path(sys.executable).with_name("barnabas")
    print(f"Three brokers serve Kafka on {bootstrap}, data and logs in {options.data}.")
    print(f"Console: http://{options.console}/")
    print(f"Processes: {pids}")
    print("Try, in another terminal:")
    for line in (
        f"export BOOTSTRAP={bootstrap}",
        f"{command} topics create greetings --partitions 3 --replication-factor 3 --bootstrap $BOOTSTRAP",
        f"seq 1000 | {command} produce greetings --bootstrap $BOOTSTRAP",
        f"{command} topics describe greetings --bootstrap $BOOTSTRAP",
        "kill -9 PID    # of a broker, or of a member of etcd; it starts again some seconds later",
        f"{command} consume greetings --from-beginning --bootstrap $BOOTSTRAP",
    ):
        print(f"  {line}")
    print("Ctrl-C stops everything.", flush=True)


if __name__ == "__main__":
    sys.exit(main())
