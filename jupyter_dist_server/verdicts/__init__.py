"""From evidence to one sentence: pure functions, without torch, tornado or a connection."""
