"""Applications that transform a topic into another in transactions, and the check that each input has one output."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from interop import reference
from interop.clients import BINARIES, HERE

#: How each application is started; HOST:PORT INPUT OUTPUT GROUP follow.
APPLICATIONS: Mapping[str, Sequence[str | Path]] = {
    "java": reference.java(
        *reference.TOOL_JVM_OPTIONS,
        "barnabas.interop.Transform",
        classes=HERE / "java" / "target" / "classes",
    ),
    "confluent-kafka": (sys.executable, "-m", "interop.python.confluent_transform"),
    "franz-go": (BINARIES / "transform",),
}
#: After the last fault: a dead member's session times out, and its transaction is taken over.
WAIT_S = 60
VERIFY_EOS = (Path(sys.executable).with_name("barnabas"), "verify-eos")


@contextlib.contextmanager
def running(command: Sequence[str | Path], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program until the block ends."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(part) for part in command], cwd=HERE.parent, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class Transforming:
    """A running application, and the program that sends its inputs."""

    def __init__(
        self, bootstrap: str, topics: tuple[str, str], producer: subprocess.Popen[bytes], logs: Sequence[Path]
    ) -> None:
        self._bootstrap = bootstrap
        self._topics = topics
        self._producer = producer
        self._logs = logs

    def problems(self) -> str:
        """Wait for all outputs; return what is wrong with them, and the end of the logs. Empty if nothing is.

        Raises:
            subprocess.TimeoutExpired: the inputs are not all sent.
        """
        sent = self._producer.wait(WAIT_S)
        command = [*VERIFY_EOS, "check", *self._topics, "--wait", WAIT_S, "--bootstrap", self._bootstrap]
        checked = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True)
        if sent == 0 and checked.returncode == 0:
            return ""
        logs = [log.read_text(errors="replace")[-3000:] for log in self._logs]
        return "\n".join([checked.stdout, checked.stderr, *logs])


@contextlib.contextmanager
def transforming(
    bootstrap: str, application: str, topics: tuple[str, str], count: int, rate: int, directory: Path
) -> Iterator[Transforming]:
    """Send inputs to the first topic, and transform them into the second one, until the block ends."""
    inputs, outputs = topics
    logs = [directory / f"{inputs}.log", directory / f"{outputs}.log"]
    sending = [*VERIFY_EOS, "produce", inputs, "--count", count, "--rate", rate, "--bootstrap", bootstrap]
    app = [*APPLICATIONS[application], bootstrap, inputs, outputs, f"{outputs}-group"]
    with running(sending, logs[0]) as producer, running(app, logs[1]):
        yield Transforming(bootstrap, topics, producer, logs)
