"""Kafka's test jars with our harness before them: built once, then a JVM for each class."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from interop import maven
from interop.kafka_tests import scan
from interop.kafka_tests.results import CLASS_ENDED, INTERRUPTED, ClassRun, read

HERE = Path(__file__).resolve().parent
JAVA = HERE / "java"
BUILD = HERE / "build"
JARS = BUILD / "jars"
#: The replacements for classes of Kafka's, and the program that runs tests.
HARNESS_JAR = BUILD / "harness.jar"
#: That program alone, for Kafka's own harness.
RUNNER_JAR = BUILD / "runner.jar"
#: Archive of loaded classes, so that the next JVM starts faster.
ARCHIVE = BUILD / "classes.jsa"
ARCHIVED_CLASS = "kafka.server.HeartbeatRequestTest"
#: Private keys of tests with TLS.
KEYS = BUILD / "keys"
PROGRAM = Path(sys.executable).with_name("barnabas")

#: A JVM starts fastest with a small heap, one compiler and one collector.
JVM_OPTIONS = ["-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
ARCHIVE_OPTIONS = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+AllowArchivingWithJavaAgent"]
SHARED = [*ARCHIVE_OPTIONS, f"-XX:SharedArchiveFile={ARCHIVE}"]
TEST_S = 120
CLASS_S = 1800.0
STOP_S = 30.0


def build() -> None:
    """Fetch Kafka's jars and compile the harness, unless both exist and are newer than their sources.

    :raises subprocess.CalledProcessError: Maven or the compiler failed, and has printed why.
    """
    fetch()
    sources = [HERE / "pom.xml", *(path for path in JAVA.rglob("*") if path.is_file())]
    newest_s = max(path.stat().st_mtime for path in sources)
    if ARCHIVE.exists() and HARNESS_JAR.stat().st_mtime > newest_s:
        return
    ARCHIVE.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as name:
        classes = Path(name)
        for folder in ("META-INF", "mockito-extensions"):
            shutil.copytree(JAVA / folder, classes / folder)
        shutil.copy(JAVA / "log4j2.properties", classes)
        java = [path for path in sources if path.suffix == ".java"]
        subprocess.run(["javac", "-nowarn", "-d", classes, "-cp", f"{JARS}/*", *java], check=True)
        manifest = JAVA / "META-INF" / "MANIFEST.MF"
        subprocess.run(["jar", "cfm", HARNESS_JAR, manifest, "-C", classes, "."], check=True)
        subprocess.run(
            [
                "jar",
                "cf",
                RUNNER_JAR,
                *_inside(classes, "barnabas", "META-INF/services", "log4j2.properties"),
            ],
            check=True,
        )
    _archive()


def _inside(directory: Path, *names: str) -> list[str]:
    return [part for name in names for part in ("-C", str(directory), name)]


def _archive() -> None:
    """Run a class and archive what the JVM has loaded by then."""
    with tempfile.TemporaryDirectory() as name:
        harness = Harness("barnabas", Path(name))
        harness.run(ARCHIVED_CLASS, options=[*ARCHIVE_OPTIONS, f"-XX:ArchiveClassesAtExit={ARCHIVE}"])


def fetch() -> None:
    """Fetch Kafka and its test jars with Maven, unless they exist.

    :raises subprocess.CalledProcessError: Maven failed, and has printed why.
    """
    maven.jars(HERE / "pom.xml", JARS)


def broker_classes() -> list[str]:
    """Return the names of the classes in the test jars that start a broker."""
    return list(scan.broker_tests(scan.class_files(sorted(JARS.glob("kafka*-test.jar")))))


@dataclass(frozen=True, slots=True)
class Harness:
    """The kind of broker that the tests start, and the directory of their results."""

    broker: str  #: barnabas or kafka
    directory: Path
    #: Whether a test gets as many brokers of Barnabas as it requests; otherwise it gets one.
    several: bool = field(default=False, kw_only=True)

    def results_path(self, class_name: str) -> Path:
        """Return the file of a class's results."""
        return self.directory / f"{class_name}.jsonl"

    def results(self, class_name: str) -> ClassRun:
        """Return the results of a class so far."""
        path = self.results_path(class_name)
        return read(path.read_text(encoding="utf-8").splitlines()) if path.exists() else ClassRun()

    def run(self, class_name: str, limit_s: float = CLASS_S, options: Sequence[str] = ()) -> ClassRun:
        """Run the incomplete tests of a class, and return the results of all."""
        (self.directory / "output").mkdir(parents=True, exist_ok=True)
        done = self.directory / "output" / f"{class_name}.done"
        done.write_text("\n".join(self.results(class_name).done), encoding="utf-8")
        command = self._command(class_name, done, options or SHARED)
        with (self.directory / "output" / f"{class_name}.txt").open("ab") as output:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            try:
                ended = process.wait(limit_s) == 0
            except subprocess.TimeoutExpired:
                ended = False
                if limit_s < CLASS_S:
                    self._append(class_name, INTERRUPTED)
            finally:
                _stop(process)
        if ended:
            self._append(class_name, CLASS_ENDED)
        return self.results(class_name)

    def _command(self, class_name: str, done: Path, options: Sequence[str]) -> list[str | Path]:
        java = ["java", *JVM_OPTIONS, f"-Dtest.seconds={TEST_S}"]
        jar = RUNNER_JAR
        if self.broker == "barnabas":
            jar = HARNESS_JAR
            java += [
                *options,
                f"-javaagent:{jar}",
                f"-Dbarnabas.program={PROGRAM}",
                f"-Dbarnabas.logs={self.directory / 'logs'}",
                f"-Dbarnabas.keys={KEYS}",
                f"-Dbarnabas.several={str(self.several).lower()}",
            ]
        arguments: list[str | Path] = ["barnabas.Runner", self.results_path(class_name), done, class_name]
        return [*java, "-cp", f"{jar}:{JARS}/*", *arguments]

    def _append(self, class_name: str, status: str) -> None:
        with self.results_path(class_name).open("a", encoding="utf-8") as file:
            file.write(f'\n{{"status": "{status}"}}\n')


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a JVM like SIGTERM, so that it stops its brokers."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
