"""The seeds that find planted bugs."""

#: Virtual seconds of a run, without its quiet phases.
DURATION_S = 20

#: Brokers of a cluster.
CLUSTER = 3

#: Every change of the product moves the faults in time: then a bug is found by one of the next seeds.
SEEDS_COUNT = 6

#: The first seed that finds a bug, and the number of brokers.
FOUND_BY = {
    "acks-all-is-answered-before-replication": (2, CLUSTER),
    "any-replica-may-lead": (5, CLUSTER),
    "brokers-stay-in-sync-after-a-power-failure": (2, CLUSTER),
    "dead-brokers-are-not-fenced": (2, CLUSTER),
    "directories-are-not-flushed": (4, 1),
    "followers-do-not-truncate": (5, CLUSTER),
    "followers-truncate-to-their-high-watermark": (1, CLUSTER),
    "logs-are-not-recovered-after-a-crash": (7, 1),
    "markers-are-dropped": (1, 1),
    "producers-are-forgotten-by-a-start": (16, 1),
    "recovery-accepts-torn-batches": (10, 1),
    "retries-are-not-recognized": (2, 1),
    "unanswered-commits-are-taken-for-done": (1, 1),
    "writes-are-acknowledged-before-they-are-flushed": (4, 1),
}
