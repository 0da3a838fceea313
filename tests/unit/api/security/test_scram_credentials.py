"""Describe- and AlterUserScramCredentials through a node."""

from pathlib import Path

from barnabas.client.admin.acls import acl_creation
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from support.acls import ALICE, AUTHORIZED, ROOT, allow_cluster
from support.loop import on_loop
from support.nodes import RunningNode, running_node

SECRET = b"what nobody may read again"
ADD = AlterUserScramCredentialsRequest(
    upsertions=[ScramCredentialUpsertion("bob", 1, 4096, b"salt", SECRET)],
    deletions=[ScramCredentialDeletion("nobody", 2)],
)


async def altered(running: RunningNode, request: AlterUserScramCredentialsRequest = ADD) -> dict[str, int]:
    response: AlterUserScramCredentialsResponse = await running.ask(request)
    return {result.user: result.error_code for result in response.results}


async def described(running: RunningNode, *users: str) -> DescribeUserScramCredentialsResponse:
    asked = [UserName(name=user) for user in users]
    response: DescribeUserScramCredentialsResponse = await running.ask(
        DescribeUserScramCredentialsRequest(users=asked)
    )
    return response


@on_loop
async def test_a_credential_is_set_described_and_deleted(tmp_path: Path) -> None:
    async with running_node(tmp_path) as running:
        assert await altered(running) == {"nobody": ErrorCode.RESOURCE_NOT_FOUND, "bob": ErrorCode.NONE}
        response = await described(running)
        [bob] = response.results
        assert (response.error_message, bob.error_message) == ("", "")
        assert [(info.mechanism, info.iterations) for info in bob.credential_infos] == [(1, 4096)]
        deletion = AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion("bob", 1)])
        assert await altered(running, deletion) == {"bob": ErrorCode.NONE}
        [bob] = (await described(running, "bob")).results
        assert (bob.error_code, bob.credential_infos) == (ErrorCode.RESOURCE_NOT_FOUND, [])
        assert bob.error_message == "Attempt to describe a user credential that does not exist: bob"


@on_loop
async def test_neither_passwords_nor_salted_passwords_are_stored(tmp_path: Path) -> None:
    async with running_node(tmp_path) as running:
        await altered(running)
        kept = b"".join(item.value for item in running.store.items.values())
        assert b"SCRAM-SHA-256" in kept
        assert SECRET not in kept


@on_loop
async def test_describing_and_altering_need_their_own_permission_on_the_cluster(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as running:
        running.connection.principal = ALICE
        assert (await described(running)).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert await altered(running) == {"nobody": refused, "bob": refused}
        for operation in (AclOperation.DESCRIBE, AclOperation.ALTER):
            running.connection.principal = ROOT
            await running.ask(CreateAclsRequest(creations=[acl_creation(allow_cluster(operation))]))
            running.connection.principal = ALICE
            assert (await described(running)).error_code == ErrorCode.NONE
            may_alter = operation is AclOperation.ALTER
            assert (await altered(running))["bob"] == (ErrorCode.NONE if may_alter else refused)
