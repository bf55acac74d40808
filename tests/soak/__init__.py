"""Random faults for as long as asked: `make soak`; see `__main__`."""
