"""Runs commands in forked processes that kill themselves at a given moment; see test_kill.py.

A moment is the n-th call or return of a Python or C function, so that moments can be drawn at
random and are the same every time. Standard input is JSON: ``first``, the arguments of a command
to run before, and ``then``, a list of jobs, each with ``args`` and, to be killed, ``moment``.
Prints for each the exit status and how many moments passed.
"""

import json
import os
import signal
import sys


def main():
    # Everything a command imports, once for all processes.
    from onlinefw.cli.app import app
    from onlinefw.files.registry import registry

    registry()
    jobs, results = json.load(sys.stdin), []
    # Here, so that no process has to load what was compiled.
    app(jobs["first"], standalone_mode=False)
    for job in jobs["then"]:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            _run(job["args"], job.get("moment"), writing)
        os.close(writing)
        with os.fdopen(reading) as counted:
            passed = int(counted.read() or 0)
        _, status = os.waitpid(child, 0)
        results.append({"status": os.waitstatus_to_exitcode(status), "moments": passed})
    print(json.dumps(results))


def _run(args, moment, writing):
    from onlinefw.cli.app import app

    passed = 0

    def count(frame, event, argument):
        nonlocal passed
        passed += 1
        if passed == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    code = 1
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
