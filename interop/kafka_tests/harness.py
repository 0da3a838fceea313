"""Kafka's test jars with the harness of ours before them: built once, then a JVM for each class."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from interop import maven
from interop.kafka_tests import scan
from interop.kafka_tests.results import CLASS_ENDED, INTERRUPTED, ClassRun, read

HERE = Path(__file__).resolve().parent
BUILD = HERE / "build"
JARS = BUILD / "jars"
CLASSES = BUILD / "classes"
#: The launcher without the stand-ins, for Kafka's own harness.
LAUNCHER = BUILD / "launcher"
PROGRAM = Path(sys.executable).with_name("barnabas")

#: A small heap, one compiler and one collector start a JVM soonest.
JVM_OPTIONS = ["-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
TEST_S = 60
CLASS_S = 1800.0


def build() -> None:
    """Fetch Kafka's jars and compile the harness, unless both are there and newer than their sources.

    :raises subprocess.CalledProcessError: Maven or the compiler failed, and has said why.
    """
    fetch()
    sources = sorted(path for path in (HERE / "java").rglob("*") if path.is_file())
    stamp = CLASSES / ".complete"
    if stamp.exists() and stamp.stat().st_mtime > max(path.stat().st_mtime for path in sources):
        return
    for directory in (CLASSES, LAUNCHER):
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(HERE / "java" / "META-INF", directory / "META-INF")
        shutil.copy(HERE / "java" / "log4j2.properties", directory)
    java = [path for path in sources if path.suffix == ".java"]
    subprocess.run(["javac", "-nowarn", "-d", CLASSES, "-cp", f"{JARS}/*", *java], check=True)
    shutil.copytree(CLASSES / "barnabas", LAUNCHER / "barnabas")
    stamp.touch()


def fetch() -> None:
    """Fetch Kafka and its test jars with Maven, unless they are there.

    :raises subprocess.CalledProcessError: Maven failed, and has said why.
    """
    maven.jars(HERE / "pom.xml", JARS)


def broker_classes() -> list[str]:
    """Return the names of the classes in the test jars that start a broker."""
    return list(scan.broker_tests(scan.class_files(sorted(JARS.glob("kafka*-test.jar")))))


@dataclass(frozen=True, slots=True)
class Harness:
    """Which broker the tests start, and where their results are kept."""

    broker: str  #: barnabas or kafka
    directory: Path

    def results_path(self, class_name: str) -> Path:
        """Return the file of a class's results."""
        return self.directory / f"{class_name}.jsonl"

    def results(self, class_name: str) -> ClassRun:
        """Return what is known of a class."""
        path = self.results_path(class_name)
        return read(path.read_text(encoding="utf-8").splitlines()) if path.exists() else ClassRun()

    def run(self, class_name: str, limit_s: float = CLASS_S) -> ClassRun:
        """Run those tests of a class that are not done, and return the results of all."""
        (self.directory / "output").mkdir(parents=True, exist_ok=True)
        done = self.directory / "output" / f"{class_name}.done"
        done.write_text("\n".join(self.results(class_name).done), encoding="utf-8")
        with (self.directory / "output" / f"{class_name}.txt").open("ab") as output:
            try:
                process = subprocess.run(
                    self._command(class_name, done),
                    stdout=output,
                    stderr=output,
                    timeout=limit_s,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                if limit_s < CLASS_S:
                    self._append(class_name, INTERRUPTED)
                return self.results(class_name)
        if process.returncode == 0:
            self._append(class_name, CLASS_ENDED)
        return self.results(class_name)

    def _command(self, class_name: str, done: Path) -> list[str | Path]:
        logs = self.directory / "logs"
        properties = [f"-Dbarnabas.program={PROGRAM}", f"-Dbarnabas.logs={logs}", f"-Dtest.seconds={TEST_S}"]
        if self.broker == "kafka":
            properties.append("-Dharness.kafka=true")
        class_path = f"{LAUNCHER if self.broker == 'kafka' else CLASSES}:{JARS}/*"
        arguments: list[str | Path] = ["barnabas.Runner", self.results_path(class_name), done, class_name]
        return ["java", *JVM_OPTIONS, *properties, "-cp", class_path, *arguments]

    def _append(self, class_name: str, status: str) -> None:
        with self.results_path(class_name).open("a", encoding="utf-8") as file:
            file.write(f'\n{{"status": "{status}"}}\n')
