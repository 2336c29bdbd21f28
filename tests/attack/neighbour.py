# SPDX-License-Identifier: Apache-2.0
"""Another sandbox on the same host, at work all the time: it fetches an allowed page, again and again, and writes down how that went."""

import json
import statistics
import subprocess
import threading

from lab import wait_for

from .attempt import NEIGHBOUR

PAUSE = 0.1  # seconds between two requests
PORT = 8000  # where it listens, at its own address
LIMIT = 100_000  # requests: an end for when nobody ends it

LOOP = """
    import threading
    visitors = []
    def serve():
        with socket.create_server(("", int(sys.argv[3]))) as listener:
            while True:
                visitors.append(listener.accept()[1])
    threading.Thread(target=serve, daemon=True).start()
    request = b"GET /hello HTTP/1.1\\r\\nHost: neighbour.test\\r\\nConnection: close\\r\\n\\r\\n"
    for number in range(int(sys.argv[1])):
        begun = time.monotonic()
        try:
            status = http("neighbour.test", 80, request)[0][0]
        except OSError as error:
            status = str(error)
        show(status=status, ms=(time.monotonic() - begun) * 1000, visitors=len(visitors))
        time.sleep(float(sys.argv[2]))
"""


class Neighbour:
    def __init__(self, lab):
        lab.inet.ip(f"addr add {NEIGHBOUR}/32 dev lo")
        lab.dns.add("neighbour.test", a=[NEIGHBOUR])
        self.web = lab.new_web()
        self.web.listen(lab.inet, NEIGHBOUR, port=80)
        self.samples = []
        self.running = lab.start(["--allow", "neighbour.test"], lab.script(LOOP, str(LIMIT), str(PAUSE), str(PORT)),
                                 stdin=subprocess.DEVNULL)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.settle(20)
        self._log, self._read_to = open(self.running.log, "rb"), 0
        self.usual = self.median(self.samples)

    def _read(self):
        for line in self.running.process.stdout:
            self.samples.append(json.loads(line))

    def settle(self, count):
        """Waits for `count` more requests, and returns them."""
        first = len(self.samples)
        wait_for(lambda: len(self.samples) >= first + count, "the neighbour's requests")
        return self.samples[first:]

    @staticmethod
    def median(samples):
        return statistics.median(sample["ms"] for sample in samples)

    def news(self):
        """The records since the last call."""
        self._log.seek(self._read_to)
        lines = self._log.read().rpartition(b"\n")
        self._read_to += len(lines[0]) + len(lines[1])
        return [json.loads(line) for line in lines[0].splitlines()]

    def close(self):
        self.running.kill()
        self._log.close()
        self._reader.join()
