"""Which topics answers on all topics name."""

from barnabas.api.context import RequestContext
from barnabas.metadata.topics import AUDIT_TOPIC


def is_listed(context: RequestContext, topic_name: str) -> bool:
    """Whether an answer on all topics names this one.

    Only our own clients see the audit topic there: Apache Kafka's tools, and scripts that read what they print, do not
    expect an internal topic more. A request that names it is answered like any other.
    """
    return topic_name != AUDIT_TOPIC or context.connection.is_own_client
