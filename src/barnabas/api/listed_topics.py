"""Topics in responses about all topics."""

from barnabas.api.context import RequestContext
from barnabas.base.topic_names import OWN_TOPICS


def is_listed(context: RequestContext, topic_name: str) -> bool:
    """Return whether a response about all topics contains this one.

    Only our own clients see the topics of the audit and of the security log there: Apache Kafka's tools, and scripts
    that read their output, do not expect other internal topics. A request that names it is answered.
    """
    return topic_name not in OWN_TOPICS or context.connection.is_own_client
