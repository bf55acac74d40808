"""From evidence to one sentence, by pure functions; runs in any process that uses a pool."""
