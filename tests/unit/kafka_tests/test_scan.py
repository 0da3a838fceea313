"""Finding test classes that need a broker."""

from interop.kafka_tests.classfiles import ClassFile
from interop.kafka_tests.scan import QUORUM_HARNESS, TEST_KIT, broker_tests

CLUSTER = "Lorg/apache/kafka/common/test/api/ClusterTest;"
TEST = "Lorg/junit/jupiter/api/Test;"


def class_(name: str, *texts: str, parent: str = "java.lang.Object", abstract: bool = False) -> ClassFile:
    return ClassFile(name, parent, abstract, frozenset(texts))


def test_annotated_methods_mark_a_cluster_test() -> None:
    assert broker_tests([class_("A", CLUSTER)]) == {"A": "cluster"}


def test_subclasses_of_the_quorum_harness_are_found_through_their_parents() -> None:
    base = class_("Base", parent=QUORUM_HARNESS, abstract=True)
    assert broker_tests([base, class_("A", TEST, parent="Base")]) == {"A": "quorum"}


def test_inherited_tests_are_found() -> None:
    base = class_("Base", TEST, parent=QUORUM_HARNESS, abstract=True)
    assert broker_tests([base, class_("A", parent="Base")]) == {"A": "quorum"}


def test_a_class_that_starts_a_cluster_itself_is_found() -> None:
    assert broker_tests([class_("A", TEST, TEST_KIT)]) == {"A": "kit"}


def test_unit_tests_and_helpers_are_skipped() -> None:
    assert broker_tests([class_("Unit", TEST), class_("Helper", parent=QUORUM_HARNESS)]) == {}
