from typing import Any

from barnabas.base.ids import TopicPartition
from barnabas.transactions.verification import CoordinatorVerifier
from barnabas.wire.errors import ErrorCode
from support.loop import on_loop

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@on_loop
async def test_no_transaction_has_an_empty_id() -> None:
    nobody: Any = None
    verifier = CoordinatorVerifier(nobody, nobody)
    for adds in (False, True):
        found = await verifier.verify("", 5, 0, [T0, T1], adds=adds)
        assert found == {T0: ErrorCode.INVALID_REQUEST, T1: ErrorCode.INVALID_REQUEST}
