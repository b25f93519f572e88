"""Notes about parts of a platform that do not fit together, against rates by hand."""

import pytest

from hostnet import api, fit


@pytest.fixture
def own(tmp_path):
    def made(keys: str, base: str = "skylake") -> list[str]:
        file = tmp_path / "own.toml"
        sources = "".join(f'"{line.split(" = ")[0]}" = "assumed: a test"\n' for line in keys.splitlines())
        file.write_text(f'name = "own"\nbase = "{base}"\n{keys}\n[provenance]\n{sources}')
        return fit.misfits(api.platform(file))

    return made


def about(said, key):
    return [s for s in said if key in s]


def test_a_faster_link_than_the_path_to_the_home_agent_is_named(own):
    """Sixteen lanes of 32 GT/s carry 63.0 GB/s after the line code; 3 % go to DLLPs and 24 of 280 B to headers: 55.9 GB/s.
    A line each 2 ns is 32 GB/s."""
    said = about(
        own('pcie.generation = "gen5"\npcie.dllp_share = 0.03\npcie.max_payload = "256 B"\npcie.write_overhead = 24'),
        "iio.line_interval",
    )
    assert said == [
        "A port of 16 lanes carries 55.9 GB/s (pcie.generation), and the path to the home agent 32.0, reads and writes "
        "together (iio.line_interval)."
    ]
    assert not about(own('pcie.generation = "gen5"\niio.line_interval = "1 ns"'), "iio.line_interval")


def test_flits_of_gen_6_carry_236_of_256_bytes(own):
    """Sixteen lanes of 64 GT/s are 128 GB/s, of which packets have 118.0; with 24 of 280 B for headers 107.9 are left."""
    keys = 'pcie.generation = "gen6"\npcie.dllp_share = 0\npcie.max_payload = "256 B"\npcie.write_overhead = 24'
    assert about(own(keys), "A port of 16 lanes carries 107.9 GB/s (pcie.generation), and the path to the home agent")


def test_a_wire_that_is_faster_than_the_port_of_the_nic_is_named(own):
    """Eight lanes of 8 GT/s carry 7.88 GB/s after the line code, of which 3 % go to DLLPs and 24 of 280 B to headers: 6.99.
    A wire of 100 Gb/s brings 12.5."""
    keys = 'pcie.dllp_share = 0.03\npcie.max_payload = "256 B"\npcie.write_overhead = 24\nethernet.lanes = 8'
    said = about(own(keys + '\nethernet.link = "100 Gbps"'), "ethernet.link")
    assert said == [
        'ethernet.link = "100 Gbps" brings 12.5 GB/s, and a port of 8 lanes carries 7.0 (ethernet.lanes, pcie.generation).'
    ]
    assert not about(own(keys + '\nethernet.link = "50 Gbps"'), "ethernet.link")


def test_few_buffers_for_a_fast_link_are_named(own):
    """Eight lines that are held for 160 ns or more are at most 3.2 GB/s, of 15.3 GB/s by gen 3 and 16 lanes."""
    said = about(own("iio.write_buffer = 8"), "iio.write_buffer")
    assert len(said) == 1 and "8 lines for" in said[0]
    assert len(about(own("pcie.posted_lines = 4"), "(pcie.posted_lines)")) == 1


def test_cores_that_cannot_fill_the_channels_are_named(own):
    """One core with four line fill buffers and no prefetcher has 256 B under way."""
    said = about(own("core.count = 1\ncore.lfb = 4\ncore.prefetch.enabled = false"), "core.count")
    assert len(said) == 1 and "All cores together reach less than" in said[0] and "memory.channels" in said[0]


def test_the_cores_of_a_node_are_those_that_its_key_gives(own):
    """The 32 cores of both sockets of `icx` fill the channels of a node, and one core does not."""
    assert not about(own("core.prefetch.enabled = false", "icx"), "All cores together")
    said = about(own("nodes.cores = 1\ncore.prefetch.enabled = false", "icx"), "All cores together")
    assert len(said) == 1 and "(nodes.cores, core.lfb, core.prefetch.credits)" in said[0]


def test_parts_that_take_no_time_bound_nothing(own):
    """Credits that come back at once carry any rate, and cores whose loads take no time fill any channels."""
    nothing = ["iio.to_cha", "iio.from_cha", "iio.ownership", "iio.line_interval", "pcie.propagation"]
    said = own("\n".join(f'{key} = "0 ns"' for key in [*nothing, "caches.llc.write_ack"]), "icelake")
    assert not about(said, "iio.write_buffer") and not about(said, "pcie.posted_lines")
    cycles = ["caches.l1d.latency_cycles", "caches.l2.latency_cycles", "caches.llc.latency_cycles", "caches.noc_cycles"]
    keys = "\n".join(f"{key} = 0" for key in [*cycles, "memory.static_latency_ns"])
    assert not about(own(f"core.count = 1\ncore.lfb = 1\n{keys}"), "All cores together")


def test_a_link_that_is_faster_than_all_memory_is_named(own):
    """One channel of DDR4-2400 carries 19.2 GB/s, of which 16 lanes of gen 5 alone carry more."""
    keys = 'memory.channels = 1\nmemory.standard = "DDR4-2400"\nmemory.mapping = "RoBaRaCoCh"\npcie.generation = "gen5"'
    said = about(own(keys), "1 channels of DDR4-2400 carry 19.2")
    assert len(said) == 1 and "pcie.generation" in said[0]


def test_an_inclusive_llc_that_is_smaller_than_the_l2s_is_named(own):
    """A machine with an L2 of 1 MiB for each of 64 cores needs 64 MiB in an inclusive LLC."""
    keys = 'core.count = 64\ncaches.l2.size = "1 MiB"\ncaches.llc.role = "inclusive"'
    assert len(about(own(keys), "64 L2s of")) == 1
    assert not about(own('core.count = 64\ncaches.l2.size = "1 MiB"'), "L2s of")


def test_the_command_prints_the_notes(cli, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(
        'name = "own"\nbase = "skylake"\niio.write_buffer = 8\n[provenance]\n"iio.write_buffer" = "assumed: a test"\n'
    )
    said = cli("platforms", file, check=0).stdout
    assert "note: A port of 16 lanes carries" in said and "(iio.write_buffer)" in said


def test_a_link_to_memory_that_is_slower_than_cores_and_channels_is_named(own):
    """Twelve channels of DDR5-4800 carry 461 GB/s, and eight cores ask for several hundred."""
    said = about(
        own('caches.llc.quirks.memory_link.read = "57.6 GB/s"', "genoa"), "(caches.llc.quirks.memory_link.read)"
    )
    assert said == [
        "The link between caches and memory carries 57.6 GB/s of loads (caches.llc.quirks.memory_link.read), and 12 channels of "
        "DDR5-4800 carry 461 (memory.channels)."
    ]
    assert not about(own('caches.llc.quirks.memory_link.read = "1 TB/s"', "genoa"), "memory_link.read")
