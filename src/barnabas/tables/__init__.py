"""Keeps Delta and Iceberg tables of topics: every record exactly once, at most a configured time late.

A client of any Kafka cluster, without Spark. `topic_table` keeps one table, `service` those of all topics.
"""
