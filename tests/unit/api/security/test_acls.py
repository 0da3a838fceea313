"""Describe-, Create- and DeleteAcls through a node."""

from pathlib import Path

import pytest

from barnabas.client.admin.acls import acl_creation
from barnabas.metadata.acls import acl_key
from barnabas.policy.policies import Policies, PolicySettings
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from barnabas.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from barnabas.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from barnabas.wire.schema import Message
from support.acls import ALICE, AUTHORIZED, ROOT, allow, allow_cluster, deny
from support.loop import on_loop
from support.memory_store import MemoryStore
from support.nodes import RunningNode, frame_of, running_node

READ, WRITE = AclOperation.READ, AclOperation.WRITE
ANY = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
EVERYTHING = {**ANY, "resource_name_filter": None, "principal_filter": None, "host_filter": None}


async def create(running: RunningNode, *bindings: AclBinding, version: int = 3) -> list[int]:
    request = CreateAclsRequest(creations=[acl_creation(binding) for binding in bindings])
    response: CreateAclsResponse = await running.ask(request, version)
    return [result.error_code for result in response.results]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_acls_are_created_described_and_deleted_in_every_version(tmp_path: Path, version: int) -> None:
    @on_loop
    async def test() -> None:
        async with running_node(tmp_path, **AUTHORIZED) as running:
            running.connection.principal = ROOT
            made = [
                allow(READ),
                deny(WRITE, host="10.0.0.1"),
                allow(READ, ResourceType.GROUP, "g-", pattern_type=PatternType.PREFIXED),
            ]
            assert await create(running, *made, version=version) == [0, 0, 0]
            described: DescribeAclsResponse = await running.ask(DescribeAclsRequest(**EVERYTHING), version)
            assert (described.error_code, described.error_message) == (ErrorCode.NONE, "")
            topic, group = described.resources
            assert (topic.resource_name, group.resource_name, group.pattern_type) == ("t", "g-", 4)
            assert [(acl.host, acl.permission_type) for acl in topic.acls] == [
                ("*", AclPermission.ALLOW),
                ("10.0.0.1", AclPermission.DENY),
            ]
            deletion = DeleteAclsRequest(
                filters=[DeleteAclsFilter(**{**EVERYTHING, "resource_type_filter": ResourceType.TOPIC})]
            )
            deleted: DeleteAclsResponse = await running.ask(deletion, version)
            (result,) = deleted.filter_results
            assert [(acl.resource_name, acl.operation) for acl in result.matching_acls] == [
                ("t", READ),
                ("t", WRITE),
            ]
            assert list(running.broker.image.acls) == [acl_key(made[2])]

    test()


@on_loop
async def test_an_invalid_acl_does_not_fail_others(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as running:
        running.connection.principal = ROOT
        codes = await create(running, allow(READ, name=""), allow(READ), allow(READ, principal="nobody"))
        assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
        assert list(running.broker.image.acls) == [acl_key(allow(READ))]


@on_loop
async def test_describing_needs_describe_and_changing_needs_alter_on_the_cluster(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as running:
        running.connection.principal = ALICE
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert await create(running, allow(READ), allow(WRITE)) == [refused, refused]
        described: DescribeAclsResponse = await running.ask(DescribeAclsRequest(**EVERYTHING))
        assert described.error_code == refused
        deletion = DeleteAclsRequest(filters=[DeleteAclsFilter(**EVERYTHING)])
        deleted: DeleteAclsResponse = await running.ask(deletion)
        assert [result.error_code for result in deleted.filter_results] == [refused]
        running.connection.principal = ROOT
        await create(running, allow_cluster(AclOperation.ALTER))
        running.connection.principal = ALICE
        assert await create(running, allow(READ)) == [ErrorCode.NONE]
        described = await running.ask(DescribeAclsRequest(**EVERYTHING))
        assert described.error_code == ErrorCode.NONE  # ALTER implies DESCRIBE
        assert len(described.resources) == 2


@on_loop
async def test_acls_apply_when_the_response_is_sent_and_survive_a_restart(tmp_path: Path) -> None:
    store = MemoryStore()
    async with running_node(tmp_path, store, **AUTHORIZED) as running:
        running.connection.principal = ROOT
        authorizer = running.broker.authorizer
        assert authorizer is not None
        assert not authorizer.known(ALICE, "h", READ, ResourceType.TOPIC, "t")
        await create(running, allow(READ))
        assert authorizer.known(ALICE, "h", READ, ResourceType.TOPIC, "t")
    async with running_node(tmp_path, store, **AUTHORIZED) as running:
        assert running.broker.authorizer is not None
        assert running.broker.authorizer.known(ALICE, "h", READ, ResourceType.TOPIC, "t")


@on_loop
async def test_without_an_authorizer_acls_are_security_disabled(tmp_path: Path) -> None:
    async with running_node(tmp_path) as running:
        assert await create(running, allow(READ)) == [ErrorCode.SECURITY_DISABLED]
        described: DescribeAclsResponse = await running.ask(DescribeAclsRequest(**EVERYTHING))
        assert described.error_code == ErrorCode.SECURITY_DISABLED
        assert "authorizer.class.name" in (described.error_message or "")
        deleted: DeleteAclsResponse = await running.ask(
            DeleteAclsRequest(filters=[DeleteAclsFilter(**EVERYTHING)])
        )
        assert [result.error_code for result in deleted.filter_results] == [ErrorCode.SECURITY_DISABLED]


@pytest.mark.parametrize(
    "request_",
    [
        DescribeAclsRequest(**{**EVERYTHING, "operation": 0}),
        DescribeAclsRequest(**{**EVERYTHING, "resource_type_filter": 0}),
        CreateAclsRequest(creations=[acl_creation(allow(READ)), AclCreation(permission_type=0)]),
        DeleteAclsRequest(filters=[DeleteAclsFilter(**{**EVERYTHING, "pattern_type_filter": 0})]),
    ],
)
def test_the_number_of_unknown_closes_the_connection(tmp_path: Path, request_: Message) -> None:
    @on_loop
    async def test() -> None:
        async with running_node(tmp_path, **AUTHORIZED) as running:
            running.connection.principal = ROOT
            context, request = running.dispatcher.parse(memoryview(frame_of(request_, 3)), running.connection)
            assert await running.dispatcher.respond(context, request) is None
            assert context.close_after
            assert not running.broker.image.acls

    test()


@pytest.mark.parametrize("field", ["resource_type", "pattern_type", "operation", "permission_type"])
@pytest.mark.parametrize("number", [-1, 99])
def test_unknown_numbers_match_no_acl_and_cannot_be_created(tmp_path: Path, field: str, number: int) -> None:
    @on_loop
    async def test() -> None:
        async with running_node(tmp_path, **AUTHORIZED) as running:
            running.connection.principal = ROOT
            assert await create(running, allow(READ)) == [0]
            odd = acl_creation(allow(WRITE))
            setattr(odd, {"pattern_type": "resource_pattern_type"}.get(field, field), number)
            made: CreateAclsResponse = await running.ask(CreateAclsRequest(creations=[odd]))
            assert [result.error_code for result in made.results] == [ErrorCode.INVALID_REQUEST]
            name = field if field in EVERYTHING else f"{field}_filter"
            described: DescribeAclsResponse = await running.ask(
                DescribeAclsRequest(**{**EVERYTHING, name: number})
            )
            assert (described.error_code, described.resources) == (ErrorCode.NONE, [])
            filters = [DeleteAclsFilter(**{**EVERYTHING, name: number}), DeleteAclsFilter(**EVERYTHING)]
            deleted: DeleteAclsResponse = await running.ask(DeleteAclsRequest(filters=filters))
            found = [(result.error_code, len(result.matching_acls)) for result in deleted.filter_results]
            assert found == [(ErrorCode.INVALID_REQUEST, 0), (ErrorCode.NONE, 1)]

    test()


def test_acls_on_protected_topics_can_be_neither_created_nor_deleted(tmp_path: Path) -> None:
    @on_loop
    async def test() -> None:
        file, data = tmp_path / "policies.yaml", tmp_path / "data"
        file.write_text("topics: [{prefix: t, protected: [alter_acls]}]")
        data.mkdir()
        async with running_node(data, **AUTHORIZED) as running:
            running.connection.principal = ROOT
            assert await create(running, allow(READ)) == [ErrorCode.NONE]
            running.broker.policies = Policies(PolicySettings(file=file))
            await running.broker.policies.load()
            assert await create(running, allow(WRITE), allow(READ, name="u")) == [
                ErrorCode.POLICY_VIOLATION,
                0,
            ]
            deletion = DeleteAclsRequest(filters=[DeleteAclsFilter(**EVERYTHING)])
            deleted: DeleteAclsResponse = await running.ask(deletion)
            assert [
                (acl.resource_name, acl.error_code, bool(acl.error_message))
                for acl in deleted.filter_results[0].matching_acls
            ] == [("t", ErrorCode.POLICY_VIOLATION, True), ("u", ErrorCode.NONE, False)]
            assert list(running.broker.image.acls.values()) == [allow(READ)]

    test()
