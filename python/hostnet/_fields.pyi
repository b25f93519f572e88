"""The keys of a scenario with types and meanings. Generated from the engine's schema by hostnet._stubs."""

from typing import Literal

from .specs import Section


class BlockSpec(Section):
    """What the block layer costs beside the memory accesses that are simulated."""
    lists: str
    """Bytes of lists that describe a page while it is with the device: an entry each of the bio, the scatter-gather
    list and the PRP list."""
    pin: int
    """Instructions for a page that is handed out."""
    release: int
    """Instructions for a page that comes back."""


class BlockStoresAppSpec(Section):
    """Stores of blocks to a device or to memory, a fence after each."""
    block: str
    """What is stored between two fences."""
    buffer: str
    """What is written again and again: whole blocks."""
    instructions: int
    """Instructions beside the store of each line."""
    kind: Literal['block_stores']
    target: Literal['wc_device'] | Literal['wc_memory'] | Literal['wb_memory']
    """What a block is stored to."""


class CacheSpec(Section):
    """One level of private cache."""
    latency_cycles: int
    """Cycles of the core clock that a look-up adds to an access."""
    replacement: Literal['lru'] | Literal['lru_scan'] | Literal['tree_plru'] | Literal['srrip'] | Literal['nru'] | Literal['random'] | Literal['nmru']
    """Replacement policy."""
    response_cycles: int
    """Cycles of the core clock that a line takes through this cache on its way from the next one to who asked."""
    size: str
    """Capacity."""
    ways: int
    """Associativity."""


class CcnicSpec(Section):
    """The interface between host and NIC over coherent memory (CC-NIC)."""
    buffer_home: Literal['host', 'nic']
    """Home of the buffers."""
    buffers: int
    """Large buffers, before some of them are split into small ones."""
    bulk: int
    """Buffers that come from the pool at once."""
    cache: int | None
    """Size of a thread's cache in front of the pool where nothing is recycled, as `rte_mempool` has it: a call that
    finds too few buffers there takes this many more than it needs, and one that would fill it beyond one and a half
    times this empties it first. 0: each burst goes to the pool. Absent: 250 (testpmd's) where the host alone
    manages buffers, which is what its drivers do, and else 0. Large buffers are then at least a ring each way, a
    burst and a cache for each queue pair."""
    costs: Costs
    """Instructions."""
    free_check: Literal['written'] | Literal['ahead']
    """How a producer learns that a unit is free, with inline signals."""
    host_prefetch: bool
    """Whether the hardware prefetchers of the host's cores run, where the platform has any."""
    idle_queues: int
    """Queue pairs of each of the NIC's threads that nobody uses, beside its own."""
    large_buffer: str
    """Size of a large buffer."""
    layout: Literal['grouped'] | Literal['packed'] | Literal['padded']
    """How descriptors share lines."""
    lazy_release: int
    """Lines of the receive ring that the host keeps before it clears them."""
    mode: Literal['loopback'] | Literal['overlay'] | Literal['forward']
    """What the NIC does with packets."""
    nic: Literal['software'] | Literal['agent']
    """What the NIC is made of."""
    nic_batch: int
    """Most packets that the NIC takes at once."""
    nic_node: int
    """Node of the NIC's cores; the tenant's own is same-socket mode."""
    nic_prefetch: bool
    """The same of the NIC's cores."""
    nic_reads: Literal['payload'] | Literal['header']
    """What the NIC reads of a packet that it sends, in forward mode."""
    nic_requests: int | None
    """Requests that an agent has under way, at most. Absent: 64, which is assumed."""
    nic_threads: int | None
    """Threads of the NIC; as many as the tenant has cores when absent ('1-1'). In overlay mode each has a queue
    pair, and the tenant's cores take turns at theirs. In loopback each of the tenant's cores has a queue pair, and
    the NIC's threads poll theirs in turn."""
    nonsequential: bool
    """Successive allocations from the pool are never adjacent in memory."""
    own_ahead: int
    """Units ahead that a producer asks ownership of, with inline signals; 0: none, as the paper has it. The
    library's is 2."""
    pool: Literal['shared'] | Literal['host']
    """Who manages buffers."""
    pool_scope: Literal['port'] | Literal['pair']
    """Which threads have free buffers in common."""
    preset: Literal['unoptimised'] | None
    """A set of choices with a name."""
    read_ahead: int | None
    """Most lines of grouped descriptors that a consumer asks for, the next one counted, while it finds one ready
    after the other; 0: it waits for each line before it asks for another. The library's is 6. Absent: what a core
    does that predicts its branches, with descriptors of any layout. It asks for as many polls as fit its reorder
    buffer beside the instructions of a unit, and for none behind the burst's last."""
    recycle: bool
    """Buffers that came back last are used first, from stacks of each thread on both sides."""
    release: Literal['none'] | Literal['clflushopt'] | Literal['clwb']
    """What the NIC does with a line of payload that it has read."""
    ring: int
    """Lines of a ring of grouped descriptors; rings of other layouts have as many descriptors, four times this."""
    rx_batch: int
    """Most packets that the host takes at once."""
    rx_home: Literal['host', 'nic']
    """Home of the receive rings."""
    signal: Literal['inline'] | Literal['register']
    """How a consumer learns of descriptors."""
    small_buffer: str
    """Size of a small buffer."""
    small_buffers: bool
    """Packets that fit `small_buffer` use small buffers."""
    small_share: float
    """Share of the large buffers that is split."""
    stack: int
    """Most buffers of a thread's stack of either size."""
    stores: Literal['cached'] | Literal['nontemporal']
    """How payload is written, by both sides."""
    tx_batch: int
    """Most packets that the host sends at once."""
    tx_home: Literal['host', 'nic']
    """Home of the transmit rings."""
    wake: Literal['polling'] | Literal['event']
    """How the NIC learns that a transmit descriptor is there."""


class ClientSpec(Section):
    """A second host, at the other end of the Ethernet NIC's link, whose software sends the traffic and takes the
    replies."""
    app: MicaAppSpec | L3FwdAppSpec | XmemAppSpec | StreamAppSpec | RedisAppSpec | GapbsAppSpec | TcpReceiveAppSpec | TouchdropAppSpec | L2FwdAppSpec | LlcAntagonistAppSpec | TestpmdAppSpec | LoadGeneratorAppSpec | TouchfwdAppSpec | RxptxAppSpec | MemcachedAppSpec | PingpongAppSpec | StreamTransferAppSpec | LoopbackAppSpec | CliqueMapAppSpec | BlockStoresAppSpec | TcpEchoAppSpec | DirectedRxAppSpec | DirectedTxAppSpec | PageReuseAppSpec | ProbeLatencyAppSpec | ProbeDeviceAppSpec | ProbePlaceAppSpec
    """What they run: an application of kind 'load_generator'."""
    cores: int
    """Cores that send and receive; requests go to them in turn."""
    ethernet: EthernetSpec | None
    """Its NIC: what its platform's does not say. Rate and flight time are those of the link."""
    placement: PlacementSpec | None
    """Where its NIC's lines go; as the scenario's when absent."""
    platform: Platform | None
    """Its hardware: the name or path of a platform file; the scenario's own platform when absent."""
    stack: Literal['queue_pair'] | Literal['poll_mode'] | Literal['ccnic'] | Literal['kernel']
    """Who hands packets to them: only 'poll_mode' is built."""


class CliqueMapAppSpec(Section):
    """Key-value server with objects of many sizes, which are sent from where they lie (CliqueMap)."""
    below_100: float
    """Fraction of objects below 100 B. Sizes are log-normal."""
    counted: bool
    """Whether an object's users are counted, by an atomic operation when a reply refers to it and by another one
    when the reply has been sent. Without, an object can be replaced while it is sent."""
    get_fraction: float
    """Fraction of requests that are GETs."""
    get_instructions: int | None
    """Instructions of a GET besides those of the driver and for mbufs: the header that comes, the look-up, the
    reply's header and its second segment. Absent: 309, or 319 of a look-up in bulk. These are measured: of a server
    over DPDK 22.11, with callgrind."""
    headers: int
    """Bytes of a frame beside the object."""
    kind: Literal['clique_map']
    largest: str
    """The size that 0.01 % of objects would be above: those are cut to it."""
    lookup: Literal['single'] | Literal['bulk']
    """How GETs are looked up in the index. The default is assumed: the paper says only that the index is DPDK's."""
    objects: int
    """Objects, each with a key."""
    set_instructions: int | None
    """The same of a SET, whose copy comes on top: the object that it makes, two look-ups, locks, the object that it
    drops. Absent: 582, or 597 beside a look-up in bulk, whose loop passes SETs by."""
    zipf: float
    """Skew of the keys' popularity: zipf exponent; 0 is uniform."""


class CoreSpec(Section):
    """One kind of core."""
    clock: str
    """Clock."""
    combining_buffers: int | None
    """Write-combining buffers, of a line each. One when absent."""
    compute_ipc: float
    """Instructions a cycle that code other than line copies sustains: dependences, branches and instruction fetch
    keep it below the width."""
    count: int
    """Cores on the host."""
    l1_prefetch: L1PrefetchSpec | None
    """Prefetchers of the L1; none when absent. They follow loads of application memory."""
    l2_mshrs: int | None
    """L2 misses under way at once, those of prefetches included. When absent, line fill buffers and the
    prefetcher's credits are the only bounds; where a NIC's hints are followed, both together are."""
    lfb: int
    """Line fill buffers: L1 misses under way at once, loads and stores together."""
    lfb_retry: str
    """How long after a line fill buffer has become free a miss that found none takes it."""
    lfb_targets: int | None
    """Accesses that one line fill buffer takes. One more blocks the L1 until the line is there, and loads then go
    on one a cycle. Without a limit when absent."""
    pipeline: Literal['out_of_order'] | Literal['in_order']
    """Scheduling."""
    prefetch: PrefetchSpec | None
    """Prefetcher of the L2; none when absent. It follows application memory, and a NIC's buffers if it is told
    to."""
    rob: int
    """Reorder buffer entries."""
    stlb: TlbSpec | None
    """Second-level TLB; addresses cost nothing to translate when absent. Redis servers use it."""
    store_queue: int
    """Store queue entries; a 64-byte line store takes `stores_per_line`."""
    stores_per_line: int
    """Load (or store) instructions that move one 64-byte line."""
    threads: int
    """Hardware threads of each, 1 or 2. With two, a node has twice as many logical cores, numbered as Linux does:
    those beyond its cores are the second threads of the first ones."""
    width: int
    """Instructions dispatched (and retired) a cycle."""


class Costs(Section):
    """Instructions of the interface, which touch no lines that the two sides share."""
    alloc: int
    """Allocating a buffer."""
    free: int
    """Freeing a buffer."""
    host_rx: int
    """The host's, for a packet that it receives, reading it included."""
    host_tx: int
    """The host's, for a packet that it sends, writing it included."""
    nic_rx: int
    """The NIC's, for a packet that it delivers."""
    nic_tx: int
    """The NIC's, for a packet that it takes."""
    poll: int
    """A poll that finds nothing, or a burst's first line."""
    pool: int
    """A bulk operation on the pool."""
    unit: int
    """A unit that is written or read: a line of up to four descriptors, or one descriptor."""


class DctcpSpec(Section):
    """Senders of TCP flows, one flow to each receiving core."""
    ack_delay: str
    """From the receiver's stack to the sender's: flight, interrupt and softirq of the sender."""
    burst: int
    """Segments that a flow sends back to back before another has its turn (TCP segmentation offload)."""
    gain: float
    """Weight of a window's marked share in the estimate alpha."""
    initial_window: int
    """Segments that a flow may send at once at its beginning."""
    mark: str
    """Bytes in the switch's queue above which it marks (ECN)."""
    ports: int
    """Ports that the flows are spread over. With more than one, a switch joins them; a single one sends
    directly."""
    probe: str
    """Silence after which the last segment is sent again."""
    queue: str
    """Bytes that the switch's queue holds."""
    send_buffer: str
    """What a sender's socket may hold until it is acknowledged (`tcp_wmem`, its tuning off)."""


class DirectedRxAppSpec(Section):
    """Directed test of one receive buffer's life."""
    blocks: int
    """Cache blocks of the packet."""
    evict: Literal['none', 'before_use', 'after_use']
    """When to force an eviction."""
    kind: Literal['directed_rx']


class DirectedTxAppSpec(Section):
    """Directed test of one transmit buffer's life."""
    blocks: int
    """Cache blocks of the packet."""
    busy: str
    """How long the core is busy with something else after posting."""
    kind: Literal['directed_tx']


class DramSpec(Section):
    """One memory system: standard, organisation, controller policy."""
    age_cap_ns: int
    """Age in ns at which a request may close a row that still has hits; 0 is no cap."""
    alignment: str
    """Rings, buffers and tables begin at multiples of this, back to back: a power of two from 4 KiB to 4 MiB."""
    bank_groups: int
    """Bank groups per rank; 0 takes the standard's."""
    bank_hash: bool
    """Permutation-based interleaving: low row bits are XORed into bank and group."""
    bank_queue: int
    """Entries of a command queue per bank behind these two (DRAMsim3 has 8); 0 is none, and the controller picks
    from the read or write queue itself. With it, bank queues take turns, write mode is the handover of as many
    writes as waited when it began, and `scheduler`, `entry_release`, `age_cap_ns`, `page_idle_ns` and the burst
    lengths have no effect."""
    banks_per_group: int
    """Banks per group; 0 takes the standard's."""
    channel_hash: bool
    """Hashes higher address bits into the channel."""
    channels: int
    """Channels, 1 to 16; need not be a power of two."""
    device_width: Literal['x8', 'x16']
    """Width of a device; x16 parts have half the bank groups and slower activates."""
    entry_release: Literal['activate'] | Literal['column'] | Literal['data']
    """When an entry of these queues becomes free."""
    mapping: str
    """Fields from the top address bit down (`rorababgcoch`, `RoBaRaCoCh`), `MOP4CLXOR`, or `skylake`: the hash of
    that processor with two channels of two ranks; or `zsim`: an XOR of the line number's 16-bit groups picks the
    channel, its lowest bits the bank."""
    max_write_burst: int
    """Writes after which write mode ends when reads wait; 0 is no limit."""
    min_read_burst: int
    """Reads to serve before write mode may begin, unless none is left."""
    min_write_burst: int
    """Writes to serve before write mode may end, unless none is left."""
    overflow: Literal['apart'] | Literal['shared']
    """Where requests wait that come while a queue is full."""
    page_idle_ns: float
    """Time after which a row that nobody uses or waits for is closed; 0 leaves it open."""
    page_policy: Literal['open'] | Literal['closed'] | Literal['open_adaptive'] | Literal['closed_adaptive']
    """What happens to a row after an access."""
    ranks: int
    """Ranks per channel: 1, 2, 4 or 8."""
    refresh: bool
    """All-bank refresh, ranks in turn."""
    refresh_turns: bool
    """While a rank refreshes, reads or writes that all wait for it give way to the other direction. Without, the
    channel stays in its mode."""
    row_access_limit: int
    """Accesses after which a row is closed; 0 is no limit (gem5 uses 16)."""
    row_hit_limit: int
    """Row accesses after which the oldest request of a bank queue may close the row although younger hits wait
    (DRAMsim3 has 4); 0 is no limit. Only with `bank_queue`."""
    rpq: int
    """Read queue entries per channel."""
    rpq_full_mark: int
    """Read queue entries from which on the read queue counts as full in `rpq_full_frac`; 0 takes `rpq`."""
    scheduler: Literal['hit_first'] | Literal['first_ready'] | Literal['transaction'] | Literal['on_arrival']
    """Order among possible commands."""
    standard: Literal['DDR4-2400'] | Literal['DDR4-2666'] | Literal['DDR4-2933'] | Literal['DDR4-3200'] | Literal['DDR5-4800'] | Literal['DDR5-5600'] | Literal['HBM2E-3200'] | Literal['LPDDR5-6400']
    """Memory type and speed bin."""
    static_latency_ns: float
    """Front-end and back-end pipeline of the controller, added to each read, in ns."""
    timing: TimingOverride
    """Timings that differ from the standard's."""
    wpq: int
    """Write queue entries per channel."""
    wpq_full_mark: int
    """The same of the write queue."""
    write_high: float
    """Write mode begins when the write queue holds more than this fraction."""
    write_idle: float
    """With no read waiting, write mode begins above this fraction."""
    write_low: float
    """Write mode ends when it holds less than this fraction and reads wait."""
    writes_yield: bool
    """Writes sent for want of reads make room at once when a read comes, unless the queue holds more than
    `write_high` by then."""


class EthernetPeripheralSpec(Section):
    """Ethernet NIC behind a PCIe port, for a poll-mode driver or the kernel's TCP and UDP."""
    descriptors: int
    """Receive descriptors of each core, one a frame."""
    flow_director: list[FlowRule]
    """Flow director: flows of `traffic.flows` that go to a said queue; RSS spreads the others by their Toeplitz
    hash."""
    framing: int
    """Bytes of a frame on the wire beside the IP packet: preamble, header, FCS, gap."""
    headers: int
    """Bytes of IP and TCP headers with timestamps."""
    host_mark: int | None
    """Congestion of the host told to the senders (hostCC, SIGCOMM'23): frames that come while the IIO has this many
    write entries in use, on a moving average, count as marked. Absent: never."""
    host_response: HostResponse | None
    """What the host does itself about its congestion. Absent: nothing."""
    kind: Literal['ethernet']
    lanes: int
    """PCIe lanes."""
    link: str
    """Rate of the link."""
    loopback: bool
    """The far end of the wire returns each frame to the queue that it left from: it is back after twice
    `propagation`. For an `app` of kind 'loopback'."""
    moderation: str
    """From a frame's completion in memory to an interrupt, unless many come."""
    moderation_frames: int
    """Completions that raise the interrupt at once."""
    mtu: str
    """Largest IP packet."""
    page: str
    """Contiguous physical memory of the pool; larger pieces lie anywhere. The kernel counts the users of each."""
    pool: str
    """Memory that each core's frames go through: pages are used again after that much."""
    propagation: str
    """Flight time of a frame, MAC to MAC."""
    receive_buffer: str
    """Receive buffer of the NIC."""
    rings: RingsSpec | None
    """Descriptor rings in memory, for a poll-mode driver and for the kernel's UDP; their defaults when absent."""
    tags: int
    """Read requests that the NIC has under way at most."""


class EthernetSpec(Section):
    """An Ethernet NIC, under the kernel or under a poll-mode driver."""
    descriptors: int
    """Receive descriptors of each core, one a frame."""
    flow_director: list[FlowRule]
    """Flow director: flows of `traffic.flows` that go to a said queue; RSS spreads the others by their Toeplitz
    hash."""
    framing: int
    """Bytes of a frame on the wire beside the IP packet: preamble, header, FCS, gap."""
    headers: int
    """Bytes of IP and TCP headers with timestamps."""
    host_mark: int | None
    """Congestion of the host told to the senders (hostCC, SIGCOMM'23): frames that come while the IIO has this many
    write entries in use, on a moving average, count as marked. Absent: never."""
    host_response: HostResponse | None
    """What the host does itself about its congestion. Absent: nothing."""
    lanes: int
    """PCIe lanes."""
    link: str
    """Rate of the link."""
    loopback: bool
    """The far end of the wire returns each frame to the queue that it left from: it is back after twice
    `propagation`. For an `app` of kind 'loopback'."""
    moderation: str
    """From a frame's completion in memory to an interrupt, unless many come."""
    moderation_frames: int
    """Completions that raise the interrupt at once."""
    mtu: str
    """Largest IP packet."""
    page: str
    """Contiguous physical memory of the pool; larger pieces lie anywhere. The kernel counts the users of each."""
    pool: str
    """Memory that each core's frames go through: pages are used again after that much."""
    propagation: str
    """Flight time of a frame, MAC to MAC."""
    receive_buffer: str
    """Receive buffer of the NIC."""
    rings: RingsSpec | None
    """Descriptor rings in memory, for a poll-mode driver and for the kernel's UDP; their defaults when absent."""
    tags: int
    """Read requests that the NIC has under way at most."""


class FastPathCosts(Section):
    """Instructions of TAS's fast path beside the NIC's driver. The defaults were counted in TAS (d3926ba, gcc -O3,
    x86-64-v3), in a harness that plays NIC and application, as the difference of bursts of one and of sixteen."""
    acknowledgement: int
    """A segment that only acknowledges."""
    burst: int
    """The fixed part of a burst that was received."""
    data: int
    """A segment with data: look-up, parsing, flow state, entry for the application, acknowledgement."""
    entry: int
    """An entry of the application: flow state, place in the queue manager, whose flows have a rate (TAS's
    default)."""
    segment: int
    """A segment that is sent."""
    turn: int
    """A turn that finds nothing: NIC, queue manager, sixteen contexts, slow path."""


class FlowRule(Section):
    """An exact match of the flow director."""
    flow: int
    """Number of the flow, from 0."""
    queue: int
    """Queue, and so core of the tenant, from 0."""


class GapbsAppSpec(Section):
    """A kernel of the GAP Benchmark Suite on a random graph."""
    contiguous: str
    """Contiguous physical memory; larger pieces of an array lie anywhere."""
    degree: int
    """Edges that the generator draws per node; each is stored at both of its ends."""
    kernel: Literal['pagerank'] | Literal['betweenness']
    """What is computed."""
    kind: Literal['gapbs']
    scale: int
    """Binary logarithm of the number of nodes."""


class HierarchySpec(Section):
    """Private caches of every core, the shared cache and the crossbar between them."""
    l1d: CacheSpec
    """Level-one data cache, one per core."""
    l2: CacheSpec
    """Level-two (mid-level) cache, one per core."""
    l2_inclusive: bool
    """L2 holds every line of its L1."""
    llc: LlcSpec
    """Last-level cache."""
    noc_cycles: int
    """Cycles of the uncore clock for one traversal of the crossbar, each way."""
    uncore_clock: str
    """Clock of the LLC, the crossbar and the home agent."""


class HostResponse(Section):
    """hostCC's host-local response: levels by which memory requests of the other tenants' cores are held back.
    While the IIO is congested and the network has less than its target, the level rises; with room in the IIO and
    more than the target, it falls."""
    interval: str
    """Time between two looks at the host. The default is assumed, about what a change of throttling takes."""
    levels: list[str]
    """Level by level, how much longer a miss waits for a line fill buffer of those cores; level 0 adds nothing. The
    defaults are assumed: hostCC throttles the cores of more and more of its nodes, and stops them at last."""
    occupancy: int
    """The IIO is congested with this many write entries in use, on a moving average."""
    patience: str
    """Least time from one step down to the next; by default that of hostCC's code."""
    target: str
    """What the network is to have, in frames that reach memory."""


class IatSpec(Section):
    """The control loop."""
    epoch: str
    """Time between decisions."""
    grow_above: float
    """Write misses per line written above which it gets one way more."""
    max_ways: int
    """Most ways the NIC may have."""
    min_ways: int
    """Fewest ways the NIC keeps."""
    shrink_below: float
    """Write misses per line written below which it loses one."""


class IdioSpec(Section):
    """Thresholds, intervals and choices of IDIO."""
    average: int
    """Intervals in an average of write-backs."""
    burst: Literal['edge'] | Literal['level']
    """When packets are marked as a burst."""
    burst_threshold: str
    """Rate to a core above which the NIC tells of a burst (rxBurstTHR)."""
    class1_dscp: list[int]
    """DSCP values of class 1: payload that is hardly ever read, or late."""
    hint_overflow: Literal['drop'] | Literal['stall']
    """What becomes of a hint that finds the queue full."""
    hint_queue: int
    """Hints that an L2's prefetcher holds."""
    interval: str
    """Interval of the NIC's byte counters and of the control plane."""
    invalidate: Literal['mlc'] | Literal['llc']
    """How far invalidations reach."""
    invalidate_form: Literal['line'] | Literal['range']
    """What one invalidate instruction covers."""
    mlc_threshold: str
    """Write-backs of an L2 beyond their average that are high pressure (mlcTHR)."""
    status: Literal['saturated'] | Literal['upper']
    """States of the FSM in which payload stays in the LLC."""
    sticky: bool
    """State 0b11 is left by a burst alone, not by low pressure."""


class IioSpec(Section):
    """Buffers of the IIO and its distance to the home agent."""
    count: int
    """Controllers, each with buffers of its own; devices are dealt out to them in turn."""
    fetch_partial: bool
    """A write of a part of a line reads the line first, as a cache in front of the home agent does that writes back
    whole lines. When false, it goes on as a whole line does."""
    from_cha: str
    """From the home agent's answer to the entry's release."""
    line_header: str | None
    """The part of `line_interval` that a write takes however few of its line's bytes it has; the rest is in
    proportion to them. Every line takes all of it when absent."""
    line_interval: str
    """Time between two lines on their way to the home agent: a clock of the IIO's coherent side."""
    ownership: str
    """Time at the home agent that a write takes beside the way to the memory controller: ownership of the line,
    without which it may not go on."""
    read_buffer: int
    """Read buffer entries of each: credits of the P2M-Read domain."""
    register_write: str
    """Way of a register write beside the link: bridges in front of it, and the register."""
    shared_with_cores: bool
    """Requests of cores pass the way to the home agent too, each `line_interval`. A modified line that their L2s
    give to the LLC takes `write_back_interval`, as one of the cache in front does. It is the way of the NIC's
    port."""
    to_cha: str
    """From an entry's allocation to the arrival at the home agent."""
    write_back_buffer: int
    """Lines that may wait to be written back; requests wait for the oldest when there are more."""
    write_back_interval: str
    """How long a line takes the way to the home agent when a cache in front of it writes the line back. Such a
    cache keeps what devices write to caches, and what they read while the LLC had it modified; each of these lines
    goes back once, behind requests. A request then takes `line_interval` without data. Zero: there is no such
    cache."""
    write_buffer: int
    """Write buffer entries of each: credits of the P2M-Write domain."""


class L1PrefetchSpec(Section):
    """The L1's prefetchers."""
    enabled: bool
    """Whether they work."""
    instructions: int
    """Instructions whose strides are followed; 0: none. Each load at the stride fetches one line more at that
    distance."""
    longest: str
    """Longest stride."""
    misses: int
    """They fetch while fewer line fill buffers than these are in use."""
    recent: int
    """Lines loaded last that the next-line prefetcher knows; 0: there is none. A load of the line behind one of
    them fetches the line behind its own, and so do several loads of one line."""
    stores: int
    """They fetch nothing behind so many stores in a row, counted in lines."""
    trigger: int
    """Loads at one distance that make a stride, the first included."""


class L2FwdAppSpec(Section):
    """Layer-2 forwarder: edits the header and sends the packet in place, or drops it."""
    instructions: int
    """Instructions per packet besides the header's load and store."""
    kind: Literal['l2fwd']
    payload: Literal['forward'] | Literal['drop']
    """What becomes of a packet."""


class L3FwdAppSpec(Section):
    """Layer-3 forwarder."""
    instructions: int
    """Instructions per packet besides loads and stores of lines."""
    kind: Literal['l3fwd']
    rules: int
    """Routes, each a /24 or a 5-tuple of its own; packets spread evenly over them."""
    table: Literal['lpm'] | Literal['exact_match']
    """How a route is found."""
    table_entries: int | None
    """Keys that an exact-match table has room for, at least `rules`; twice as many as these when absent."""
    zero_copy: bool
    """Edits the packet in its receive buffer and sends it from there; otherwise it is copied to a transmit
    buffer."""


class LlcAntagonistAppSpec(Section):
    """Random reads and writes of a private buffer; its measure is the cycles of an instruction."""
    buffer: str
    """Each core's buffer."""
    gap_instructions: int
    """Instructions between two accesses."""
    kind: Literal['llc_antagonist']
    writes: float
    """Share of the accesses that write."""


class LlcSpec(Section):
    """The shared last-level cache and its home agent (CHA)."""
    clean_victim: Literal['allocate'] | Literal['allocate_fetched'] | Literal['drop']
    """Where clean L2 victims go."""
    clean_victim_cleans: bool
    """A clean L2 victim that finds its line dirty leaves it clean, so that its data is lost. Sweeper's published
    runs were made so, by a slip; no machine does it."""
    device_read: Literal['snapshot'] | Literal['demote'] | Literal['install']
    """What a device's read does with the line's copies."""
    device_read_ages: bool
    """A line that a device reads in the LLC has the oldest age then, as nobody is expected to use it; else the read
    counts as a use. Needs replacement = 'srrip'."""
    device_ways: Literal['lowest'] | Literal['highest']
    """Which ways a placement policy's first ways are."""
    inclusive_ways: int
    """Directory-inclusive ways: those for lines that a core has too, at the other end of a set than the ways of
    devices. Victims of L2s go elsewhere. None when 0; they need role = 'victim'."""
    indexing: Literal['modulo'] | Literal['hashed_slices'] | Literal['interleaved_slices'] | Literal['even_slices'] | Literal['folded_slices']
    """How lines spread over slices."""
    latency_cycles: int
    """Cycles of the uncore clock that a look-up adds to an access."""
    modified_read: Literal['share'] | Literal['take']
    """What a read of a line leaves that another core of the node has modified."""
    mshrs: int
    """Miss status holding registers of each slice; 0 is no limit. A miss holds one until its data has reached who
    asked and the memory controller has taken in the line that it pushed out. While a slice has none, whatever comes
    for it waits, hits too, and `write_buffer` and `nic_credits` have no effect."""
    nic_credits: int
    """Of these, how many only the integrated NIC may use, so that what has come over the wire goes first."""
    read_hit: Literal['retain'] | Literal['migrate']
    """What a core's read hit leaves behind."""
    replacement: Literal['lru'] | Literal['lru_scan'] | Literal['tree_plru'] | Literal['srrip'] | Literal['nru'] | Literal['random'] | Literal['nmru']
    """Replacement policy."""
    response_cycles: int
    """Cycles of the uncore clock that a line takes through the LLC on its way from DRAM to who asked."""
    role: Literal['victim'] | Literal['inclusive'] | Literal['strictly_inclusive']
    """Role in the hierarchy."""
    size: str
    """Capacity over all slices."""
    slices: int
    """Slices; sets of a slice must come out as a power of two."""
    store_hit: Literal['move'] | Literal['retain']
    """What a store's hit leaves behind."""
    upgrade_miss: Literal['grant'] | Literal['fetch']
    """What a store asks for whose core has a clean copy of a line that the LLC has lost."""
    ways: int
    """Associativity."""
    write_ack: str
    """A write's way from the home agent to the memory controller, and the acknowledgement that its queue has it."""
    write_back_uses: bool
    """A dirty L2 victim that finds its line counts as a use of it."""
    write_buffer: int
    """Writes that may wait at the home agent for a full write pending queue before it stops admitting requests
    (second stage of backpressure)."""
    write_order: Literal['arrival'] | Literal['turns']
    """Who of those that wait goes first."""
    writebacks: Literal['at_once'] | Literal['admitted']
    """How an L2 victim reaches the home agent."""


class LoadGeneratorAppSpec(Section):
    """Sends the requests of a scenario's traffic, and takes the replies: software on the host of `[client]`."""
    kind: Literal['load_generator']
    reply_instructions: int
    """Instructions of a reply besides the load of its first line: whose it is, how long it took. The default is
    assumed."""
    request_instructions: int
    """Instructions of a request besides the stores of its lines: when it is due, its text, its time stamp. The
    default is assumed."""


class LoopbackAppSpec(Section):
    """Sends packets through CC-NIC, or through a PCIe NIC whose wire loops back, and reads what comes back."""
    bytes: str
    """Size of a packet, all of which lies in memory. Behind a PCIe NIC a frame has its check sequence besides."""
    kind: Literal['loopback']
    touch: Literal['payload'] | Literal['header']
    """What of it the host writes and reads."""


class MemcachedAppSpec(Section):
    """Key-value server that answers a capture of memcached over UDP."""
    get_atomics: int
    """Atomic operations for a key that is read: locks that are taken and released, and the item's reference
    count."""
    hash_power: int | None
    """Buckets of the hash table, as a power of two. Absent: at least as many as keys."""
    instructions: int
    """Instructions per request besides loads and stores of lines (parsing, hashing, formatting)."""
    item_overhead: int
    """Bytes of an item before its value: header, key, flags."""
    kind: Literal['memcached']
    populations: int
    """Copies of the captured key population, each with items of its own: the table of a server that keeps more than
    one short capture touches. Requests of one pass over the capture go to one copy."""
    set_atomics: int
    """The same for an item that is stored."""
    set_instructions: int | None
    """The same of a request that stores an item. Absent: as `instructions`."""


class MicaAppSpec(Section):
    """MICA key-value store."""
    buckets: int
    """Buckets of 8 entries, over all partitions."""
    copy: Literal['cached'] | Literal['streaming']
    """How a SET writes the log."""
    get_fraction: float
    """Fraction of requests that are GETs."""
    instructions: int
    """Instructions per request besides loads and stores of lines."""
    item_size: str
    """An item in the log, header and key included; also the size of a SET's packet."""
    kind: Literal['mica']
    log_size: str
    """Log of each partition."""
    pairs: int
    """Pairs loaded before the run, over all partitions."""
    update: Literal['in_place'] | Literal['append']
    """What a SET of a known key does."""
    zipf: float
    """Skew of key popularity within a partition: zipf exponent; 0 is uniform."""


class NicSpec(Section):
    """The NIC's own timing."""
    line_interval: str
    """Between two lines that the receive or a transmit engine moves."""
    notify: str
    """From a message to its effect on the other side: a queue entry (NIC to polling core, core to NIC) or a
    sweep."""
    pipeline: str
    """From the wire to the first line's write, and from the last line's read to the wire."""
    ring_start: Literal['random'] | Literal['first']
    """The slot at which each ring begins."""


class NodeLinkSpec(Section):
    """Links between two nodes (UPI, CXL). A hash of its address gives each line one of them; every value is for one
    direction."""
    credits: int
    """Requests of a node that may be under way over the links."""
    data: str
    """Bytes of a line with its header."""
    latency: str
    """From one agent to the other, without serialisation."""
    links: int
    """Links."""
    message: str
    """Bytes of a message without data: a request, a snoop, a response."""
    rate: str
    """Rate of one link."""
    spare: str
    """Of these, bytes that the line leaves free in its flits: messages without data that find the link busy travel
    in them."""


class NodesProtocolSpec(Section):
    """What the protocol between nodes does beyond MESIF."""
    migratory: bool
    """A read that finds the line modified in the other node takes it, with permission to write. Without, the line
    is written to its home and both nodes share it."""
    speculative: bool
    """A miss on a line of the reader's own memory that the other node may have written reads memory beside the
    snoop."""
    speculative_penalty: str
    """Time that the useless read adds to such a miss, beside what it waits for."""


class NodesSpec(Section):
    """Nodes of a machine: sockets, or a processor and an accelerator with coherent memory."""
    cores: int | None
    """Cores of a node; `core.count` when absent."""
    count: int
    """Nodes, 1 or 2; each has caches and memory controllers of the platform's."""
    link: NodeLinkSpec | None
    """What joins two nodes."""
    protocol: NodesProtocolSpec
    """How lines move between nodes."""
    uncore_clock: list[str]
    """Clock of LLC, crossbar and home agent by node; `caches.uncore_clock` for those that are not listed."""


class PageReuseAppSpec(Section):
    """Directed test of a page that changes its owner."""
    guard: Literal['none'] | Literal['clwb'] | Literal['dma']
    """What the kernel does."""
    kind: Literal['page_reuse']
    page: str
    """Size of the page."""


class PcapSpec(Section):
    """A capture to replay."""
    file: str
    """pcap or pcapng, relative to the scenario's file."""
    lenient: bool
    """Replays what comes before the damage of a truncated or corrupt file, which is refused otherwise."""
    port: int | None
    """For memcached, the UDP port of its server; 11211 when absent. For other applications, replays only what goes
    to this UDP or TCP port; all IP packets when absent."""
    timing: Literal['original'] | Literal['poisson'] | Literal['fixed']
    """Schedule."""


class PcieSpec(Section):
    """The links between devices and the IIO."""
    completion_overhead: int
    """Bytes of a completion besides its payload."""
    cut_through: bool
    """Who receives a packet acts on its header, while the payload still holds the link. When false, it has to come
    whole."""
    dllp_share: float
    """Share of the link that data-link packets and skip sets take."""
    generation: Literal['gen3'] | Literal['gen4'] | Literal['gen5']
    """Signalling rate and line code."""
    lane_rate: str | None
    """Rate of one lane after the line code, in place of the generation's: for a bus that is no PCIe link."""
    max_payload: str
    """Largest payload of a write or a completion."""
    max_read_request: str
    """Largest read request."""
    non_posted: int
    """Non-posted header credits of a port of four lanes: read requests that wait for IIO entries."""
    posted_lines: int
    """Posted-data credits of a port of four lanes, in lines: writes sent whose IIO entries are not yet free. A
    wider port has as many times more as the ports that it could be divided into."""
    propagation: str
    """Flight time of a packet, transmitter to receiver, controllers included."""
    read_request: int
    """Bytes of a memory read request."""
    train: int
    """Packets for consecutive lines that are simulated as one, with all their bytes. They arrive when the last one
    does, which makes the first ones late by the time that the others hold the link, and a simulation faster."""
    write_overhead: int
    """Bytes of a memory write besides its payload: framing, sequence number, header, CRC."""


class PingpongAppSpec(Section):
    """A counter that two threads exchange through two registers in coherent memory."""
    kind: Literal['pingpong']
    layout: Literal['S0'] | Literal['S1'] | Literal['Rd'] | Literal['Wr'] | Literal['S0C'] | Literal['S1C']
    """Where the registers are."""
    peer_node: int
    """Node of the other thread of each pair."""


class PipelineSpec(Section):
    """Cores of a tenant in pairs: the first half receive, each of the others works on what one of those hands
    on."""
    burst_instructions: int
    """Instructions of putting a burst in, and of taking one out, beside the accesses. The default is assumed."""
    ring: int
    """Packets that a ring holds; a power of two. A core that receives takes no more from the NIC than it has room
    for."""


class PlacementSpec(Section):
    """Everything that a scenario says about placement."""
    iat: IatSpec | None
    """Moves ways between the NIC and the cores at run time."""
    idio: IdioSpec | None
    """Thresholds, intervals and choices of IDIO."""
    mode: Literal['invalidate'] | Literal['prefetch'] | Literal['static'] | Literal['dynamic'] | None
    """Which of IDIO's mechanisms work; `dynamic` when absent."""
    policy: Literal['dma'] | Literal['ddio'] | Literal['ideal'] | Literal['idio']
    """How inbound packets are injected."""
    resq: bool
    """Caps receive rings so that all buffers fit the ways."""
    sweep_rx: bool
    """Sweeper on receive: software relinquishes a buffer after its last read."""
    sweep_tx: Literal['none'] | Literal['nic'] | Literal['cpu']
    """Sweeper on transmit, and who does it."""
    ways: int | Literal['all']
    """LLC ways that NIC writes may allocate into, counted from way 0; 'all' of the platform's."""


class Platform(Section):
    """Hardware, and the software costs that come with it."""
    background_read_gbs: float
    """Reads of memory by a system that is otherwise idle, GB/s: of lines anywhere, at random times."""
    block: BlockSpec | None
    """The kernel's block layer."""
    caches: HierarchySpec
    """Caches and crossbar."""
    ccnic: CcnicSpec | None
    """CC-NIC: what a scenario's table `ccnic` does not say."""
    core: CoreSpec
    """Cores."""
    description: str
    """What it models."""
    ethernet: EthernetSpec | None
    """The Ethernet NIC behind a PCIe port: what `[[peripheral]]` of that kind does not say."""
    iio: IioSpec | None
    """Integrated I/O controller."""
    memory: DramSpec
    """Memory controllers and DRAM."""
    name: str
    """Name that scenarios refer to."""
    nic: NicSpec
    """Network interface."""
    nodes: NodesSpec | None
    """Sockets, or a processor and an accelerator with coherent memory; one when absent. Caches, memory and the
    cores' count of the tables above are each node's, unless `nodes.cores` says how many cores that are."""
    pcie: PcieSpec | None
    """Links between peripherals and the I/O controller."""
    poll_mode: PollModeSpec | None
    """The poll-mode driver."""
    provenance: Section
    """Where each number comes from: key path to 'datasheet: ...', 'paper: ...', 'artifact: ...', 'standard: ...',
    'measured: ...', 'fitted: ...' or 'assumed: ...'."""
    queue_pair: QpSpec
    """Queue-pair library."""
    tcp: TcpSpec | None
    """The kernel's TCP receive path."""
    udp: UdpSpec | None
    """The kernel's sockets over UDP."""


class PollModeSpec(Section):
    """What a poll-mode driver costs beside the memory accesses that are simulated (descriptors, mbufs, packets), in
    instructions where nothing else is said."""
    allocate_instructions: int
    """A buffer that is taken for a reply. What an application says of its instructions may have it, too: then this
    is 0."""
    burst: int
    """Packets that `rx_burst` returns at most."""
    burst_instructions: int
    """The fixed part of an `rx_burst` that finds packets, and of a `tx_burst`."""
    detach_instructions: int
    """More of a buffer that is freed, when its metadata stands for data elsewhere: that is let go, and the metadata
    is restored."""
    free_instructions: int
    """A buffer that is freed."""
    free_sent: Literal['threshold'] | Literal['burst']
    """When sent buffers are freed. Those that the driver keeps enlarge the memory that packets pass through."""
    free_threshold: int
    """When fewer transmit descriptors than this are free (`tx_free_thresh`), as many sent buffers are freed, or as
    many as the burst needs."""
    mbuf_lines: int
    """Lines of a buffer's metadata that the driver touches: 1 or 2."""
    mempool: int | None
    """Buffers of each core's mempool. Absent or 0: as many as both rings, two caches and two bursts can hold."""
    mempool_cache: int
    """Buffers of a core's cache of the mempool. 0: none, so that buffers are used in the order in which they came
    back."""
    mempool_shared: bool
    """The cores' buffers are one pool's: those that rings begin with lie one behind another, queue by queue, as
    their set-up takes them, and the rest behind them. When false, each core's pool has a place of its own."""
    poll_instructions: int
    """An `rx_burst` that finds nothing."""
    prefetch: bool
    """Whether each packet's first line and the next buffer's metadata are prefetched."""
    rearm: int
    """Receive descriptors that are given fresh buffers before the NIC is told (`rx_free_thresh`)."""
    receive_instructions: int
    """A received packet."""
    transmit_burst: int | None
    """Packets that are gathered for a `tx_burst`, unless no more come, and most of one. Absent: what an `rx_burst`
    returned is sent at once."""
    transmit_instructions: int
    """A packet to be sent."""


class PrefetchSpec(Section):
    """A prefetcher of the L2 or the LLC."""
    adjacent: bool
    """A line that an access fetches into the L2 brings the other one of its 128 bytes ('spatial prefetcher')."""
    credits: int
    """Prefetches under way at most: the L2's request queue without what the line fill buffers may fill."""
    degree: int
    """Lines that one access makes it fetch, at most."""
    distance: int
    """Lines ahead of the newest access that a stream runs, at most; never beyond its page of 4 KiB. Strides run
    `degree`."""
    enabled: bool
    """Whether it works."""
    into: Literal['l2'] | Literal['llc']
    """The cache that it belongs to."""
    network: bool
    """It follows accesses to a NIC's receive buffers too."""
    ownership: bool
    """What an access that asks for ownership makes it fetch is asked for with ownership, too (Intel's event
    `PF_L2_RFO`). Without, all prefetches are reads."""
    pattern: Literal['stream'] | Literal['stride']
    """Which accesses it follows."""
    reserve: int
    """L2 misses that may be under way and that prefetches leave to accesses, of `core.l2_mshrs`. Hints do so too,
    where the prefetcher does not work."""
    streams: int
    """Pages watched at once, one stream in each; or instructions."""
    trigger: int
    """Accesses in one direction, or at one stride, that make a stream, the first included; 6 for a stride at
    most."""
    waiting: int
    """Prefetches that wait for one of `core.l2_mshrs`, at most; the oldest is lost when one more comes. Without,
    those that find none free are lost."""


class ProbeDeviceAppSpec(Section):
    """Directed test of a load from a device, or of a burst of combining stores to it."""
    access: Literal['load'] | Literal['store']
    """What it does."""
    bytes: int
    """Bytes of the load or of each store, 1 to 64."""
    kind: Literal['probe_device']
    stores: int
    """Stores of the burst."""


class ProbeLatencyAppSpec(Section):
    """Directed test of one load's latency, by where the line is."""
    kind: Literal['probe_latency']
    place: Literal['local_l1'] | Literal['local_l2'] | Literal['local_llc'] | Literal['local_dram'] | Literal['other_l2'] | Literal['remote_llc'] | Literal['remote_dram'] | Literal['remote_l2_rh'] | Literal['remote_l2_lh']
    """Where the line is."""


class ProbePlaceAppSpec(Section):
    """Directed test of one request of a device, by where the line is."""
    dirty: bool
    """The core has written its copy, where it has one."""
    kind: Literal['probe_place']
    place: Literal['mlc'] | Literal['both'] | Literal['llc'] | Literal['ddio'] | Literal['dram']
    """Where the line is before."""
    request: Literal['write'] | Literal['read']
    """What the device asks for."""


class QpSpec(Section):
    """Instructions of the queue-pair library per packet."""
    batch: int
    """Most packets that are taken off the completion queue before the first of them is served."""
    batch_of: Literal['entries'] | Literal['packets']
    """What a batch counts: every entry that is taken, or packets alone."""
    batch_polls: int
    """Polls without a packet after which a batch that is not whole is served: 0 serves it as soon as the queue is
    empty."""
    empty_poll_instructions: int | None
    """A poll of a completion queue that is empty; as many as `poll_instructions` when absent."""
    free_instructions: int
    """Returning a receive buffer."""
    poll_instructions: int
    """Taking a packet off the completion queue."""
    post_instructions: int
    """Writing a work queue entry."""
    send_completions: bool
    """A reply that is on the wire puts an entry into the completion queue, too, behind the packets that wait there.
    `keep_depth` counts such entries, and taking one costs `poll_instructions`."""


class RedisAppSpec(Section):
    """Redis servers, each asked by a client that never waits."""
    command: Literal['get'] | Literal['set']
    """What every query asks for; keys are uniform random."""
    connections: int
    """Connections of each server."""
    contiguous: str
    """Contiguous physical memory; larger pieces of the heap lie anywhere."""
    keys: int
    """Keys of each server."""
    kind: Literal['redis']
    pipeline: int
    """Queries that a connection has waiting when its turn comes."""
    query_instructions: int
    """Instructions of a query besides its copies: parsing, hashing, dispatch, reply header."""
    socket: str
    """Memory of the sockets of each server that its copies go through in turn."""
    turn_instructions: int
    """Instructions of a connection's turn besides its queries: poll, receive, send."""
    value: str
    """Size of a value."""


class RingSpec(Section):
    """Buffers between NIC and cores."""
    buffer_size: str
    """Size of a receive buffer (and of a transmit buffer)."""
    proactive_drop: int
    """NeBuLa-style proactive drop: packets waiting at a core from which on arrivals are dropped; 0 is off."""
    rx_buffers: int
    """Receive buffers per core, used cyclically."""
    tx_buffers: int
    """Transmit buffers per core, used cyclically."""


class RingsSpec(Section):
    """Descriptor rings in memory, and the NIC's caches of their descriptors."""
    descriptor: str
    """Size of a descriptor; a power of two up to a line."""
    fetch_delay: str
    """From the decision to fetch descriptors to the request, and what their use takes beyond their arrival."""
    one_engine: bool
    """One DMA engine for both ways: the lines of a packet, or of descriptors, all set out before those of another.
    When false, reads and writes take turns on the link."""
    queue_requests: int | None
    """Read requests of one transmit queue under way, from which on it begins no frame: one for each frame's
    descriptor, and its data in pieces of `pcie.max_read_request`. Absent: a queue has no limit of its own."""
    queue_turnaround: str
    """From a frame's last line in the NIC to the return of its requests to its queue's."""
    receive: int
    """Receive descriptors of each queue; a multiple of 8. One of them is never used, so that a full ring differs
    from an empty one."""
    receive_cache: int
    """Receive descriptors that the NIC caches for each queue, free and used ones together."""
    receive_packets: int
    """Packets whose receive DMA is in flight at most."""
    receive_turnaround: str
    """From a packet's last line in memory to the DMA of the packet that takes its place among them."""
    replenish: int
    """It fetches receive descriptors when fewer than this many free ones are cached."""
    strip_fcs: bool
    """Frames lie in memory without their check sequence, which the NIC takes off and puts on. When false, a frame
    is data all through, as in a simulator whose frames have no check sequence."""
    throttle: Literal['off'] | Literal['dynamic'] | Literal['dynamic_conservative']
    """How the kernel's driver throttles a queue's interrupts."""
    transmit: int
    """Transmit descriptors of each queue, likewise."""
    transmit_buffer: str
    """Bytes of frames between the transmit DMA and the wire."""
    transmit_cache: int
    """Transmit descriptors that it caches for each queue."""
    transmit_packets: int
    """Frames whose payload is being read at most."""
    transmit_turnaround: str
    """From a frame's last line in the NIC to the read of the frame that takes its place among them."""
    transmit_write_back: int
    """Sent descriptors from which on they are written back; the last of what was posted always are."""
    write_back: str | WriteBackTable
    """When used receive descriptors are written back."""
    write_back_completion: str
    """From a write-back's end to the next one of its ring, and to the use of its places in the cache. Software sees
    the descriptors before that."""
    write_back_delay: str
    """From the decision to write descriptors back to the write."""
    write_back_idle: bool
    """They are also written back when the receive buffer runs empty."""


class RocePeripheralSpec(Section):
    """RoCE NIC with priority flow control."""
    buffer: str
    """Memory that messages go to, or come from, one after the other."""
    contiguous: str
    """Contiguous physical memory of the buffer; larger pieces lie anywhere."""
    kind: Literal['roce']
    lanes: int
    """PCIe lanes."""
    link: str
    """Rate of the link."""
    message: str
    """Bytes of a message."""
    message_overhead: int
    """The same for a message's first packet in addition: RETH."""
    mtu: str
    """Payload of a packet."""
    op: Literal['p2m_read'] | Literal['p2m_write']
    """Direction of the DMA: the peer writes here (p2m_write) or reads from here (p2m_read)."""
    overhead: int
    """Bytes of a packet on the wire beside its payload: preamble, Ethernet, IPv4, UDP, BTH, ICRC, FCS, gap."""
    pause_response: str
    """From a pause frame's arrival at the peer to its effect there."""
    propagation: str
    """Flight time of a packet, MAC to MAC."""
    receive_buffer: str
    """Receive buffer of the NIC's lossless class."""
    tags: int
    """PCIe read requests that the NIC has under way at most."""
    transmit_buffer: str
    """What the NIC reads ahead of the wire."""
    xoff: str
    """Bytes in the receive buffer from which on the peer is paused."""
    xon: str
    """Bytes in the receive buffer down to which a paused peer is resumed."""


class RunSpec(Section):
    """Length of the run and what to search for."""
    load: Literal['fixed'] | Literal['peak_slo'] | Literal['peak_nodrop'] | Literal['peak_loss'] | Literal['saturate'] | Literal['none']
    """What to look for."""
    loss: float
    """Objective of `peak_loss`: share of the offered packets that may be lost. Those by which queues grow count as
    lost."""
    requests: int
    """Requests measured (of the tenants that serve packets)."""
    search_tolerance: float
    """Relative width at which a search stops."""
    slo_multiple: float
    """Objective of `peak_slo`: p99 latency over mean service time."""
    step: str | None
    """Rates that a search tries are multiples of this; as fine as `search_tolerance` when absent."""
    time: str
    """Time measured when no tenant serves packets."""
    timeline: str | None
    """Bins of the table `timeline`: what moved in each, and where received lines are; a few samples when absent."""
    trace: str | None
    """Interval of a trace over time of the I/O controller's buffers and of pauses; no trace when absent."""
    warmup_requests: int | None
    """Requests before measuring; detected when absent."""
    warmup_time: str | None
    """Time before measuring when no tenant serves packets; caches are filled without timing first."""


class RxptxAppSpec(Section):
    """Receives a burst, waits, and sends it."""
    instructions: int
    """Instructions per packet."""
    interval: str
    """What the core waits, in a loop, after each burst that it has received."""
    kind: Literal['rxptx']


class SizeWeight(Section):
    """A size of frames, and how often it comes."""
    size: str
    """Bytes of the frame, checksum included."""
    weight: int
    """Packets of this size for those of the others."""


class SpikeSpec(Section):
    """Rare long stalls of the application (Sweeper, section VI-F)."""
    max: str
    """Longest stall."""
    min: str
    """Shortest stall."""
    probability: float
    """Probability per request."""


class SsdPeripheralSpec(Section):
    """NVMe SSDs."""
    block: str
    """Bytes of a command; its buffer in memory is as large."""
    command_latency: str
    """From the end of one command to the first byte of the one that takes its place: medium, firmware and the
    submitting thread."""
    contiguous: str
    """Contiguous physical memory of the buffers; larger pieces lie anywhere."""
    cores: int
    """Cores of the kernel's block layer, which keeps books about every page that these devices move; they come
    after all tenants'. With 0 that work is left out."""
    count: int
    """Devices."""
    interleave: str
    """Bytes that the device moves for one command before it turns to another."""
    kind: Literal['ssd']
    lanes: int
    """PCIe lanes of each."""
    media_rate: str | None
    """Most that each device's medium moves; as much as the link when absent."""
    op: Literal['p2m_read'] | Literal['p2m_write']
    """Direction of the DMA."""
    page: str
    """The kernel's page, which it keeps books about; the authors' scripts ask for no huge ones."""
    queue_depth: int
    """Commands that each device always has."""
    tags: int
    """Read requests that a device has under way at most."""


class StreamAppSpec(Section):
    """Sequential or random reads or updates of a private buffer, as fast as memory goes."""
    access: Literal['sequential'] | Literal['random']
    """Order of the lines."""
    buffer: str
    """Each core's buffer."""
    contiguous: str
    """Contiguous physical memory of the buffer; larger pieces lie anywhere."""
    instructions: int
    """Instructions per line besides the access: address, arithmetic, loop."""
    kind: Literal['stream']
    read_fraction: float
    """Reads over all memory traffic: 1 only loads, 0.5 stores to every line."""
    run_lines: int
    """Consecutive lines of a random run."""


class StreamTransferAppSpec(Section):
    """Streams from writers to readers in pairs."""
    buffer: str | None
    """Buffer of a pair, whole chunks: 4 MiB when absent, and 256 MiB, beyond all caches, where it is only read."""
    chunk: str
    """What a writer writes before it tells the reader."""
    kind: Literal['stream_transfer']
    peer_node: int
    """Node of the other side: of the readers, or of the memory that is read."""
    stores: Literal['cached'] | Literal['nontemporal'] | Literal['none']
    """How the buffer is written."""


class TcpEchoAppSpec(Section):
    """Sends requests back over TCP as a service (TAS), whose fast path has cores of its own."""
    calls: Literal['sockets'] | Literal['low_level']
    """The calls that the application reaches TAS by."""
    costs: FastPathCosts
    """Instructions of the fast path."""
    flows: int
    """TCP connections. RSS spreads them over the queues of the NIC."""
    kind: Literal['tcp_echo']
    pipelined: int
    """Requests of a connection that have no reply yet, at any time. The default is that of TAS's own client."""
    rpc: str
    """Bytes of a request and of its reply."""


class TcpReceiveAppSpec(Section):
    """Receives long TCP flows through the kernel, one a core, and drops what it gets (iperf)."""
    gap_instructions: int
    """Instructions between two buffers: iperf3 calls `select` (half a microsecond for a few TCP sockets, as lmbench
    finds it: that of a core of 3.3 GHz and two instructions a cycle)."""
    kind: Literal['tcp_receive']
    read: str
    """Bytes that a `recv` asks for, and each core's buffer."""


class TcpSpec(Section):
    """What the kernel's receive path costs beside the memory accesses that are simulated (completions, headers,
    payload), in instructions where nothing else is said."""
    frame: int
    """A frame in the driver, in the allocator of pages and in GRO."""
    head: str
    """A frame's beginning, which the driver copies to the socket buffer."""
    interrupt: int
    """An interrupt and the start of polling."""
    line: int
    """Instructions that copy a line, beside a load and a store."""
    merge: str
    """Payload that GRO merges at most."""
    piece: int
    """Instructions before each piece of a copy, the start-up of the string instruction among them. A piece ends
    with its page; a frame's head is one."""
    poll_budget: int
    """Frames that one poll takes at most (NAPI weight)."""
    read: int
    """A `recv` call: system call and scheduler."""
    receive_buffer: str
    """What a socket may hold (`tcp_rmem`, its tuning off). Half of what is free is offered as window
    (`tcp_adv_win_scale` = 1), the rest is for what the kernel needs beside payload."""
    segment: int
    """A merged segment: socket buffers, protocol, acknowledgement."""
    wake: int
    """Waking the application that waits in `recv`."""


class TenantSpec(Section):
    """A group of cores that runs one application."""
    app: MicaAppSpec | L3FwdAppSpec | XmemAppSpec | StreamAppSpec | RedisAppSpec | GapbsAppSpec | TcpReceiveAppSpec | TouchdropAppSpec | L2FwdAppSpec | LlcAntagonistAppSpec | TestpmdAppSpec | LoadGeneratorAppSpec | TouchfwdAppSpec | RxptxAppSpec | MemcachedAppSpec | PingpongAppSpec | StreamTransferAppSpec | LoopbackAppSpec | CliqueMapAppSpec | BlockStoresAppSpec | TcpEchoAppSpec | DirectedRxAppSpec | DirectedTxAppSpec | PageReuseAppSpec | ProbeLatencyAppSpec | ProbeDeviceAppSpec | ProbePlaceAppSpec
    """What runs."""
    cores: int
    """Logical cores, taken in order from the platform's. With `platform.core.threads = 2` those beyond a node's
    cores are second hardware threads."""
    dscp: int
    """Differentiated services code point of its packets, 0 to 63."""
    l2_size: str | None
    """Size of each of its cores' L2 instead of the platform's, of as many ways."""
    llc_ways: int | str | None
    """LLC ways that this tenant's L2 victims may fill (CAT); all when absent."""
    name: str
    """For messages and tables."""
    node: int
    """The node whose cores these are, and whose memory its data is in."""
    pipeline: PipelineSpec | None
    """Cores under a poll-mode driver in pairs, with a ring in memory between them (DPDK's pipeline model). Absent:
    each runs to completion."""
    recycling: Literal['run_to_completion'] | Literal['copy'] | Literal['reallocate']
    """What a poll-mode driver does with the buffer of a packet that the application has yet to process."""
    stack: Literal['queue_pair'] | Literal['poll_mode'] | Literal['ccnic'] | Literal['kernel'] | None
    """Who hands packets to the application; absent, the stack that its kind of application has by default: queue
    pairs on the NIC on the chip; or, for `tcp_receive`, the kernel over a NIC that completes each frame with a line
    of its own."""


class TestpmdAppSpec(Section):
    """Forwards packets unread, drops them, or sends its own (DPDK's testpmd)."""
    instructions: int
    """Instructions per packet besides the access to its first line, if there is any."""
    kind: Literal['testpmd']
    mode: Literal['io'] | Literal['macswap'] | Literal['rxonly'] | Literal['txonly']
    """What becomes of a packet."""


class TimingOverride(Section):
    """Timings that replace the standard's own, in picoseconds; absent ones keep it."""
    ccd_l_ps: int | None
    """Column to column, same bank group."""
    cl_ps: int | None
    """Read latency, command to first data."""
    cs_ps: int | None
    """Bubble on the data bus between two ranks."""
    cwl_ps: int | None
    """Write latency, command to first data."""
    faw_ps: int | None
    """Window that holds at most four activates of a rank."""
    ras_ps: int | None
    """Activate to precharge."""
    rcd_ps: int | None
    """Activate to column command."""
    refi_ps: int | None
    """Interval between refreshes of a rank."""
    rfc_ps: int | None
    """Refresh to activate."""
    rp_ps: int | None
    """Precharge to activate."""
    rrd_l_ps: int | None
    """Activate to activate, same bank group."""
    rrd_s_ps: int | None
    """Activate to activate, other bank group."""
    rtp_ps: int | None
    """Read to precharge."""
    rtw_ps: int | None
    """Bubble on the data bus between a read and a following write."""
    tck_ps: int | None
    """Clock period; applied first, so that timings given in clocks scale with it."""
    wr_ps: int | None
    """End of write data to precharge."""
    wtr_l_ps: int | None
    """End of write data to read, same bank group."""
    wtr_s_ps: int | None
    """End of write data to read, other bank group."""


class TlbSpec(Section):
    """The TLB that a core asks last, of pages of 4 KiB."""
    entries: int
    """Pages that it knows."""
    walk_cycles: int
    """Cycles of a page walk besides the access to the last level of the page table."""
    ways: int
    """Associativity."""


class TouchdropAppSpec(Section):
    """Reads every packet and drops it."""
    instructions: int
    """Instructions per packet besides its loads."""
    instructions_per_byte: float
    """Instructions for each byte, between the loads of its lines; with none, the loads go out together."""
    kind: Literal['touchdrop']


class TouchfwdAppSpec(Section):
    """Reads every byte of a packet and forwards it."""
    instructions: int
    """Instructions per packet besides."""
    instructions_per_byte: float
    """Instructions for each byte of the packet: load, compare and branch."""
    kind: Literal['touchfwd']


class TrafficSpec(Section):
    """What the clients do."""
    arrivals: Literal['poisson'] | Literal['fixed'] | Literal['uniform'] | Literal['log_normal'] | Literal['pareto'] | Literal['burst'] | Literal['closed'] | Literal['keep_depth'] | Literal['pcap'] | Literal['none']
    """Arrival process."""
    burst: int
    """Packets per burst of `burst`."""
    burst_gap: str | None
    """From the start of a packet to that of the next in a burst of `burst`; back to back when absent."""
    burst_period: str | None
    """From the start of a burst to that of the next, instead of `rate`."""
    cv: float | None
    """Standard deviation of gaps over their mean (`uniform`: up to 0.577, which is also its default; `log_normal`,
    `pareto`: 1 when absent)."""
    dctcp: DctcpSpec | None
    """Senders of the TCP flows that `tcp_receive` cores receive."""
    depth: int
    """Waiting packets per core that `keep_depth` maintains; completions of sends count, where the queue pair has
    such."""
    destination_mac: str | None
    """Ethernet address that packets go to, captured ones included; '02:00:00:00:00:01' when absent."""
    flows: int | None
    """Flows that packets belong to, at random unless `spread` is 'flow'; a flow goes to one core, by its RSS hash.
    When absent, each packet goes to any core."""
    link: WireSpec | None
    """Wire between the generator and a NIC on the chip, which otherwise has none. That of an Ethernet NIC is its
    own."""
    outstanding: int
    """Requests without a reply at most, of `closed`: of all cores together, but with CC-NIC of each queue pair."""
    packet: str | None
    """Size of frames, checksum included, for applications whose requests do not set it; 1 KiB when absent."""
    pcap: PcapSpec | None
    """Capture of `pcap`."""
    protocol: Literal['udp'] | Literal['ethernet']
    """What frames carry."""
    rate: str | None
    """Mean rate over all cores, in packets or in bits of frames. `peak_loss` starts from it when given."""
    sizes: Literal['imix'] | list[SizeWeight] | None
    """Sizes of frames with their weights instead of `packet`; 'imix' is 7 : 4 : 1 of 64, 594 and 1518 B."""
    source_mac: str | None
    """Ethernet address that packets come from; that of the capture, or '02:00:00:00:00:02', when absent."""
    spikes: SpikeSpec | None
    """Service-time spikes."""
    spread: Literal['random'] | Literal['turns'] | Literal['shortest_queue'] | Literal['flow']
    """Which core of the tenant a packet goes to that belongs to no flow; or 'flow', whether there are flows or
    not."""
    stamp: int
    """Where a frame carries the time of its sending, in bytes from its start."""
    timeout: str
    """A request of `closed` without a reply for so long is given up, and the next one goes."""


class UdpSpec(Section):
    """What datagrams cost in the kernel beside what they share with TCP, in instructions where nothing else is
    said. `[tcp]` has the rest: frames, interrupts, wake-ups, calls that receive, and copies."""
    free: int
    """A socket buffer that is freed."""
    receive: int
    """A received datagram: IP, UDP, the socket's queue."""
    receive_buffer: str
    """What a socket may hold (`rmem_default`), socket buffers with all their overhead."""
    send: int
    """A `sendmsg` call: system call, UDP, IP, queueing discipline, driver."""


class WireSpec(Section):
    """A wire with its two ends."""
    propagation: str
    """Flight time, each way."""
    rate: str
    """Rate, each way."""


class WriteBackTable(Section):
    """A threshold."""
    after: int
    """Used descriptors from which on they are written back."""


class XmemAppSpec(Section):
    """Random reads of a private array."""
    array: str
    """Each core's array."""
    gap_instructions: int
    """Instructions between two reads."""
    kind: Literal['xmem']
    order: Literal['drawn'] | Literal['cycle']
    """In which order the array is read."""
    parallelism: int
    """Chains of dependent reads under way at once."""


class Fields(Section):
    """One point of a study, fully described."""
    ccnic: CcnicSpec | None
    """The interface over coherent memory, for a tenant with `stack = 'ccnic'`; what is not said here the platform's
    table says."""
    client: ClientSpec | None
    """The host whose software is the load generator. Absent: a generator that costs no time and loses nothing."""
    name: str
    """For tables and file names."""
    peripheral: list[SsdPeripheralSpec | RocePeripheralSpec | EthernetPeripheralSpec]
    """Peripherals behind the I/O controller."""
    placement: PlacementSpec
    """Where packets go."""
    platform: str
    """Name or path of a platform file."""
    rings: RingSpec
    """Buffers."""
    run: RunSpec
    """Measurement."""
    seed: int
    """Seed of every random stream."""
    tenant: list[TenantSpec]
    """Who runs where."""
    traffic: TrafficSpec
    """Packets."""
    override: Platform
    """Values that replace the platform's."""
