"""The restore job: restores topics from archives."""
