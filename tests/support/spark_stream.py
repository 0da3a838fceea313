"""A Spark application of its own: copies one topic to another until it is killed.

python -m support.spark_stream HOST:PORT INPUT OUTPUT CHECKPOINT
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from support.spark import running_session, worker_environment

ROOT = Path(__file__).resolve().parents[2]
#: A task may fail three times: its Python worker may be killed.
MASTER = "local[2,4]"
ROWS_PER_BATCH = 200


def main(bootstrap: str, source: str, sink: str, checkpoint: str) -> None:
    """Copy values, each to the partition that it came from."""
    with running_session({"spark.driver.memory": "700m"}, MASTER) as spark:
        rows = (
            spark.readStream.format("barnabas")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", source)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", ROWS_PER_BATCH)
            .load()
        )
        query = (
            rows.select("value", "partition")
            .writeStream.format("barnabas")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", sink)
            .option("checkpointLocation", checkpoint)
            .start()
        )
        print("the query runs", flush=True)
        query.awaitTermination()


class StreamProcess:
    """The application as a process, with what it takes to kill parts of it."""

    def __init__(self, bootstrap: str, source: str, sink: str, checkpoint: Path, log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "support.spark_stream", bootstrap, source, sink, str(checkpoint)],
                cwd=ROOT,
                env=os.environ | worker_environment(),
                stdout=output,
                stderr=output,
            )

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def descendants(self, name: str) -> list[int]:
        """Processes below this one whose command line contains `name`, the deepest first."""
        return [pid for pid in reversed(list(_below(self.process.pid))) if name in _command(pid)]

    def kill_driver(self) -> bool:
        """SIGKILL to the JVM, and so to the application; False when there is none yet."""
        return self._kill("org.apache.spark.deploy.SparkSubmit")

    def kill_worker(self) -> bool:
        """SIGKILL to a Python worker; False when there is none at present."""
        return self._kill("pyspark.daemon") or self._kill("pyspark.worker")

    def _kill(self, name: str) -> bool:
        for pid in self.descendants(name):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            return True
        return False

    def end(self) -> None:
        """SIGKILL to all of it."""
        everybody = [self.process.pid, *_below(self.process.pid)]
        for pid in everybody:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait(30)


def _below(pid: int) -> Iterator[int]:
    children = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            children.append(int(place.parent.name))
    for child in children:
        yield child
        yield from _below(child)


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def wait_until_it_runs(stream: StreamProcess, after: int, timeout_s: float = 120) -> None:
    """Until the log that is `after` bytes long by now tells of a query that runs, or the process has ended."""
    end_s = time.monotonic() + timeout_s
    while stream.runs and time.monotonic() < end_s:
        if b"the query runs" in stream.log.read_bytes()[after:]:
            return
        time.sleep(0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
