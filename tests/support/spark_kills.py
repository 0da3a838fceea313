"""A Spark stream from topic to topic whose processes are killed: each input must be written once."""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from confluent_kafka.admin import AdminClient, NewTopic

from support.spark_stream import StreamProcess, wait_until_it_runs

#: How often each victim is killed.
ROUNDS = int(os.environ.get("SPARK_ROUNDS", "1"))
SEED = int(os.environ.get("SPARK_SEED", "1"))
INPUTS_PER_ROUND = 900
INPUTS_PER_SECOND = 150
PARTITIONS_COUNT = 3
WAIT_S = 120
WAIT_FOR_EACH_KILL_S = 10
PAUSE_S = 0.2
BARNABAS = [sys.executable, "-m", "barnabas"]
#: Settings of a broker: few partitions of internal topics are created faster on first use.
PROPERTIES = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}


class KillableBroker(Protocol):
    """A broker that can be killed."""

    @property
    def bootstrap(self) -> str:
        """HOST:PORT."""
        ...

    def kill(self) -> object:
        """SIGKILL."""
        ...


class KillTest:
    """A broker and a stream, which are killed and restarted."""

    def __init__(
        self,
        home: Path,
        master: str,
        start_broker: Callable[[int | None], KillableBroker],
        kill_executor: Callable[[], bool] = lambda: False,
    ) -> None:
        """`start_broker` receives a port, or None for any; it starts on the same data each time."""
        self.home, self.master = home, master
        self.rng = random.Random(SEED)
        self.kills: list[str] = []
        self.starts_count = 0
        self._start_broker = start_broker
        self._kill_executor = kill_executor
        self.broker = start_broker(None)
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        topics = [NewTopic(name, PARTITIONS_COUNT, 1) for name in ("in", "out")]
        for made in admin.create_topics(topics).values():
            made.result()
        self.stream = self._start_stream()

    def run(self, victims: Sequence[str], rounds: int) -> None:
        """Kill each victim in turn while inputs arrive; fail unless read_committed sees each input once."""
        began_s = time.monotonic()
        for victim in list(victims) * rounds:
            producing = self._produce()
            self._kill(victim)
            if (
                self._wait_while_restarting(producing) != 0
            ):  # the broker was killed before the producer had connected
                assert self._wait_while_restarting(self._produce()) == 0, self._tail("inputs.log")
        assert self.kills == list(victims) * rounds, f"{self.kills}; {self._tail('stream.log')}"
        wait_s = WAIT_S + WAIT_FOR_EACH_KILL_S * len(self.kills)
        command = ["check", "in", "out", "--wait", str(wait_s)]
        checking = self._verify("check.log", command)
        assert self._wait_while_restarting(checking, 2 * wait_s) == 0, self._tail("check.log") + self._tail(
            "stream.log"
        )
        minutes = round((time.monotonic() - began_s) / 60)
        counts = ", ".join(f"{victim} {count} times" for victim, count in Counter(self.kills).items())
        print(f"seed {SEED}, {minutes} minutes: killed {counts}; {self.starts_count} drivers started")
        print(self._tail("check.log"))

    def stop(self) -> None:
        """End all processes."""
        self.stream.end()
        self.broker.kill()

    def _start_stream(self) -> StreamProcess:
        self.starts_count += 1
        log = self.home / "stream.log"
        before = log.stat().st_size if log.exists() else 0
        stream = StreamProcess(self.master, self.broker.bootstrap, "in", "out", self.home / "checkpoint", log)
        wait_until_it_runs(stream, before)
        return stream

    def _produce(self) -> subprocess.Popen[bytes]:
        sizes = ["--count", str(INPUTS_PER_ROUND), "--rate", str(INPUTS_PER_SECOND)]
        return self._verify("inputs.log", ["produce", "in", *sizes])

    def _verify(self, name: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        with (self.home / name).open("ab") as log:
            return subprocess.Popen(
                [*BARNABAS, "verify-eos", *arguments, "--bootstrap", self.broker.bootstrap],
                stdout=log,
                stderr=log,
            )

    def _kill(self, victim: str) -> None:
        """Kill a victim at a random time."""
        end_s = time.monotonic() + 20
        time.sleep(self.rng.uniform(0.5, 5))
        if victim == "broker":
            port = int(self.broker.bootstrap.rpartition(":")[2])
            self.broker.kill()
            time.sleep(self.rng.uniform(0, 1))
            self.broker = self._start_broker(port)
            self.kills.append(victim)
            return
        kill_functions = {
            "driver": self.stream.kill_driver,
            "worker": self.stream.kill_worker,
            "executor": self._kill_executor,
        }
        while self.stream.runs and time.monotonic() < end_s:
            if kill_functions[victim]():
                self.kills.append(victim)
                break

    def _wait_while_restarting(self, process: subprocess.Popen[bytes], timeout_s: float = 2 * WAIT_S) -> int:
        """Wait for a process and return its exit code; restart the stream whenever it ends."""
        end_s = time.monotonic() + timeout_s
        while process.poll() is None and time.monotonic() < end_s:
            if not self.stream.runs:
                self.stream = self._start_stream()
            time.sleep(PAUSE_S)
        process.kill()
        return process.wait()

    def _tail(self, name: str) -> str:
        return (self.home / name).read_text(errors="replace")[-4000:]
