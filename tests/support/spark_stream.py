"""A Spark application of its own that copies one topic to another until it is killed.

python -m support.spark_stream MASTER HOST:PORT INPUT OUTPUT CHECKPOINT
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from support.processes import below, descendants, kill, kill_one
from support.spark import ROOT, running_session, worker_environment

#: A task may fail three times, since its Python worker may be killed.
LOCAL = "local[2,4]"
#: A second's inputs are 150: a stream that was killed catches up, even on a busy machine.
ROWS_PER_BATCH = 1_000
SETTINGS = {"spark.driver.memory": "700m", "spark.executor.memory": "512m", "spark.cores.max": "2"}


def main(master: str, bootstrap: str, source: str, sink: str, checkpoint: str) -> None:
    """Copy values, each to the partition that it came from."""
    paths = {"spark.executorEnv.PYTHONPATH": worker_environment()["PYTHONPATH"]}
    with running_session({**SETTINGS, **paths}, master) as spark:
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
    """The application's process, with methods that kill parts of it."""

    def __init__(
        self, master: str, bootstrap: str, source: str, sink: str, checkpoint: Path, log: Path
    ) -> None:
        self.log = log
        arguments = [master, bootstrap, source, sink, str(checkpoint)]
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "support.spark_stream", *arguments],
                cwd=ROOT,
                env=os.environ | worker_environment(),
                stdout=output,
                stderr=output,
            )

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def kill_driver(self) -> bool:
        """Send SIGKILL to the JVM, which ends the application; return False if there is none yet."""
        return self._kill("org.apache.spark.deploy.SparkSubmit")

    def kill_worker(self) -> bool:
        """Send SIGKILL to a Python worker on the driver's machine; return False if there is none at present."""
        return self._kill("pyspark.daemon") or self._kill("pyspark.worker")

    def _kill(self, name: str) -> bool:
        return kill_one(descendants(self.process.pid, name))

    def end(self) -> None:
        """Send SIGKILL to all processes."""
        for pid in [self.process.pid, *below(self.process.pid)]:
            kill(pid)
        self.process.wait(30)


def wait_until_it_runs(stream: StreamProcess, after: int, timeout_s: float = 120) -> None:
    """Wait until the log, beyond its first `after` bytes, reports a running query, or the process has ended."""
    end_s = time.monotonic() + timeout_s
    while stream.runs and time.monotonic() < end_s:
        if b"the query runs" in stream.log.read_bytes()[after:]:
            return
        time.sleep(0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
