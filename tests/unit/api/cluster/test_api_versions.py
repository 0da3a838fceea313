from pathlib import Path

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from support.loop import on_loop
from support.nodes import running_node


@pytest.mark.parametrize("name", ["", "-lib", "lib-", "a lib", "lib/1", "ünicode"])
@pytest.mark.parametrize("version", [0, 2, 3, 4])
def test_software_that_is_no_word_is_refused_where_it_is_told(
    tmp_path: Path, name: str, version: int
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            request = ApiVersionsRequest(client_software_name=name, client_software_version="1.0")
            answer = await node.ask(request, version)
            assert answer.error_code == (ErrorCode.INVALID_REQUEST if version >= 3 else ErrorCode.NONE)
            assert node.connection.client_software_name == "unknown"

    scenario()


@pytest.mark.parametrize("word", ["a", "apache-kafka-java", "2.8.1-rc.1", "0"])
def test_the_clients_software_is_remembered(tmp_path: Path, word: str) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            request = ApiVersionsRequest(client_software_name=word, client_software_version=word)
            assert (await node.ask(request)).error_code == 0
            assert node.connection.client_software_name == node.connection.client_software_version == word

    scenario()
