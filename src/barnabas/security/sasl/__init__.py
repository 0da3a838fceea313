"""SASL on the broker's side: mechanisms and a connection's login as machines without IO."""
