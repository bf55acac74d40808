"""Tools for coding agents, by the Model Context Protocol: see docs/agents.md."""
