"""The broker process: composition, start, listeners, background tasks."""
