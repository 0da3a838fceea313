"""What cluster state was before, and how it comes back: APIs that only Barnabas has."""
