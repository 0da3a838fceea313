"""Any history of requests gets the same responses from both brokers, except for the listed differences."""

from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from barnabas import api
from barnabas.api import registry
from barnabas.wire.barnabas_messages import is_kafka_api
from differential.brokers import OF_CONTROLLERS, UNADVERTISED
from differential.budget import EXAMPLES, IS_FIXED
from differential.compare import brief
from differential.sequences import Step, beginning, histories
from differential.values import messages
from differential.world import Pair, World

APIS = {
    key: spec
    for key, spec in registry.build(api).items()
    if is_kafka_api(key) and key not in OF_CONTROLLERS | UNADVERTISED
}


def budget(examples: int) -> settings:
    """Limit the number of examples; with the default budget all runs send the same requests, and only code changes
    can fail.
    """
    return settings(
        max_examples=examples,
        derandomize=IS_FIXED,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        print_blob=not IS_FIXED,
    )


def check(world: World, steps: Iterable[Step]) -> None:
    for request, version in steps:
        differences = world.exchange(request, version)
        assert not differences, "\n".join([*map(str, differences), f"request: {brief(request)}"])


@settings(budget(EXAMPLES))
@given(data=st.data())
def test_any_history_has_the_same_responses_as_in_kafka(pair: Pair, data: st.DataObject) -> None:
    steps = data.draw(histories(list(pair.apis.values())))
    with pair.world() as world:
        check(world, beginning() + steps)


@pytest.mark.parametrize("api_key", APIS, ids=[spec.name for spec in APIS.values()])
@settings(budget(max(3, EXAMPLES // 10)))
@given(data=st.data())
def test_every_version_of_an_api_has_the_same_responses_as_in_kafka(
    pair: Pair, api_key: int, data: st.DataObject
) -> None:
    spec = pair.apis[api_key]
    versions = range(spec.versions.first, spec.versions.last + 1)
    steps = [(data.draw(messages(spec, version)), version) for version in versions]
    with pair.world() as world:
        check(world, beginning() + steps)
