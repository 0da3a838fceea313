"""Search for differences and count them by kind, without stopping at the first: `python -m differential.hunt`.

Run it in tests/; the options say how many histories, for how long, and of which APIs.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from hypothesis import HealthCheck, Phase, given, seed, settings

from differential.brokers import pair_of_brokers
from differential.compare import Difference, brief
from differential.sequences import Step, beginning, histories
from differential.world import Pair

#: Differences after which the brokers are no longer in the same state.
CONSEQUENTIAL = ("outcome", "error_code", "offset", "topics afterwards")

Kind = tuple[str, str, str, str]


@dataclass
class Found:
    """Differences by kind, where each kind was first seen, and the number of histories searched."""

    kinds: Counter[Kind] = field(default_factory=Counter)
    first: dict[Kind, str] = field(default_factory=dict)
    histories_count: int = 0


def hunt(pair: Pair, count: int, seconds: float, only: set[str], seed_number: int) -> Found:
    """Search `count` histories, or as many as fit into the time."""
    found = Found()
    end_s = time.monotonic() + seconds
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
        if time.monotonic() > end_s:
            return
        found.histories_count += 1
        with pair.world() as world:
            for request, version in beginning() + steps:
                differences = world.exchange(request, version)
                for difference in differences:
                    kind = kind_of(difference)
                    found.kinds[kind] += 1
                    found.first.setdefault(kind, f"{difference}\n      {brief(request)}")
                if any(difference.path.endswith(CONSEQUENTIAL) for difference in differences):
                    return

    run()
    return found


def kind_of(difference: Difference) -> Kind:
    return difference.api, difference.path, str(difference.kafka)[:40], str(difference.barnabas)[:40]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("apis", nargs="*", help="names of APIs; default: all")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hunt-") as home, pair_of_brokers(Path(home)) as pair:
        found = hunt(pair, options.count, options.seconds, set(options.apis), options.seed)
    for kind, count in found.kinds.most_common():
        print(f"{count:5} {' | '.join(kind)}\n      {found.first[kind][:1500]}")
    total_count = found.kinds.total()
    print(f"{total_count} differences of {len(found.kinds)} kinds in {found.histories_count} histories")


if __name__ == "__main__":
    main()
