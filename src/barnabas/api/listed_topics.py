"""Topics in responses about all topics."""

from barnabas.api.context import RequestContext
from barnabas.base.topic_names import AUDIT_TOPIC


def is_listed(context: RequestContext, topic_name: str) -> bool:
    """Return whether a response about all topics contains this one.

    Only our own clients see the audit topic there: Apache Kafka's tools, and scripts that read their output, do not
    expect another internal topic. A request that names it is answered.
    """
    return topic_name != AUDIT_TOPIC or context.connection.is_own_client
