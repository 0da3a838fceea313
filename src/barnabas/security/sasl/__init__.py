"""SASL on the broker's side: mechanisms and a connection's authentication as state machines without IO."""
