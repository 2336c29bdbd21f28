# SPDX-License-Identifier: Apache-2.0
"""What a connection costs: how many a second, how much of a CPU each, and how much memory while it is idle."""

import argparse
import collections
import statistics

from common import HOST, Bench, cpu_ns, figure, interleaved, memory_kb, table, user_share

MANY = 32  # at once


def rates(bench, rounds, count):
    """`count` connections with MANY at once and a fifth of that one after the other."""
    loads = {MANY: count, 1: count // 5}
    rate, cpu = collections.defaultdict(list), collections.defaultdict(list)
    with bench.sandboxed("--allow", HOST) as (sandboxed, proxy):
        clients = {"routed": bench.routed_client(), "netgate": sandboxed}

        def way(where, at_once):
            def connect():
                n, before = loads[at_once], cpu_ns(proxy)
                answer = clients[where].tell(f"hellos {HOST} {n} {at_once}")
                rate[where, at_once].append(n * 1e9 / answer["ns"])
                if where == "netgate":
                    cpu[at_once].append((cpu_ns(proxy) - before) / 1000 / n)
            return connect

        for at_once in loads:
            interleaved(rounds, way("routed", at_once), way("netgate", at_once))
        share = user_share(proxy)
    rows = []
    for at_once in loads:
        one = [1e6 / value for value in rate["netgate", at_once]] if at_once == 1 else None
        ratio = statistics.median(rate["netgate", at_once]) / statistics.median(rate["routed", at_once])
        rows.append([f"{at_once} at once", figure(rate["routed", at_once], 0), figure(rate["netgate", at_once], 0),
                     f"{ratio:.2f}", figure(one, 0) if one else "", figure(cpu[at_once], 0)])
    table(f"Connections: TLS hello, one byte back, close ({rounds} rounds of {count})",
          ["connections", "routed, per s", "netgate, per s", "ratio", "µs each, in sequence",
           "proxy, CPU µs each"], rows)
    print(f"\nOf the proxy's CPU time, {share:.0%} is its own code, the rest the kernel's.")


def memory(bench, steps):
    """The proxy's memory with so many idle tunnels open."""
    rows, last = [], None
    with bench.sandboxed("--allow", HOST) as (client, proxy):
        for count in (0, *steps):
            if last is not None:
                client.tell(f"hold {HOST} {count - last[0]} {MANY}")
            now = memory_kb(proxy)
            each = ""
            if last is not None:
                each = f"{(now['Private_Dirty'] - last[1]['Private_Dirty']) * 1024 / (count - last[0]):.0f}"
            rows.append([count, now["Rss"], now["Pss"], now["Private_Dirty"], each])
            last = (count, now)
    table("The proxy's memory with idle tunnels",
          ["tunnels", "RSS, KB", "PSS, KB", "private and dirty, KB", "bytes for each more"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--count", type=int, default=1000, help="connections of a round; TIME_WAIT limits them to 25000 in all")
    parser.add_argument("--idle", type=int, nargs="+", default=[1000, 5000])
    options = parser.parse_args()
    with Bench() as bench:
        rates(bench, options.rounds, options.count)
        memory(bench, options.idle)


if __name__ == "__main__":
    main()
