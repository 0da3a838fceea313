"""Server-side assignors: pure functions of subscriptions and previous targets."""
