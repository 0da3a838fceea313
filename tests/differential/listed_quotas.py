"""The intended differences in quotas."""

import math

from barnabas.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from differential.listed_entry import Listed
from differential.sequences import Step


def _tried(kind: str, name: str, key: str, value: float) -> tuple[Step, ...]:
    entry = EntryData([EntityData(kind, name)], [OpData(key, value)])
    return ((AlterClientQuotasRequest([entry], validate_only=True), 1),)


LISTED_QUOTAS = (
    Listed(
        "AlterClientQuotas", "entries", "NaN for a value",
        "Kafka accepts it, and clients with such a quota are never throttled; Barnabas answers INVALID_REQUEST.",
        lambda each: "nan" in repr(each.request),
        _tried("user", "nobody", "producer_byte_rate", math.nan),
    ),
    Listed(
        "AlterClientQuotas", "entries", "a host name for an address",
        "Kafka looks it up once, when the quota is set; Barnabas takes addresses alone and answers INVALID_REQUEST.",
        lambda each: "localhost" in repr(each.request),
        _tried("ip", "localhost", "connection_creation_rate", 5.0),
    ),
)  # fmt: skip
