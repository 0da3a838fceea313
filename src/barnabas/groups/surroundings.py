"""What groups look at besides their own state."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from barnabas.config.broker_config import BrokerConfig
from barnabas.metadata.image import Image


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Configuration, cluster state, dice: as they are at the moment."""

    config: Callable[[], BrokerConfig]  #: as it stands now
    image: Callable[[], Image]  #: cluster state as this node knows it now
    dice: Random
