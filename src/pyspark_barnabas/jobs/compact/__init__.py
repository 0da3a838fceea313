"""The compact job: compaction of large topics on Spark."""
