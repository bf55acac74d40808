"""Why a cell is slow: from the profiles of its ranks to a sentence and a table."""
