"""Hadoop's YARN in one process, fetched by Maven."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from interop import maven

HERE = Path(__file__).resolve().parent
POM = HERE / "yarn" / "pom.xml"
JARS = HERE / ".cache" / "yarn"
PROGRAM = HERE / "yarn" / "YarnCluster.java"
STOPS_WITHIN_S = 60


def fetch() -> Path:
    """Fetch YARN's jars into the cache; return their directory."""
    return maven.jars(POM, JARS)


@contextmanager
def running(home: Path) -> Iterator[Path]:
    """Run a resource manager and two node managers; return the directory for HADOOP_CONF_DIR.

    Raises:
        RuntimeError: It did not start.
    """
    conf = home / "yarn"
    conf.mkdir()
    command = ["java", "-Xmx400m", "-cp", f"{fetch()}/*", str(PROGRAM), str(conf)]
    with (home / "yarn.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=home
        )
    assert process.stdin
    assert process.stdout
    try:
        if not any(line.strip() == "YARN runs" for line in process.stdout):
            raise RuntimeError((home / "yarn.log").read_text(errors="replace")[-4000:])
        yield conf
    finally:
        process.stdin.close()
        try:
            process.wait(STOPS_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
