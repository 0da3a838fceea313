"""Waiting until a change of the cluster is visible, up to a timeout."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from barnabas.client.admin.admin import Admin
from barnabas.client.core.retry import Retry
from barnabas.console.wait_visible import wait_until_applied, wait_until_visible
from barnabas.declared.state import ClusterState, Credential
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.scram import ScramMechanism

SCRAM = ScramMechanism.SCRAM_SHA_256
CAROL = ClusterState(users={"carol": {SCRAM: Credential()}})


class Late:
    """A fake cluster: the user is visible at the n-th call, or no call is authorized."""

    def __init__(self, at_look: int, refusal: KafkaError | None = None) -> None:
        self.looks = 0
        self.slept: list[float] = []
        self.retry = Retry(sleep=self._sleep)
        self.cluster = self
        self._at_look, self._refusal = at_look, refusal

    async def _sleep(self, pause_s: float) -> None:
        self.slept.append(pause_s)

    async def describe_user_scram_credentials(self) -> Mapping[str, Any]:
        self.looks += 1
        if self._refusal is not None:
            raise self._refusal
        return {"carol": {SCRAM: 4096}} if self.looks >= self._at_look else {}


def looks(late: Late) -> int:
    asyncio.run(wait_until_applied(cast("Admin", late), CAROL))
    return late.looks


def test_an_immediately_visible_change_is_not_awaited() -> None:
    late = Late(at_look=1)
    assert (looks(late), late.slept) == (1, [])


def test_a_change_that_is_visible_later_is_polled() -> None:
    late = Late(at_look=3)
    assert looks(late) == 3
    assert len(late.slept) == 2


def test_a_change_that_never_becomes_visible_times_out() -> None:
    late = Late(at_look=100)
    assert looks(late) == 6
    assert 1 < sum(late.slept) < 3


def test_without_describe_permission_there_is_no_wait() -> None:
    late = Late(1, KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no"))
    assert (looks(late), late.slept) == (1, [])


def test_a_removal_is_awaited() -> None:
    late = Late(at_look=1)
    asyncio.run(wait_until_visible(cast("Admin", late), CAROL, lambda live: "carol" not in live.users))
    assert late.looks == 6
