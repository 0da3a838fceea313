"""The seeds that find some of the planted bugs."""

#: Virtual seconds of a run, without its quiet phases.
DURATION_S = 20

#: Brokers of a cluster.
CLUSTER = 3

#: Every change of the product moves the faults in time: then a bug is found by one of the next seeds.
SEEDS_COUNT = 6

#: The first seed that finds a bug, and the number of brokers. These bugs are found quickly, also after changes of the
#: product. docs/reliability.md lists all bugs, and `make sim-bugs` tries all.
FOUND_BY = {
    "a-reload-misses-a-commit": (3, CLUSTER),
    "acks-all-is-answered-before-replication": (1, CLUSTER),
    "followers-truncate-to-their-high-watermark": (1, CLUSTER),
    "lagging-followers-are-removed-before-that-is-committed": (2, CLUSTER),
    "markers-are-dropped": (1, 1),
    "the-high-watermark-moves-without-enough-replicas": (1, CLUSTER),
    "unanswered-commits-are-taken-for-done": (2, 1),
    "unanswered-commits-are-taken-for-failed": (1, 1),
}
