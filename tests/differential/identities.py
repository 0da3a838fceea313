"""One broker's identifiers for things that both brokers have: topic ids, producer ids, fetch sessions, names."""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from barnabas.base.ids import ZERO_UUID
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenResponse
from barnabas.wire.messages.create_topics import CreateTopicsResponse
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.metadata import MetadataResponse
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.wire.schema import Message

#: Stands for an id that the broker does not know.
UNKNOWN_TOPIC_ID = bytes.fromhex("00112233445546778899aabbccddeeff")
UNKNOWN_PRODUCER_ID = 999_999_999
UNKNOWN_SESSION_ID = 123_456
UNKNOWN_MEMBER_ID = "nobody"

TopicIndex = tuple[str, int]  #: topic name without the world's prefix, partition index


@dataclass
class Identities:
    """One broker's side of a world. Both sides learn identifiers of the same things in the same order."""

    prefix: str
    home: Path = Path("/")  #: path of the broker's log directories
    topic_ids: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    producer_ids: list[int] = field(default_factory=list)
    member_ids: list[str] = field(default_factory=list)  #: of members of groups
    hmacs: dict[str, bytes] = field(default_factory=dict)  #: of delegation tokens, by token id
    #: session id -> the epoch of its next fetch, in order of creation
    sessions: dict[int, int] = field(default_factory=dict)
    #: partition of a record batch that is being resolved
    tp: TopicIndex = ("", 0)
    #: the producer's next sequence
    next_sequences: dict[tuple[TopicIndex, int], int] = field(default_factory=dict)
    #: the sequences after a produce request in progress
    pending: dict[tuple[TopicIndex, int], int] = field(default_factory=dict)

    def topic_id(self, name: str, generation: int) -> bytes:
        known = self.topic_ids.get(name, [])
        return known[generation] if -len(known) <= generation < len(known) else UNKNOWN_TOPIC_ID

    def producer_id(self, number: int) -> int:
        return self.producer_ids[number] if number < len(self.producer_ids) else UNKNOWN_PRODUCER_ID

    def member_id(self, number: int) -> str:
        return self.member_ids[number] if number < len(self.member_ids) else UNKNOWN_MEMBER_ID

    def hmac(self, number: int) -> bytes:
        known = list(self.hmacs.values())
        return known[number] if number < len(known) else b"unknown"

    def session(self, number: int) -> tuple[int, int]:
        """Return id and next epoch of the session `number` back from the newest."""
        known = list(self.sessions.items())
        return known[-1 - number] if number < len(known) else (UNKNOWN_SESSION_ID, 1)

    def plain_topic_id(self, topic_id: bytes) -> str:
        """Return a name for the id that is equal on both sides."""
        if topic_id == ZERO_UUID:
            return "none"
        for name, known in self.topic_ids.items():
            if topic_id in known:
                return f"id {known.index(topic_id)} of {name}"
        return f"unknown {topic_id.hex()}" if topic_id == UNKNOWN_TOPIC_ID else "some id"

    def plain_producer_id(self, producer_id: int) -> int | str:
        if producer_id in self.producer_ids:
            return f"producer {self.producer_ids.index(producer_id)}"
        return producer_id

    def plain_member_id(self, member_id: str | None) -> str | None:
        if member_id in self.member_ids:
            return f"member {self.member_ids.index(member_id)}"
        return member_id

    def plain_token_id(self, token_id: str) -> str:
        known = list(self.hmacs)
        return f"token {known.index(token_id)}" if token_id in known else token_id

    def plain_session_id(self, session_id: int) -> int | str:
        if session_id in self.sessions:
            return f"session {list(self.sessions).index(session_id)}"
        return session_id

    def plain_log_dir(self, path: str) -> str:
        """Return a log directory's path without the broker's own prefix."""
        return path.removeprefix(str(self.home))

    def plain_name(self, name: str | None) -> str | None:
        """Return a topic's name without the world's prefix."""
        return None if name is None else re.sub(f"^{self.prefix}", "", name)

    def learn(self, request: Message, response: Message) -> None:
        """Remember the identifiers in a response."""
        if isinstance(response, CreateTopicsResponse | MetadataResponse):
            for topic in response.topics:
                self._learn_topic(topic.name, topic.topic_id)
        elif isinstance(response, InitProducerIdResponse) and isinstance(request, InitProducerIdRequest):
            is_of_this_world = request.transactional_id is None or request.transactional_id.startswith(
                self.prefix
            )
            if is_of_this_world and response.producer_id >= 0:
                self.producer_ids.append(response.producer_id)
        elif isinstance(response, JoinGroupResponse):
            if response.member_id not in ("", UNKNOWN_MEMBER_ID, *self.member_ids):
                self.member_ids.append(response.member_id)
        elif isinstance(response, CreateDelegationTokenResponse):
            if not response.error_code:
                self.hmacs[response.token_id] = bytes(response.hmac)
        elif isinstance(response, FetchResponse) and isinstance(request, FetchRequest):
            self._learn_session(request, response)
        elif isinstance(response, ProduceResponse) and isinstance(request, ProduceRequest):
            self._learn_sequences(response)

    def _learn_topic(self, name: str | None, topic_id: bytes) -> None:
        if name and topic_id != ZERO_UUID:
            known = self.topic_ids[self.plain_name(name) or ""]
            if topic_id not in known:
                known.append(topic_id)

    def _learn_session(self, request: FetchRequest, response: FetchResponse) -> None:
        if response.session_id and not response.error_code:
            epoch = request.session_epoch
            self.sessions[response.session_id] = 1 if epoch <= 0 else epoch + 1

    def _learn_sequences(self, response: ProduceResponse) -> None:
        for topic in response.responses:
            name = self.plain_name(topic.name) or self._name_of(topic.topic_id)
            for partition in topic.partition_responses:
                for (tp, producer), sequence in self.pending.items():
                    if tp == (name, partition.index) and not partition.error_code:
                        self.next_sequences[tp, producer] = sequence
        self.pending.clear()

    def _name_of(self, topic_id: bytes) -> str:
        return next((name for name, known in self.topic_ids.items() if topic_id in known), "")
