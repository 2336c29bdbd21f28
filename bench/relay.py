# SPDX-License-Identifier: Apache-2.0
"""How fast bytes pass: one connection through netgate against one that the kernel routes over the same number of links."""

import argparse
import collections
import statistics

from common import HOST, RAW_PORT, Bench, cpu_ns, figure, interleaved, table, user_share

# What: the client's order.
TRANSFERS = {
    "download, raw TCP": f"get {RAW_PORT}",
    "upload, raw TCP": f"put {RAW_PORT}",
    "download, HTTP body": f"http-get {HOST}",
    "upload, HTTP body": f"http-put {HOST}",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--megabytes", type=int, default=512, help="of one transfer")
    options = parser.parse_args()
    size = options.megabytes * 1000 * 1000
    speed, cpu = collections.defaultdict(list), collections.defaultdict(list)

    with Bench() as bench, bench.sandboxed("--allow", HOST, "--allow", f"{HOST}:{RAW_PORT}") as (sandboxed, proxy):
        clients = {"routed": bench.routed_client(), "netgate": sandboxed}

        def way(where, what):
            def transfer():
                before = cpu_ns(proxy)
                answer = clients[where].tell(f"{TRANSFERS[what]} {size}")
                speed[where, what].append(size * 8 / answer["ns"])
                if where == "netgate":
                    cpu[what].append((cpu_ns(proxy) - before) / size)
            return transfer

        for what in TRANSFERS:
            interleaved(options.rounds, way("routed", what), way("netgate", what))
        share = user_share(proxy)

    rows = []
    for what in TRANSFERS:
        ratios = [mine / theirs for mine, theirs in zip(speed["netgate", what], speed["routed", what], strict=True)]
        rows.append([what, figure(speed["routed", what]), figure(speed["netgate", what]),
                     f"{statistics.median(ratios):.2f}", figure(cpu[what], 3)])
    table(f"Relay, one connection of {options.megabytes} MB ({options.rounds} rounds)",
          ["transfer", "routed, Gbit/s", "netgate, Gbit/s", "ratio", "proxy, CPU s per GB"], rows)
    print(f"\nOf the proxy's CPU time, {share:.0%} is its own code, the rest the kernel's.")


if __name__ == "__main__":
    main()
