"""The compact job: compaction of one large topic on Spark."""
