"""Finds the number of cores beyond which a host's write queues are full, and says what binds there."""

import hostnet as hn


def main() -> None:
    host = hn.Scenario.load("quadrant3")
    for cores in (1, 2, 4, 6):
        explanation = hn.explain(host.with_({"tenant.0.cores": cores}))
        binding = explanation.binding("c2m")
        queue = next(d for d in explanation.domains if d.name == "write queues")
        print(
            f"{cores} cores: {explanation.regime}, write queues {100 * (queue.used or 0):.0f} % full, "
            f"cores bound by {binding.name if binding else 'nothing'}"
        )
        if explanation.regime == "red":
            print(explanation.paragraph())
            break


if __name__ == "__main__":
    main()
