"""Which classes are tests with a broker."""

from interop.kafka_tests.classfiles import ClassFile
from interop.kafka_tests.scan import QUORUM_HARNESS, TEST_KIT, broker_tests

CLUSTER = "Lorg/apache/kafka/common/test/api/ClusterTest;"
TEST = "Lorg/junit/jupiter/api/Test;"


def class_(name: str, *texts: str, parent: str = "java.lang.Object", abstract: bool = False) -> ClassFile:
    return ClassFile(name, parent, abstract, frozenset(texts))


def test_annotated_methods_make_a_class_one_of_a_cluster() -> None:
    assert broker_tests([class_("A", CLUSTER)]) == {"A": "cluster"}


def test_subclasses_of_the_quorum_harness_are_found_through_their_parents() -> None:
    base = class_("Base", parent=QUORUM_HARNESS, abstract=True)
    assert broker_tests([base, class_("A", TEST, parent="Base")]) == {"A": "quorum"}


def test_tests_may_be_inherited() -> None:
    base = class_("Base", TEST, parent=QUORUM_HARNESS, abstract=True)
    assert broker_tests([base, class_("A", parent="Base")]) == {"A": "quorum"}


def test_a_class_that_starts_a_cluster_by_hand_is_found() -> None:
    assert broker_tests([class_("A", TEST, TEST_KIT)]) == {"A": "kit"}


def test_unit_tests_and_helpers_are_not_found() -> None:
    assert broker_tests([class_("Unit", TEST), class_("Helper", parent=QUORUM_HARNESS)]) == {}
