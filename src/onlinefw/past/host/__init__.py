"""The past in this process's memory."""
