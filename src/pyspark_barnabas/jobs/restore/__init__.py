"""The restore job: topics from archives."""
