"""Processes of the command line that begin where each of its commands begins.

A server imports ``hostnet.cli`` and, as Typer does for every command, Pydantic; that takes longer than most commands. It forks
for each command, whose process has then imported what its own process would have, and nothing else.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Timer

SERVER = """
import json, os, socket, sys
import hostnet.cli, pydantic

asked = socket.socket(fileno=int(sys.argv[1]))
while True:
    some, files, *_ = socket.recv_fds(asked, 1, 4)
    if not some:
        sys.exit()
    process = os.fork()
    if process == 0:
        break
    for file in files:
        os.close(file)
    asked.send(b"%d\\n" % process)
    asked.send(b"%d\\n" % os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
asked.close()
*streams, request = files
for standard, file in enumerate(streams):
    os.dup2(file, standard)
    os.close(file)
with open(request) as text:
    cwd, environ, sys.argv[1:] = json.load(text)
os.chdir(cwd)
os.environ.clear()
os.environ.update(environ)
del asked, environ, file, files, process, request, some, standard, streams, text
hostnet.cli.main()
"""
COMMAND = [sys.executable, "-c", "from hostnet.cli import main; main()"]


def of_the_interpreter(environ):
    """The variables that an interpreter reads when it begins."""
    return {k: v for k, v in environ.items() if k.startswith(("PYTHON", "LC_", "LANG"))}


class CommandLine:
    """Runs commands as ``subprocess.run`` does."""

    def __init__(self):
        self.environ = of_the_interpreter(os.environ)
        ours, theirs = socket.socketpair()
        with theirs:
            self.server = subprocess.Popen(
                [sys.executable, "-c", SERVER, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,  # of the kind that its processes have
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self.ours, self.said = ours, ours.makefile()

    def close(self):
        self.said.close()
        self.ours.close()
        self.server.communicate()

    def run(self, args, cwd, timeout, **kw):
        command = COMMAND + args
        if kw or of_the_interpreter(os.environ) != self.environ:
            return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout, **kw)
        with ExitStack() as stack:
            request = stack.enter_context(tempfile.TemporaryFile("w+"))
            json.dump([str(cwd), dict(os.environ), args], request)
            request.seek(0)
            nothing = stack.enter_context(open(os.devnull))
            (out, theirs_out), (err, theirs_err) = os.pipe(), os.pipe()
            pool = stack.enter_context(ThreadPoolExecutor(2))
            streams = [pool.submit(lambda end: stack.enter_context(open(end)).read(), end) for end in (out, err)]
            files = [nothing.fileno(), theirs_out, theirs_err, request.fileno()]
            socket.send_fds(self.ours, [b"1"], files)
            os.close(theirs_out)
            os.close(theirs_err)
            said = self.said.readline()
            assert said, self.server.communicate()
            process = int(said)
            late = Timer(timeout, os.kill, [process, signal.SIGKILL])
            late.daemon = True
            late.start()
            code = int(self.said.readline())
            if late.finished.is_set():
                raise subprocess.TimeoutExpired(command, timeout)
            late.cancel()
            return subprocess.CompletedProcess(command, code, *(s.result() for s in streams))
