"""Runs a command again and again, killed at another moment each time; see test_kill.py.

A moment is a call or return of a Python or C function, so that moments can be drawn at random and
are the same every time. Standard input is JSON: ``whole``, the arguments of a run that is not
killed, and ``killed``, a list of [arguments, share], to be killed after that share of its moments.
Prints the exit statuses.
"""

import json
import os
import signal
import sys


def main():
    from onlinefw.cli.app import app

    jobs = json.load(sys.stdin)
    # Here first, so that no process has to import or compile anything.
    app(jobs["whole"], standalone_mode=False)
    status, moments = run(jobs["whole"])
    statuses = [status]
    for args, share in jobs["killed"]:
        statuses.append(run(args, kill_at=1 + int(share * moments))[0])
    print(json.dumps(statuses))


def run(args, kill_at=None):
    """Run in another process; return its exit status and how many moments it had."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _run_here(args, kill_at, writing)
    os.close(writing)
    with os.fdopen(reading) as counted:
        passed = int(counted.read() or 0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), passed


def _run_here(args, kill_at, writing):
    from onlinefw.cli.app import app

    passed, code = 0, 1

    def count(frame, event, argument):
        nonlocal passed
        passed += 1
        if passed == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)
    try:
        app(args, standalone_mode=False)
        code = 0
    finally:
        sys.setprofile(None)
        os.write(writing, str(passed).encode())
        os._exit(code)


if __name__ == "__main__":
    main()
