"""The paper's experiments: runs with their records, and the curves and claims they give."""
