# SPDX-License-Identifier: Apache-2.0
"""One asyncio loop in a thread of its own, on which the lab's servers run, and waiting for a condition without sleeping blindly."""

import asyncio
import threading
import time


class Loop:
    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="lab-loop", daemon=True)
        self._thread.start()

    def call(self, coroutine, timeout=60):
        """Runs a coroutine on the loop and returns its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout)

    def stop(self):
        async def cancel():
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self.call(cancel())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()


def wait_for(condition, what="a condition", timeout=120):
    """Polls until `condition()` is true and returns its value; the timeout is only for a test that hangs."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what}: still not so after {timeout} s")
        time.sleep(0.01)
