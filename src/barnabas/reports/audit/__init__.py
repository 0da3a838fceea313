"""The audit summary: a report on the audit topic."""
