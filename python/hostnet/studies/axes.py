"""Axes of the published studies: each column that a table has beside metrics, said once.

Tables have their columns in this order. A study takes an axis as it is, or gives its values another place in a scenario (``at``),
named values (``among``), or another meaning or unit (``said``).
"""

from __future__ import annotations

from .grid import Axis

PROGRAM = Axis("program", "real program")
HOW = Axis("how", "recorded, or written by hand")
PLATFORM = Axis("platform", "platform that the point runs on")
QUADRANT = Axis("quadrant", "quadrant of the paper: which of cores and devices read or write")
APP = Axis("app", "application")
PACKET_BYTES = Axis("packet_bytes", "size of a frame, checksum included", unit="B")
INTERVAL_NS = Axis("interval_ns", "processing time of a packet, as the paper names it", unit="ns")
DCA = Axis("dca", "direct cache access: on or off")
CLOCK_GHZ = Axis("clock_ghz", "clock of the cores", unit="GHz")
CORE = Axis("core", "kind of core")
ROB = Axis("rob", "entries of the reorder buffer", unit="entries")
L1_KIB = Axis("l1_kib", "size of an L1 data cache", unit="KiB")
L2_KIB = Axis("l2_kib", "size of an L2 cache", unit="KiB")
LLC_MIB = Axis("llc_mib", "size of the LLC", unit="MiB")
WRITE_BACK = Axis("write_back", "used descriptors from which on the NIC writes them back")
RUN = Axis("run", "who takes part: colocated, cores alone or the device alone")
DDIO = Axis("ddio", "DDIO: on or off")
PREFETCH = Axis("prefetch", "which sides prefetch")
READ_PCT = Axis("read_pct", "share of reads in the traffic of the streams", unit="%")
C2M = Axis("c2m", "traffic of the cores: read or readwrite")
P2M = Axis("p2m", "traffic of the device: read or write")
COUNT = Axis("n", "cores, or functions, that take part")
CHASERS = Axis("chasers", "threads that follow chases", unit="threads")
CHASES = Axis("chases", "independent chases of each of them", unit="chases")
STREAMS = Axis("streams", "threads with streams", unit="threads")
ORDER = Axis("order", "order of the accesses of a stream")
STORE_PCT = Axis("store_pct", "share of a stream's lines that are stored to", unit="%")
REPEAT = Axis("repeat", "number of the repetition")
CASE = Axis("case", "what the row is for, where a study has several kinds")
SCENARIO = Axis("scenario", "applications that run beside each other")
LEVEL = Axis("level", "load of the server")
APP_WAYS = Axis("app_ways", "LLC ways of the application")
REQUEST = Axis("request", "kind of request of the directed test")
LOCATION = Axis("location", "place of the line before the directed test")
MLC_DIRTY = Axis("mlc_dirty", "whether the L2 holds a dirty copy")
STATUS = Axis("status", "where IDIO's FSM places the payload")
APP_CLASS = Axis("app_class", "IDIO's class of the application")
SYSTEM = Axis("system", "system, or placement of inbound lines, that is compared")
INJECTION = Axis("injection", "how the packets of the directed test arrive")
AGENT = Axis("agent", "who sweeps the lines of the directed test")
EVICTION = Axis("eviction", "when the lines are evicted: before or after they are read")
GUARD = Axis("guard", "what keeps a sweep from losing newer data")
MODE = Axis("mode", "way of running the application or sharing the LLC")
ITEM_BYTES = Axis("item_bytes", "size of an item, or of a packet", unit="B")
BUF = Axis("buf", "receive buffers of each core", unit="buffers", paths=("rings.rx_buffers",))
WAYS = Axis("ways", "LLC ways that devices allocate into", unit="ways", paths=("placement.ways",))
DEPTH = Axis("depth", "packets of the standing queue of each core", unit="packets", paths=("traffic.depth",))
STALL_PCT = Axis(
    "stall_pct", "share of requests that stall their core", unit="%", paths=("traffic.spikes.probability",)
)
ENDPOINTS = Axis("endpoints", "client endpoints of each core")
CHANNELS = Axis("channels", "memory channels", unit="channels", paths=("override.memory.channels",))
SPLIT_A = Axis("split_a", "LLC ways of DDIO", unit="ways")
SPLIT_B = Axis("split_b", "LLC ways of X-Mem", unit="ways")
RING = Axis("ring", "descriptors of a ring", unit="descriptors")
PACKETS = Axis("packets", "packets in flight, or measured", unit="packets")
RATE_GBPS = Axis("rate_gbps", "offered rate, in a burst where there are bursts", unit="Gb/s")
CORE_GBPS = Axis("core_gbps", "constant rate of each function", unit="Gb/s")
THR_MTPS = Axis("thr_mtps", "write-backs of an L2 that are high pressure", unit="MTPS")
LINK = Axis("link", "link between host and device")
PLACE = Axis("place", "where the line that is read lies")
PLACED = Axis("placed", "where the rings' homes are")
LAYOUT = Axis("layout", "layout of a ring's descriptors")
SIGNAL = Axis("signal", "how the other side learns of a packet")
VARIANT = Axis("variant", "part of CC-NIC that is left out or replaced")
POOL = Axis("pool", "who manages the buffers")
POLICY = Axis("policy", "placement policy, or instruction that stands in its place")
ALLOC_ORDER = Axis("alloc_order", "order in which buffers are allocated")
MADE_OF = Axis("made_of", "what the device's side is made of")
TOUCH = Axis("touch", "part of a packet that is read")
STORES_AS = Axis("stores_as", "how the payload is stored")
PAIRS = Axis("pairs", "pairs of queues", unit="pairs")
TX_BATCH = Axis("tx_batch", "packets of a transmit batch", unit="packets")
RX_BATCH = Axis("rx_batch", "packets of a receive batch", unit="packets")
NIC_THREADS = Axis("nic_threads", "threads of the device's side", unit="threads")
QUEUES = Axis("queues", "queue pairs", unit="pairs")
SIGNALLING = Axis("signalling", "how the device learns of work: polling or event")
NIC_READS = Axis("nic_reads", "part of a packet that the device reads")
ACCESS = Axis("access", "kind of access to the device")
LOAD_BYTES = Axis("load_bytes", "size of a load", unit="B")
TARGET = Axis("target", "memory that is stored to")
BLOCK_BYTES = Axis("block_bytes", "bytes stored without a fence", unit="B")
STORES = Axis("stores", "stores without a fence", unit="stores")
SLOWDOWN = Axis("slowdown", "factor by which the link is slowed down", unit="x")
SHARE = Axis("share", "offered rate over a peak")
UNCORE_GHZ = Axis("uncore_ghz", "clock of the uncore", unit="GHz")
CALLS = Axis("calls", "calls of each thread in flight", unit="calls")
RATE_MRPS = Axis("rate_mrps", "offered rate", unit="Mrps")
RATE_BASIS = Axis("rate_basis", "whose peak the rate is a share of")
LOAD = Axis("load", "rule that sets the load")
QUICK = Axis("quick", "whether fewer requests were measured")

#: In the order in which tables have them; ``quick`` comes after them.
AXES = (
    PROGRAM,
    HOW,
    PLATFORM,
    QUADRANT,
    APP,
    PACKET_BYTES,
    INTERVAL_NS,
    DCA,
    CLOCK_GHZ,
    CORE,
    ROB,
    L1_KIB,
    L2_KIB,
    LLC_MIB,
    WRITE_BACK,
    RUN,
    DDIO,
    PREFETCH,
    READ_PCT,
    C2M,
    P2M,
    COUNT,
    CHASERS,
    CHASES,
    STREAMS,
    ORDER,
    STORE_PCT,
    REPEAT,
    CASE,
    SCENARIO,
    LEVEL,
    APP_WAYS,
    REQUEST,
    LOCATION,
    MLC_DIRTY,
    STATUS,
    APP_CLASS,
    SYSTEM,
    INJECTION,
    AGENT,
    EVICTION,
    GUARD,
    MODE,
    ITEM_BYTES,
    BUF,
    WAYS,
    DEPTH,
    STALL_PCT,
    ENDPOINTS,
    CHANNELS,
    SPLIT_A,
    SPLIT_B,
    RING,
    PACKETS,
    RATE_GBPS,
    CORE_GBPS,
    THR_MTPS,
    LINK,
    PLACE,
    PLACED,
    LAYOUT,
    SIGNAL,
    VARIANT,
    POOL,
    POLICY,
    ALLOC_ORDER,
    MADE_OF,
    TOUCH,
    STORES_AS,
    PAIRS,
    TX_BATCH,
    RX_BATCH,
    NIC_THREADS,
    QUEUES,
    SIGNALLING,
    NIC_READS,
    ACCESS,
    LOAD_BYTES,
    TARGET,
    BLOCK_BYTES,
    STORES,
    SLOWDOWN,
    SHARE,
    UNCORE_GHZ,
    CALLS,
    RATE_MRPS,
    RATE_BASIS,
    LOAD,
)


def with_own(*own: Axis) -> tuple[Axis, ...]:
    """The axes, with a study's own in place of those of the same column."""
    named = {axis.column: axis for axis in own}
    return tuple(named.get(axis.column, axis) for axis in AXES)
