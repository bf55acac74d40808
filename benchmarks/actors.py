"""Actors that execute strings: programs of Ray and Monarch, on one machine or on several.

Each needs a `pool`, and fetches a value from the actor that `whose` tells.
"""

from __future__ import annotations

RAY = """
import ray

@ray.remote
class Rank:
    def __init__(self, rank):
        self.names = {'rank': rank}
    def run(self, code):
        exec(compile(code, '<cell>', 'exec'), self.names)
    def get(self, name):
        return self.names[name]
    def put(self, name, value):
        self.names[name] = value

def run(code):
    ray.get([actor.run.remote(code) for actor in pool])
"""
RAY_PULL = "got = ray.get(pool[whose].get.remote('big'))"
RAY_PUSH = "ref = ray.put(got)\nray.get([actor.put.remote('big', ref) for actor in pool])"

# An import of torch inside exec() fails there; unpickling a tensor imports it first.
MONARCH = """
import torch
from monarch.actor import Actor, current_rank, endpoint

class Rank(Actor):
    def __init__(self):
        self.names = {'rank': current_rank().rank}
    @endpoint
    def run(self, code):
        exec(compile(code, '<cell>', 'exec'), self.names)
    @endpoint
    def get(self, name):
        return self.names[name]
    @endpoint
    def put(self, name, value):
        self.names[name] = value

def run(code):
    pool.run.call(code).get()
"""
MONARCH_WARM = "_ = pool.put.call('warm', torch.ones(1)).get()"
MONARCH_PULL = "got = pool.slice(**whose).get.call_one('big').get()"
MONARCH_PUSH = "_ = pool.put.call('big', got).get()"
