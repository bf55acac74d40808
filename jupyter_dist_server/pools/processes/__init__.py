"""Starts agents, and the zygotes they are forked from; runs in the owner of the pools."""
