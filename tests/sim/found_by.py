"""Seeds that find some of the planted bugs, and seeds that have found bugs of the product."""

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

#: Seeds that have found bugs of the product, and what was wrong. Later changes move the faults of these runs. So each
#: mended bug has a test of its own, too.
FOUND_IN_THE_PRODUCT = {
    27: "a transaction was not aborted while the clock of its new coordinator was behind",
    34175: "a leader had lost the end of a segment, and followers kept the records that it had lost",
    34782: "a compaction that was under way when its broker led gave the batches behind a gap their former epoch",
    34884: "a leader's batches behind a gap kept their epoch where compaction had joined the segments",
    470333733: "a broker that had stopped loaded its coordinators again for a late commit",
    510655488: "a transaction index that recovery had written again was not flushed",
    706774234: "a snapshot of producers survived a power failure, and batches that it included did not",
}
