"""Responses of UpdateFeatures; the decision has its own tests."""

from pathlib import Path

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from support.loop import on_loop
from support.nodes import RunningNode, running_node


def with_transactions(node: RunningNode) -> None:
    """Make the node support a feature with a variable level."""
    node.broker.apis = {**node.broker.apis, **dict.fromkeys((24, 25, 26, 28), node.broker.apis[3])}


def level(node: RunningNode) -> int | None:
    return node.broker.image.finalized_features.get("transaction.version")


@pytest.mark.parametrize("version", range(3))
def test_a_level_is_changed_and_results_are_returned_per_feature_where_the_version_has_them(
    tmp_path: Path, version: int
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            with_transactions(node)
            updates = [FeatureUpdateKey("transaction.version", 2), FeatureUpdateKey("metadata.version", 30)]
            response = await node.ask(UpdateFeaturesRequest(feature_updates=updates), version)
            assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
            results = [(result.feature, result.error_code) for result in response.results]
            assert results == ([] if version == 2 else [("transaction.version", 0), ("metadata.version", 0)])
            assert level(node) == 2

    scenario()


@pytest.mark.parametrize("version", range(3))
def test_one_invalid_feature_rejects_all(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            with_transactions(node)
            before = level(node)
            updates = [FeatureUpdateKey("transaction.version", 2), FeatureUpdateKey("nope", 1)]
            response = await node.ask(UpdateFeaturesRequest(feature_updates=updates), version)
            assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
            assert "for feature nope." in response.error_message
            assert response.results == []
            assert level(node) == before

    scenario()


@on_loop
async def test_validate_only_changes_nothing(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        with_transactions(node)
        before = level(node)
        for wanted in (0, 1, 2):
            updates = [FeatureUpdateKey("transaction.version", wanted)]
            await node.ask(UpdateFeaturesRequest(feature_updates=updates, validate_only=True))
            assert level(node) == before
