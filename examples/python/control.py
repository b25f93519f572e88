"""A control plane of one's own: gives devices more LLC ways while packets are evicted before anybody has read them."""

import hostnet as hn


class Grow:
    """Adds a way after an epoch with many unread lines written back, and takes one away after ten epochs without."""

    def __init__(self) -> None:
        self.quiet = 0

    def __call__(self, epoch) -> None:
        self.quiet += 1
        if epoch.llc_wb_unread > 16:
            epoch.ways, self.quiet = min(epoch.ways + 1, 8), 0
        elif self.quiet == 10:
            epoch.ways, self.quiet = max(epoch.ways - 1, 2), 0


def main() -> None:
    bursts = hn.Scenario.load("idio").with_({"placement": {"policy": "ddio", "ways": 2}})
    two = hn.repeat(bursts, 3)
    grown = hn.repeat(bursts, 3, control=Grow, interval="10 us")
    print(hn.compare(two, grown, names=["two ways", "grown"], metrics=["llc_wb", "mlc_wb", "acc_total", "burst_us"]))


if __name__ == "__main__":
    main()
