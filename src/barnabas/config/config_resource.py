"""What bears configurations: a kind and a name."""

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
    """One bearer of configs: a topic by name, a broker by its id as text; a broker without name is every broker."""

    kind: ResourceKind
    name: str

    def __str__(self) -> str:
        what = self.kind.name.lower().replace("_", " ")
        return f"{what} '{self.name}'" if self.name else f"every {what}"


#: The name of the broker resource that stands for every broker of the cluster.
EVERY_BROKER = ""
