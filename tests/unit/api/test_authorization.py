import pytest

from barnabas.api import authorization
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode


@pytest.mark.parametrize(
    ("resource_type", "code"),
    [
        (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (ResourceType.DELEGATION_TOKEN, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED),
    ],
)
def test_a_refusal_has_the_code_of_its_resource_type_and_says_what_is_needed(
    resource_type: ResourceType, code: ErrorCode
) -> None:
    error = authorization.refusal(AclOperation.ALTER, resource_type, "name")
    assert error.code is code
    assert "ALTER" in error.message
