"""Requests about delegation tokens of users of whom only one is "mine"."""

from typing import Any

from barnabas.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from barnabas.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from barnabas.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from differential.permission_cases_of_groups import Case
from differential.symbols import Hmac
from differential.world import World

OWNERS = ("mine-owner", "other-owner")
_MINES: Any = Hmac(0)


def create_request(owner: str | None = None, *, is_valid: bool = True) -> CreateDelegationTokenRequest:
    """Build a request, which is refused if it is not valid: Kafka takes long for each new token."""
    renewers = [] if is_valid else [CreatableRenewers("Group", "staff")]
    return CreateDelegationTokenRequest("User" if owner else None, owner, renewers, max_lifetime_ms=-1)


def create_tokens(world: World) -> None:
    """Create a token for each owner."""
    for owner in OWNERS:
        assert world.exchange(create_request(owner), 3) == []


#: The first cases describe the tokens before others are created.
TOKEN_CASES: dict[str, Case] = {
    "DescribeDelegationToken": Case(DescribeDelegationTokenRequest(owners=None), 3),
    "DescribeDelegationToken of owners": Case(
        DescribeDelegationTokenRequest([DescribeDelegationTokenOwner("User", owner) for owner in OWNERS]), 2
    ),
    "RenewDelegationToken": Case(RenewDelegationTokenRequest(hmac=_MINES, renew_period_ms=-1), 2),
    "RenewDelegationToken that is not there": Case(RenewDelegationTokenRequest(hmac=b"x"), 1),
    "ExpireDelegationToken": Case(ExpireDelegationTokenRequest(hmac=_MINES, expiry_time_period_ms=-1), 2),
    "CreateDelegationToken": Case(create_request(is_valid=False), 3),
    "CreateDelegationToken of mine": Case(create_request("mine-owner"), 3),
    "CreateDelegationToken of another's": Case(create_request("other-owner", is_valid=False), 3),
}
