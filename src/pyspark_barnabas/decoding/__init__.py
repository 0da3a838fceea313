"""Decodes records for any Spark job: classic sessions, Spark Connect, and query functions of Declarative Pipelines.

Nothing here analyses a DataFrame, because a pipeline's query function must not.
"""
