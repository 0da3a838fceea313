"""The classes of Kafka's test jars that start a broker, found by their class files."""

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from interop.kafka_tests.classfiles import ClassFile, parse

_API = "Lorg/apache/kafka/common/test/api/"
#: Annotations of a method that runs on a cluster of Kafka's harness.
CLUSTER_ANNOTATIONS = frozenset(
    f"{_API}{name};" for name in ("ClusterTest", "ClusterTests", "ClusterTemplate")
)
_TEST_ANNOTATIONS = frozenset(
    {
        "Lorg/junit/jupiter/api/Test;",
        "Lorg/junit/jupiter/api/TestTemplate;",
        "Lorg/junit/jupiter/params/ParameterizedTest;",
    }
)
#: The superclass of the tests of kafka_2.13 that start brokers themselves.
QUORUM_HARNESS = "kafka.server.QuorumTestHarness"
#: Starts a cluster by hand, without an annotation.
TEST_KIT = "org/apache/kafka/common/test/KafkaClusterTestKit"


def class_files(jars: Iterable[Path]) -> Iterator[ClassFile]:
    """Yield each class of the jars, including nested ones."""
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.endswith(".class"):
                    yield parse(archive.read(name))


def broker_tests(files: Iterable[ClassFile]) -> dict[str, str]:
    """Return how each class that is a test with a broker starts it: ``cluster`` or ``quorum``, by class name."""
    known = {each.name: each for each in files}
    found: dict[str, str] = {}
    for name, each in sorted(known.items()):
        ancestors = list(_ancestors(each, known))
        if each.abstract or not any(_has_tests(one) for one in ancestors):
            continue
        if any(CLUSTER_ANNOTATIONS & one.texts for one in ancestors):
            found[name] = "cluster"
        elif any(one.superclass == QUORUM_HARNESS for one in ancestors):
            found[name] = "quorum"
        elif TEST_KIT in each.texts:
            found[name] = "kit"
    return found


def _ancestors(one: ClassFile, known: Mapping[str, ClassFile]) -> Iterator[ClassFile]:
    current: ClassFile | None = one
    while current is not None:
        yield current
        current = known.get(current.superclass)


def _has_tests(one: ClassFile) -> bool:
    return bool((CLUSTER_ANNOTATIONS | _TEST_ANNOTATIONS) & one.texts)
