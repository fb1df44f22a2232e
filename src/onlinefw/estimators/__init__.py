"""The scikit-learn face of the library."""
