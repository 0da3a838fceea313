"""Waiting for what was told to a cluster: until it shows, and not for ever."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from barnabas.client.admin.admin import Admin
from barnabas.client.core.retry import Retry
from barnabas.console.wait_visible import wait_until_applied, wait_until_visible
from barnabas.declared.state import Credential, DeclaredState
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.scram import ScramMechanism

SCRAM = ScramMechanism.SCRAM_SHA_256
CAROL = DeclaredState(users={"carol": {SCRAM: Credential()}})


class Late:
    """A cluster, and what can be asked of it: the user is there at the n-th look, or none may look."""

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


def test_what_shows_at_once_is_not_waited_for() -> None:
    late = Late(at_look=1)
    assert (looks(late), late.slept) == (1, [])


def test_what_shows_later_is_looked_at_again() -> None:
    late = Late(at_look=3)
    assert looks(late) == 3
    assert len(late.slept) == 2


def test_what_never_shows_is_given_up() -> None:
    late = Late(at_look=100)
    assert looks(late) == 6
    assert 1 < sum(late.slept) < 3


def test_who_may_not_look_does_not_wait() -> None:
    late = Late(1, KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no"))
    assert (looks(late), late.slept) == (1, [])


def test_what_is_removed_is_waited_for_too() -> None:
    late = Late(at_look=1)
    asyncio.run(wait_until_visible(cast("Admin", late), CAROL, lambda live: "carol" not in live.users))
    assert late.looks == 6
