"""Why a cell is slow, from the profiles of its ranks; runs in any process that uses a pool."""
