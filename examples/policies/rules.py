"""Policies as Python classes: `--set create.topic.policy.class.name=rules:OwnedTopics`.

Add this directory to PYTHONPATH, or start the broker in it.
"""

from collections.abc import Mapping

from barnabas.policy import AlterConfigPolicy, CreateTopicPolicy, PolicyViolation


class OwnedTopics(CreateTopicPolicy):
    """The name of a topic must begin with a team; the broker's setting `acme.teams` lists the teams."""

    def configure(self, configs: Mapping[str, str]) -> None:
        self.teams = configs.get("acme.teams", "orders,payments").split(",")

    def validate(self, request: CreateTopicPolicy.RequestMetadata) -> None:
        team, dot, _ = request.topic.partition(".")
        if not dot or team not in self.teams:
            message = f"'{request.topic}' must begin with a team and a dot: {', '.join(self.teams)}"
            raise PolicyViolation(message)
        if request.replicas_assignments is not None:
            message = "The request must not assign replicas"
            raise PolicyViolation(message)


class BoundedRetention(AlterConfigPolicy):
    """Every topic must have a time limit for its records."""

    def validate(self, request: AlterConfigPolicy.RequestMetadata) -> None:
        if request.configs.get("retention.ms") == "-1":
            message = f"retention.ms of '{request.resource.name}' must not be -1"
            raise PolicyViolation(message)
