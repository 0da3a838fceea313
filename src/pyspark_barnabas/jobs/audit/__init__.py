"""The audit job: a report of what the audit topic has."""
