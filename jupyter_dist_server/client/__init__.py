"""Talks to an agent and its ranks; runs in any process that uses a pool."""
