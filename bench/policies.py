"""The policy whose cost is measured when topics are created."""

import re

from barnabas.policy import CreateTopicPolicy, PolicyViolation

NAME = re.compile(r"[a-z]+(-[0-9]+)?")
PARTITIONS_MAX = 100
TIMES_MS = {"retention.ms": 7 * 24 * 3_600_000, "segment.ms": 24 * 3_600_000}


class ThoroughPolicy(CreateTopicPolicy):
    """Reads every field of a request, as policies in production do, and allows it."""

    def validate(self, request: CreateTopicPolicy.RequestMetadata) -> None:
        if not NAME.fullmatch(request.topic):
            message = f"{request.topic} must be letters, or letters and a number"
            raise PolicyViolation(message)
        if (request.num_partitions or len(request.replicas_assignments or ())) > PARTITIONS_MAX:
            message = f"{request.topic} may have {PARTITIONS_MAX} partitions"
            raise PolicyViolation(message)
        for key, longest_ms in TIMES_MS.items():
            if int(request.configs.get(key, 0)) > longest_ms:
                message = f"{key} may be {longest_ms}"
                raise PolicyViolation(message)
