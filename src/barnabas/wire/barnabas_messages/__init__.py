"""Requests that only Barnabas has, in the form of Kafka's; written by hand, one module for each.

Their keys are far above Kafka's. ApiVersions tells of them to Barnabas's own clients alone.
"""

#: The first key of an API that is not Kafka's.
FIRST_API_KEY = 32_000


def is_kafka_api(api_key: int) -> bool:
    """Whether Apache Kafka has the API."""
    return api_key < FIRST_API_KEY
