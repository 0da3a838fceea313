from pathlib import Path

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from support.loop import on_loop
from support.nodes import running_node


@pytest.mark.parametrize("version", range(7))
@pytest.mark.parametrize(
    ("key_type", "code"), [(0, ErrorCode.COORDINATOR_NOT_AVAILABLE), (9, ErrorCode.INVALID_REQUEST)]
)
def test_there_is_no_coordinator_and_clients_are_told_so_for_each_key(
    tmp_path: Path, version: int, key_type: int, code: ErrorCode
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            request = FindCoordinatorRequest(key="g", key_type=key_type, coordinator_keys=["g", "h"])
            answer = await node.ask(request, version)
            if version >= 4:
                assert [(found.key, found.error_code) for found in answer.coordinators] == [
                    ("g", code),
                    ("h", code),
                ]
            else:
                expected = ErrorCode.COORDINATOR_NOT_AVAILABLE if version == 0 else code
                assert (answer.error_code, answer.node_id) == (expected, -1)

    scenario()
