"""Looks for differences and counts them by kind, without stopping at the first: `python -m differential.hunt`.

Run it in tests/; the options say how many histories, and of which APIs.
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from hypothesis import HealthCheck, Phase, given, seed, settings

from differential.brokers import pair_of_brokers
from differential.compare import Difference, brief
from differential.sequences import Step, beginning, histories
from differential.world import Pair

#: Differences after which the brokers are not in the same state any more.
CONSEQUENTIAL = ("outcome", "error_code", "offset", "topics afterwards")

Kind = tuple[str, str, str, str]


def hunt(pair: Pair, count: int, only: set[str], seed_number: int) -> tuple[Counter[Kind], dict[Kind, str]]:
    """Differences by kind, and for each kind where it was first seen."""
    kinds: Counter[Kind] = Counter()
    first: dict[Kind, str] = {}
    specs = [spec for spec in pair.apis.values() if not only or spec.name in only]

    @seed(seed_number)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(histories(specs))
    def run(steps: list[Step]) -> None:
        with pair.world() as world:
            for request, version in beginning() + steps:
                differences = world.exchange(request, version)
                for difference in differences:
                    kind = kind_of(difference)
                    kinds[kind] += 1
                    first.setdefault(kind, f"{difference}\n      {brief(request)}")
                if any(difference.path.endswith(CONSEQUENTIAL) for difference in differences):
                    return

    run()
    return kinds, first


def kind_of(difference: Difference) -> Kind:
    return difference.api, difference.path, str(difference.kafka)[:40], str(difference.barnabas)[:40]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("apis", nargs="*", help="names of APIs; default: all")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hunt-") as home, pair_of_brokers(Path(home)) as pair:
        kinds, first = hunt(pair, options.count, set(options.apis), options.seed)
    for kind, count in kinds.most_common():
        print(f"{count:5} {' | '.join(kind)}\n      {first[kind][:1500]}")
    print(f"{sum(kinds.values())} differences of {len(kinds)} kinds")


if __name__ == "__main__":
    main()
