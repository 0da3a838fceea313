"""The audit job: a report on the audit topic."""
