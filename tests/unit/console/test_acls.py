import pytest

from barnabas.console.forms import Form
from barnabas.console.pages.acls import binding_in, bindings_of, choices, written
from barnabas.console.problems import PageError
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType

ACL = AclBinding(
    ResourceType.TRANSACTIONAL_ID,
    "pay",
    PatternType.PREFIXED,
    "User:bob",
    "*",
    AclOperation.IDEMPOTENT_WRITE,
    AclPermission.DENY,
)


def test_an_acl_round_trips_through_a_form() -> None:
    assert binding_in(written(ACL)) == ACL


@pytest.mark.parametrize("text", ["", "topic", written(ACL) + "\tmore", written(ACL).replace("deny", "any")])
def test_an_invalid_acl_is_rejected(text: str) -> None:
    with pytest.raises(PageError):
        binding_in(text)


def test_filter_only_values_are_not_offered() -> None:
    assert choices(PatternType) == ["literal", "prefixed"]
    assert choices(AclPermission) == ["deny", "allow"]
    assert not {"any", "unknown"} & {*choices(AclOperation), *choices(ResourceType)}


def test_a_form_creates_an_acl_for_each_operation() -> None:
    fields = {
        "principal": ["bob"],
        "operation": ["idempotent-write"],
        "resource_type": ["transactional-id"],
        "resource_name": ["pay"],
        "pattern_type": ["prefixed"],
        "permission": ["deny"],
    }
    form = Form(fields)
    assert (bindings_of(form), form.errors) == ([ACL], {})
    both = bindings_of(Form({**fields, "operation": ["read", "write"]}))
    assert [each.operation for each in both] == [AclOperation.READ, AclOperation.WRITE]


def test_the_cluster_needs_no_name() -> None:
    form = Form({"principal": ["bob"], "operation": ["alter"], "resource_type": ["cluster"]})
    [binding] = bindings_of(form)
    assert (binding.resource_name, form.errors) == ("kafka-cluster", {})
