"""Where a change of many partitions continues that is divided into several commits."""

from collections.abc import Iterator

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import TopicImage


class TopicRotation:
    """Lets each decision look at all topics, beginning with the one in which the decision before reached its limit.

    If each began with the first topic, the partitions that are changed already would be looked at again and again.
    """

    def __init__(self) -> None:
        self._first = ""

    def topics(self, image: MetadataImage) -> Iterator[TopicImage]:
        """Yield all topics, beginning with the one that `continue_in` named last."""
        names = list(image.topics)
        at = names.index(self._first) if self._first in image.topics else 0
        return (image.topics[name] for name in (*names[at:], *names[:at]))

    def continue_in(self, topic: TopicImage) -> None:
        """Begin with this topic from now on."""
        self._first = topic.name
