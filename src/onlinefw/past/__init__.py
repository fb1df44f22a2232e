"""What is kept of the past, in one of three places: this process's memory, a GPU, or Ray workers.

:mod:`~onlinefw.past.protocols` says what can be asked of a past, :mod:`~onlinefw.past.place` makes
one at a place and moves it to another. The places have the same file names: ``host/`` is this
process's memory, ``cuda/`` a GPU, ``ray/`` any number of workers.
"""
