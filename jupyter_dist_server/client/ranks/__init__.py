"""The sockets of ranks, and questions to them; runs in any process that uses a pool."""
