"""What a broker tells of itself: metrics, spans, logs. Next to nothing is paid until somebody looks."""
