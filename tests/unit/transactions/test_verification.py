from typing import Any

from barnabas.base.ids import TopicPartition
from barnabas.transactions.verification import CoordinatorVerifier
from barnabas.wire.errors import ErrorCode
from support.loop import on_loop

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@on_loop
async def test_an_empty_transactional_id_has_no_transaction() -> None:
    no_transaction: Any = None
    verifier = CoordinatorVerifier(no_transaction, no_transaction)
    for adds in (False, True):
        found = await verifier.verify("", 5, 0, [T0, T1], adds=adds)
        assert found == {T0: ErrorCode.INVALID_REQUEST, T1: ErrorCode.INVALID_REQUEST}
