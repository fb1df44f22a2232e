"""Learning from chunks of a file or a pipe: rounds, scores, held-out rows, stopping, going on."""
