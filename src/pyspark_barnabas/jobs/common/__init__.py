"""Spark session and client shared by all jobs."""
