"""The decisions that the authorizer has made, so that they can be made again with other ACLs."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import TypeAlias, cast

from barnabas.wire.acls import AclDecision, AclOperation, ResourceType

#: Decisions to keep that have allowed something, and as many that have not: clients without permissions displace no
#: decisions of others.
KEPT_COUNT_MAX = 10_000

#: Longer names, which no topic can have, are neither recorded nor cached: invented names must not fill the memory.
KEPT_NAME_LENGTH_MAX = 255

#: Principal, host and action. Without a name: whether it is allowed on any resource of the type.
Question: TypeAlias = tuple[str, str, AclOperation, ResourceType, str | None]


class RecordedDecisions:
    """Keeps those that were used last."""

    def __init__(self, since_ms: int, decisions: Iterable[AclDecision] = (), left_out_count: int = 0) -> None:
        """:param decisions: Those made since then, the last used ones last."""
        self.since_ms = since_ms
        self.left_out_count = left_out_count
        #: by the decision: question -> last use, in this order
        self._kept: dict[bool, OrderedDict[Question, int]] = {True: OrderedDict(), False: OrderedDict()}
        for *question, is_allowed, used_ms in decisions:
            self.add(cast("Question", tuple(question)), used_ms, is_allowed=is_allowed)

    def add(self, question: Question, now_ms: int, *, is_allowed: bool) -> None:
        name = question[-1]
        if name is not None and len(name) > KEPT_NAME_LENGTH_MAX:
            self.left_out_count += 1
            return
        self._kept[not is_allowed].pop(question, None)
        kept = self._kept[is_allowed]
        kept[question] = now_ms
        kept.move_to_end(question)
        if len(kept) > KEPT_COUNT_MAX:
            kept.popitem(last=False)
            self.left_out_count += 1

    def all(self) -> Iterator[AclDecision]:
        """Yield the decisions up to now."""
        taken = [(is_allowed, list(kept.items())) for is_allowed, kept in self._kept.items()]
        return (
            AclDecision(*question, is_allowed, used_ms)
            for is_allowed, kept in taken
            for question, used_ms in kept
        )

    def __len__(self) -> int:
        return sum(map(len, self._kept.values()))
