"""Resources with configs: a type and a name."""

import enum
from typing import NamedTuple


class ResourceKind(enum.IntEnum):
    """The `resource_type` numbers of the APIs on configs (`ConfigResource.Type`)."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Resource(NamedTuple):
    """A resource with configs: a topic by name, a broker by its id as text; an empty name means all brokers."""

    kind: ResourceKind
    name: str

    def __str__(self) -> str:
        what = self.kind.name.lower().replace("_", " ")
        return f"{what} '{self.name}'" if self.name else f"every {what}"


#: The name of the default resource of all brokers.
EVERY_BROKER = ""
