"""The keys of a scenario with types and meanings. Generated from the engine's schema by hostnet._stubs."""

from typing import Literal

from .specs import Section


class BlockSpec(Section):
    """Costs of the kernel's block layer in addition to the memory accesses that are simulated."""
    lists: str
    """Bytes of the lists that describe a page while the device has the page: one entry each in the bio, the
    scatter-gather list and the PRP list."""
    pin: int
    """Instructions to pin a page that is handed to the device."""
    release: int
    """Instructions to release a page that comes back from the device."""


class BlockStoresAppSpec(Section):
    """Stores of blocks to a device or to memory, with a fence after each block."""
    block: str
    """Bytes that are stored between two fences: whole lines of 64 B, up to 64 KiB."""
    buffer: str
    """Size of the buffer that a core writes repeatedly: whole blocks, up to 1 GiB. The default is 128 KiB."""
    instructions: int
    """Instructions per line in addition to its store. The default is 4."""
    kind: Literal['block_stores']
    target: Literal['wc_device'] | Literal['wc_memory'] | Literal['wb_memory']
    """Memory that a block is stored to."""


class CacheSpec(Section):
    """One level of private cache."""
    latency_cycles: int
    """Cycles of the core clock that a look-up adds to an access."""
    replacement: Literal['lru'] | Literal['lru_scan'] | Literal['tree_plru'] | Literal['srrip'] | Literal['nru'] | Literal['random'] | Literal['nmru']
    """Replacement policy of the cache."""
    response_cycles: int
    """Cycles of the core clock that a line takes through this cache on its way from the next level to the
    requester; 0 when absent."""
    size: str
    """Capacity of the cache."""
    ways: int
    """Associativity of the cache."""


class CcnicCosts(Section):
    """Instructions of the interface's operations, in addition to the simulated accesses to lines that host and NIC
    share."""
    alloc: int
    """Instructions to allocate a buffer. The default is 70."""
    free: int
    """Instructions to free a buffer. The default is 70."""
    host_rx: int
    """Instructions of the host for a packet that it receives, reading the packet included. The default is 150."""
    host_tx: int
    """Instructions of the host for a packet that it sends, writing the packet included. The default is 150."""
    nic_rx: int
    """Instructions of the NIC for a packet that it delivers to the host. The default is 138."""
    nic_tx: int
    """Instructions of the NIC for a packet that it takes from the host. The default is 138."""
    poll: int
    """Instructions of a poll that finds no packet, or of the poll of a burst's first line. The default is 20."""
    pool: int
    """Instructions of a bulk operation on the pool. The default is 60."""
    unit: int
    """Instructions to write or read a unit: a line of up to four descriptors, or one descriptor. The default is
    28."""


class CcnicQuirks(Section):
    """Details of the implementation of CC-NIC that the interface leaves open."""
    buffer_home: Literal['host'] | Literal['nic']
    """Side in whose memory the buffers lie. The default is 'host'."""
    bulk: int
    """Number of buffers that a thread's stack takes from the pool at a time, with `recycle`. The default is 32."""
    cache: int | None
    """Size in buffers of a thread's cache in front of the pool when `recycle` is false, after `rte_mempool`. An
    allocation that finds too few buffers in the cache takes this many buffers more than it needs. A free that would
    fill the cache beyond one and a half times this size first empties the cache. With 0 each burst goes to the
    pool. When absent, the size is 250, the value of testpmd, for `pool = 'host'`, and 0 otherwise. With a cache or
    with `pool = 'host'`, each queue pair has at least as many large buffers as two rings, a batch and a cache
    hold."""
    costs: CcnicCosts
    """Instructions of the interface's operations."""
    free_check: Literal['written'] | Literal['ahead']
    """Mechanism by which a producer learns that a unit is free, with `signal = 'inline'`: 'written' (the default)
    or 'ahead'."""
    free_threshold: int | None
    """Number of free transmit descriptors below which the host frees sent buffers, for `pool = 'host'` (DPDK:
    `tx_free_thresh`): as many buffers as this number, or as the burst needs. When absent, the value is 32, that of
    DPDK's drivers for Intel NICs. The library frees all sent buffers once 32 have been sent: 993 of 1024
    descriptors."""
    host_prefetch: bool
    """Whether the hardware prefetchers of the host's cores are on, where the platform has any. The default is
    true."""
    idle_queues: int
    """Number of unused queue pairs that each of the NIC's threads has in addition to its own, and polls with `wake
    = 'polling'`. The default is 0."""
    large_buffer: str
    """Size of a large buffer, its metadata included: a power of two. A packet of an app of kind 'loopback' that is
    larger than the room behind the metadata takes several buffers with a descriptor each. The default is 4096 B."""
    lazy_release: int
    """Number of receive-ring lines that the host consumes before it clears them. The default is 8."""
    metadata: str
    """Size of the metadata at the start of each buffer: '0 B', '64 B' (the default) or '128 B'. Only the host
    accesses it. The host writes it to allocate a buffer and to receive a packet, and reads it to send, to post or
    to free a buffer."""
    nic_batch: int
    """Maximum number of packets that the NIC takes in a batch, which is at least four: a line of grouped
    descriptors is taken whole. The default is 32."""
    nic_prefetch: bool
    """Whether the hardware prefetchers of the NIC's cores are on, where the platform has any. The default is
    false."""
    nic_requests: int | None
    """Maximum number of outstanding requests of each device agent, for `nic = 'agent'`. The default is 64, which is
    assumed."""
    own_ahead: int
    """Number of units ahead for which a producer requests ownership, with `signal = 'inline'`. The default, 0,
    requests none, as in the paper; the library uses 2."""
    pool_scope: Literal['port'] | Literal['pair']
    """Threads that share free buffers: 'port' (those of all queue pairs, the default) or 'pair' (those of one queue
    pair)."""
    read_ahead: int | None
    """Maximum number of lines of grouped descriptors, including the next line, that a consumer requests while it
    finds successive lines ready. With 0 the consumer waits for each line before it requests another; the library
    uses 6. When absent, the consumer reads ahead as an out-of-order core with branch prediction does, for
    descriptors of any layout. Such a core reads ahead as many polls as fit the reorder buffer together with the
    instructions of a unit, and none beyond the end of the burst."""
    rx_home: Literal['host'] | Literal['nic']
    """Side in whose memory the receive rings lie. The default is 'nic'."""
    small_buffer: str
    """Size of a small buffer, its metadata included: a power of two. The default is 128 B."""
    small_share: float
    """Share of the large buffers that is split into small ones, with `small_buffers`. The default is 0.25."""
    spread: bool
    """Whether large buffers lie an odd number of lines apart, so that their first lines spread over the channels of
    memory, as `rte_mempool` pads its objects (DPDK, `optimize_object_size`). The default is false: CC-NIC's buffers
    have 4096 B, which split into 32 of 128 B (section 3.3)."""
    stack: int
    """Maximum number of buffers in a thread's stack of either size, with `recycle`. The default is 512."""
    tx_home: Literal['host'] | Literal['nic']
    """Side in whose memory the transmit rings lie. The default is 'host'."""


class CcnicSpec(Section):
    """CC-NIC, the interface between host and NIC over coherent memory."""
    buffers: int
    """Number of large buffers; with `small_buffers`, the share `small_share` of these is split into small ones. The
    default is 2048."""
    layout: Literal['grouped'] | Literal['packed'] | Literal['padded']
    """Layout of 16-byte descriptors in cache lines. The default is 'grouped'."""
    mode: Literal['loopback'] | Literal['overlay'] | Literal['forward']
    """Action of the NIC on packets from the host: 'loopback' (the default), 'overlay' or 'forward'."""
    nic: Literal['software'] | Literal['agent']
    """Implementation of the NIC: threads on cores ('software', the default) or device agents ('agent')."""
    nic_node: int
    """Node of the NIC's cores; if this is the tenant's own node, host and NIC share a socket. The default is 0."""
    nic_reads: Literal['payload'] | Literal['header']
    """Lines of a packet that the NIC reads to send it: 'payload' (all lines, the default), or 'header' for `mode =
    'forward'`."""
    nic_threads: int | None
    """Number of the NIC's threads. When absent, there are as many as the tenant has cores ('1-1'). In overlay mode
    each thread has a queue pair, and the tenant's cores divide the queue pairs among themselves. In the other modes
    each of the tenant's cores has a queue pair, and the NIC's threads divide the queue pairs among themselves."""
    nonsequential: bool
    """Whether successive allocations from the pool are never adjacent in memory. The default is true."""
    pool: Literal['shared'] | Literal['host']
    """Sides that manage buffers: 'shared' (both, the default) or 'host' (the host alone)."""
    preset: Literal['unoptimised'] | None
    """Named set of interface choices, such as 'unoptimised'; other keys of this table override them. When absent,
    the defaults of the keys apply."""
    quirks: CcnicQuirks
    """Details of the implementation that the interface leaves open; scenarios leave them alone."""
    recycle: bool
    """Whether each thread of host and NIC keeps freed buffers on a stack and reuses the most recently freed buffer
    first. The default is true."""
    release: Literal['none'] | Literal['clflushopt'] | Literal['clwb']
    """Cache maintenance that the NIC performs on payload lines after reading them. The default is 'none'."""
    ring: int
    """Number of lines of a ring of grouped descriptors: a power of two. Rings of other layouts have the same number
    of descriptors, four times this value. The default is 256."""
    rx_batch: int
    """Maximum number of packets that the host takes in a batch. The default is 32."""
    signal: Literal['inline'] | Literal['register']
    """Mechanism by which a consumer learns of new descriptors: 'inline' (the default) or 'register'."""
    small_buffers: bool
    """Whether packets that fit `small_buffer` use small buffers. The default is true."""
    stores: Literal['cached'] | Literal['nontemporal']
    """Kind of stores with which both sides write payload: 'cached' (the default) or 'nontemporal'."""
    tx_batch: int
    """Maximum number of packets that the host sends in a batch. The default is 32."""
    wake: Literal['polling'] | Literal['event']
    """Mechanism by which the NIC learns that a transmit descriptor is ready: 'polling' (the default) or 'event'."""


class ClientSpec(Section):
    """A second host at the other end of the Ethernet NIC's link. Software on this host sends the traffic and takes
    the replies."""
    app: MicaAppSpec | L3FwdAppSpec | XmemAppSpec | StreamAppSpec | RedisAppSpec | GapbsAppSpec | TcpReceiveAppSpec | TouchdropAppSpec | L2FwdAppSpec | LlcAntagonistAppSpec | TestpmdAppSpec | LoadGeneratorAppSpec | TouchfwdAppSpec | RxptxAppSpec | MemcachedAppSpec | PingpongAppSpec | StreamTransferAppSpec | LoopbackAppSpec | CliqueMapAppSpec | BlockStoresAppSpec | TcpEchoAppSpec | RecordedAppSpec | MemoryTraceAppSpec | DirectedRxAppSpec | DirectedTxAppSpec | PageReuseAppSpec | ProbeLatencyAppSpec | ProbeDeviceAppSpec | ProbePlaceAppSpec
    """Application of the second host's cores; must be of kind 'load_generator'."""
    cores: int
    """Number of cores that send and receive; requests go to them in turn."""
    ethernet: EthernetSpec | None
    """Ethernet NIC of the second host: the keys that differ from the platform's table `ethernet` or that this table
    lacks. Rate and flight time are those of the link to the first host."""
    placement: PlacementSpec | None
    """Placement of the lines that the second host's NIC writes. When absent, the scenario's `placement` applies."""
    platform: Platform | None
    """Hardware of the second host: the name or path of a platform file. When absent, the scenario's own
    platform."""
    stack: Literal['queue_pair'] | Literal['poll_mode'] | Literal['ccnic'] | Literal['kernel'] | Literal['dispatch'] | DispatchStackSpec
    """Stack of the second host's cores: 'poll_mode' (the default), or 'kernel', a UDP socket on each core."""


class CliqueMapAppSpec(Section):
    """Key-value server with objects of many sizes, which are sent from their place in memory (CliqueMap)."""
    below_100: float
    """Fraction of objects below 100 B (0.001 to 0.999). Sizes are log-normal."""
    counted: bool
    """Whether the server counts an object's users: one atomic operation when a reply refers to the object, and
    another one when the reply has been sent. When false, a SET may replace an object while it is being sent. The
    default is true."""
    get_fraction: float
    """Fraction of requests that are GETs."""
    get_instructions: int | None
    """Instructions of a GET in addition to those of the driver and for mbufs: the received header, the look-up, the
    reply's header and its second segment. The default is 309, or 319 with `lookup = 'bulk'`; both values were
    measured with callgrind in a server on DPDK 22.11."""
    headers: int
    """Bytes of a frame in addition to the object. The default is 64."""
    kind: Literal['clique_map']
    largest: str
    """Size that 0.01 % of the objects would exceed; larger objects are cut to this size. The default is 9536 B,
    which is 9600 B with headers."""
    lookup: Literal['single'] | Literal['bulk']
    """Method by which GETs are looked up in the index: 'single' or 'bulk'. The default, 'single', is assumed: the
    paper says only that the index is DPDK's."""
    objects: int
    """Number of objects, each with a key."""
    set_instructions: int | None
    """Instructions of a SET in addition to those of the driver, for mbufs and for copying the object: the new
    object, two look-ups, locks, and the replaced object. The default is 582, or 597 with `lookup = 'bulk'`, whose
    loop skips SETs; both values were measured with callgrind in a server on DPDK 22.11."""
    zipf: float
    """Skew of the keys' popularity: Zipf exponent; 0 is uniform."""


class CoreQuirks(Section):
    """Habits of a core's buffers for misses that processors and simulators differ in."""
    combining_buffers: int | None
    """Number of write-combining buffers, each of one line; 1 when absent. Changes nothing for a core that combines
    stores of one line at a time."""
    l2_mshrs: int | None
    """Number of L2 MSHRs: L2 misses, including those of prefetches, that may be outstanding. When absent, only
    `lfb` and the prefetcher's `credits` limit the L2's misses; where the core follows a NIC's prefetch hints, the
    sum of both is the limit."""
    lfb_retry: str
    """Time after which a miss that found no free line fill buffer takes a buffer that has become free."""
    lfb_targets: int | None
    """Number of accesses that one line fill buffer takes. A further access blocks the L1 until the line has
    arrived, and loads then proceed at one a cycle. When absent, there is no limit."""
    rob_holds: Literal['misses'] | Literal['all']
    """Instructions that wait in the reorder buffer of an out-of-order core: 'misses' (the default) or 'all'."""
    serialise_cycles: int | None
    """Core cycles that a serialising instruction takes in an out-of-order core after all earlier loads and stores
    are done and all doorbells are answered: the pipeline empties, and fills again. When absent, such instructions
    wait for nothing."""
    taken_branch_cycles: int
    """Core cycles for which a taken branch leaves the fetch stage without instructions. The default is 0."""


class CoreSpec(Section):
    """Specification of the host's cores."""
    clock: str
    """Clock frequency of the core."""
    compute_ipc: float
    """Instructions per cycle that code other than line copies sustains. Dependences, branches and instruction fetch
    keep the value below `width`."""
    count: int
    """Number of cores of a node; `nodes.cores` has precedence. Cores that no tenant takes are idle and change
    nothing."""
    l1_prefetch: L1PrefetchSpec | None
    """Hardware prefetchers of the L1, which follow loads of application memory; none when absent."""
    lfb: int
    """Number of line fill buffers: L1 misses, of loads and stores together, that may be outstanding."""
    pipeline: Literal['out_of_order'] | Literal['in_order']
    """Execution order of the pipeline."""
    prefetch: PrefetchSpec | None
    """Hardware prefetcher of the L2 or the LLC; none when absent. The prefetcher follows accesses to application
    memory, and with its key `network` also accesses to a NIC's buffers."""
    quirks: CoreQuirks
    """Habits of the core's buffers for misses, which a platform sets; scenarios leave them alone."""
    rob: int
    """Number of reorder buffer entries, in instructions."""
    stlb: TlbSpec | None
    """Second-level TLB, which the model of Redis uses; without this TLB, address translation takes no time."""
    store_queue: int
    """Number of store queue entries; a store of a 64-byte line takes `stores_per_line` entries."""
    stores_per_line: int
    """Load or store instructions that it takes to move one 64-byte line."""
    threads: int
    """Hardware threads of a core, 1 or 2. With two, a node has twice as many logical cores, numbered as in Linux:
    first come the first threads of all cores, then the second threads of the same cores in the same order. A core
    whose second thread no tenant takes is as fast as a core with one. Two threads that run have half of the core's
    buffers each, so that these are even numbers."""
    width: int
    """Instructions that a core can dispatch, and retire, in one cycle."""


class DctcpSpec(Section):
    """Senders of TCP flows, one flow to each receiving core."""
    ack_delay: str
    """Time that an acknowledgement takes from the receiver's stack to the sender's stack: flight, and interrupt and
    softirq of the sender. The default is 20 us."""
    burst: int
    """Number of segments that a flow sends back to back before the next flow sends (TCP segmentation offload), with
    several flows. The default is 7."""
    gain: float
    """Weight of a window's marked share in the estimate alpha (DCTCP's g). The default is 1/16."""
    initial_window: int
    """Initial congestion window of a flow, in segments. The default is 10."""
    mark: str
    """Bytes in the switch's queue above which it marks segments (ECN), with `ports` above 1. The default is 400
    KiB."""
    ports: int
    """Number of ports over which the flows are spread. A switch joins several ports; a single port (the default)
    sends directly to the receiver."""
    probe: str
    """Time without acknowledgements after which a flow sends its last outstanding segment again. The default is 2
    ms."""
    queue: str
    """Bytes that the switch's queue holds, with `ports` above 1. The default is 2 MiB."""
    send_buffer: str
    """Number of bytes that a sender's socket may hold until the receiver acknowledges them (`tcp_wmem`, with auto-
    tuning off). Changes nothing for a flow whose congestion window is smaller. The default is 1,000,000 B."""


class DirectedRxAppSpec(Section):
    """Directed test of the life of one receive buffer."""
    blocks: int
    """Number of cache blocks of the packet."""
    evict: Literal['none'] | Literal['before_use'] | Literal['after_use']
    """Point at which the packet is evicted from the LLC: 'none' (the default), 'before_use' or 'after_use'."""
    kind: Literal['directed_rx']


class DirectedTxAppSpec(Section):
    """Directed test of the life of one transmit buffer."""
    blocks: int
    """Number of cache blocks of the packet."""
    busy: str
    """Time for which the core is busy with other work after posting the packet."""
    kind: Literal['directed_tx']


class DispatchSpec(Section):
    """Central dispatch: the first core of the tenant takes packets and hands each to one of the other cores that is
    free."""
    depth: int
    """Number of packets that a worker holds at most, the one that it serves included. 1, the default, is a single
    queue; more hide the time that a packet takes to its worker (JBSQ, nanoPU, OSDI 2021)."""
    instructions: int
    """Instructions of the dispatcher per packet: choice of a worker and write of its slot. The default, 100, is
    assumed."""


class DispatchStackSpec(Section):
    """Central dispatch: the first core of the tenant takes packets and hands each to one of the other cores that is
    free."""
    depth: int
    """Number of packets that a worker holds at most, the one that it serves included. 1, the default, is a single
    queue; more hide the time that a packet takes to its worker (JBSQ, nanoPU, OSDI 2021)."""
    instructions: int
    """Instructions of the dispatcher per packet: choice of a worker and write of its slot. The default, 100, is
    assumed."""
    kind: Literal['dispatch']


class DramQuirks(Section):
    """Habits of memory controllers and DRAM that processors and simulators differ in."""
    age_cap_ns: int
    """Age in ns at or above which a request may close a row that still has hits; 0 means never. For `scheduler =
    'hit_first'` and `'first_ready'`."""
    alignment: str
    """Alignment of the start of rings, buffers and tables in physical memory, where they lie back to back: a power
    of two from 4 KiB to 4 MiB."""
    bank_groups: int
    """Number of bank groups per rank; 0 takes the number of `standard`."""
    bank_hash: bool
    """Whether low row bits are XORed into bank and bank group (permutation-based interleaving)."""
    bank_queue: int
    """Number of entries of a command queue for each bank behind the read and write queues (DRAMsim3 has 8); 0 means
    that the controller serves the read and write queues directly. Command queues take the place of `scheduler`: the
    banks take turns, and write mode transfers as many writes as waited when write mode began."""
    banks_per_group: int
    """Number of banks per bank group; 0 takes the number of `standard`."""
    channel_hash: bool
    """Whether higher address bits are hashed into the channel."""
    entry_release: Literal['activate'] | Literal['column'] | Literal['data']
    """Time at which an entry of the read or write queue becomes free. `activate` is for `scheduler = 'hit_first'`
    and `'first_ready'`. Not with `bank_queue`."""
    max_write_burst: int
    """Number of writes after which write mode ends when reads wait; 0 means no limit. Belongs to the schedulers
    that have `writes_yield`."""
    min_read_burst: int
    """Number of reads to serve before write mode may begin, unless no read is left. Belongs to the schedulers that
    have `writes_yield`."""
    min_write_burst: int
    """Number of writes to serve before write mode may end, unless no write is left. Belongs to the schedulers that
    have `writes_yield`."""
    overflow: Literal['separate'] | Literal['shared']
    """Order of requests that arrive while a queue is full."""
    page_idle_ns: float
    """Time in ns after which a row that no request uses or waits for is closed; 0 leaves the row open. Not with
    `bank_queue` or `page_policy = 'closed'`."""
    preset: Literal['skylake_sp'] | Literal['zsim'] | Literal['gem5'] | None
    """Named set of quirks that the other keys of this table override. When absent, the defaults of the keys
    apply."""
    refresh: bool
    """Whether all-bank refreshes take place, rank by rank."""
    refresh_turns: bool
    """Whether the channel changes direction while all its reads or all its writes wait for a rank that refreshes;
    otherwise the channel stays in its mode. Belongs to the schedulers that have `writes_yield`."""
    row_access_limit: int
    """Number of accesses after which a row is closed; 0 means no limit (gem5 uses 16). Not with `page_policy =
    'closed'`."""
    row_hit_limit: int
    """Number of row accesses after which the oldest request of a bank's command queue may close the row although
    younger hits wait (DRAMsim3 has 4); 0 means no limit. For `bank_queue` above 0."""
    rpq_full_mark: int
    """Number of read queue entries at or above which the read queue counts as full in `rpq_full_frac`; with 0, the
    value of `rpq` applies."""
    timing: TimingOverride
    """Timing parameters that differ from those of `standard`."""
    wpq_full_mark: int
    """Number of write queue entries at or above which the write queue counts as full in `wpq_full_frac`; with 0,
    the value of `wpq` applies."""
    write_idle: float
    """Fraction of `wpq` above which write mode begins when no read waits. Not for `scheduler = 'on_arrival'`."""
    writes_yield: bool
    """Whether writes that are sent because no read waits yield immediately to an arriving read, unless the write
    queue then holds more than `write_high`. For `scheduler = 'hit_first'`, `'first_ready'` and `'transaction'`, as
    `refresh_turns` and the burst lengths are."""


class DramSpec(Section):
    """Memory of a node: standard, organisation, and policy of the memory controllers."""
    channels: int
    """Number of channels, 1 to 16; need not be a power of two."""
    device_width: Literal['x8'] | Literal['x16']
    """Width of a DRAM device; x16 devices have half the bank groups and slower activates."""
    mapping: str
    """Address mapping: the fields from the top address bit down (`rorababgcoch`, `RoBaRaCoCh`), or `MOP4CLXOR`, or
    the hash of a processor, without `quirks.channel_hash` and `bank_hash`: `skylake` (x8 DDR4, two channels of two
    ranks), `skylake_sp` and `skylake_sp_fine` (servers; x8 DDR4, 1, 2, 4, 8 or 16 channels of up to four ranks), or
    `zsim`, where an XOR of the line number's 16-bit groups selects the channel, and the lowest bits select the
    bank."""
    page_policy: Literal['open'] | Literal['closed'] | Literal['open_adaptive'] | Literal['closed_adaptive']
    """Treatment of an open row after an access."""
    quirks: DramQuirks
    """Habits of the memory controllers and the DRAM, which a platform sets; scenarios leave them alone."""
    ranks: int
    """Number of ranks per channel: 1, 2, 4 or 8."""
    rpq: int
    """Number of read queue entries per channel."""
    scheduler: Literal['hit_first'] | Literal['first_ready'] | Literal['transaction'] | Literal['on_arrival']
    """Order among the commands that are possible at the same time."""
    standard: Literal['DDR4-2400'] | Literal['DDR4-2666'] | Literal['DDR4-2933'] | Literal['DDR4-3200'] | Literal['DDR5-4800'] | Literal['DDR5-5600'] | Literal['HBM2E-3200'] | Literal['LPDDR5-6400']
    """Memory type and speed bin."""
    static_latency_ns: float
    """Latency in ns of the controller's front-end and back-end pipeline, added to each read."""
    wpq: int
    """Number of write queue entries per channel."""
    write_high: float
    """Fraction of `wpq` above which write mode begins."""
    write_low: float
    """Fraction of `wpq` below which write mode ends when reads wait. Not with `quirks.bank_queue`."""


class EthernetPeripheralSpec(Section):
    """Ethernet NIC for the kernel's TCP and UDP and for poll-mode drivers."""
    descriptors: int
    """Number of receive descriptors of each core's queue, one per frame. The default is 1024. With descriptor rings
    in memory, `rings.receive` applies instead."""
    flow_director: list[FlowRule]
    """Flow director rules, each of which directs one flow of `traffic.flows` to a given queue; RSS spreads the
    other flows by their Toeplitz hash."""
    framing: int
    """Bytes of a frame on the wire in addition to the IP packet: preamble, header, FCS, gap. The default is 38."""
    headers: int
    """Bytes of the IP and TCP headers, including timestamps. The default is 52."""
    host_mark: int | None
    """Number of IIO write-buffer entries in use, as a moving average, at or above which the NIC marks arriving
    frames, so that senders learn of host congestion (hostCC, SIGCOMM'23). When absent, no frame is marked."""
    host_response: HostResponse | None
    """Response of the host itself to congestion on the host (hostCC's host-local response). When absent, the host
    does not respond."""
    kind: Literal['ethernet']
    lanes: int
    """PCIe lanes of the NIC's port: 1, 2, 4, 8, 12 or 16. The default is 16."""
    link: str
    """Rate of the Ethernet link. The default is 100 Gbps."""
    loopback: bool
    """Whether the far end of the wire returns each frame to the queue that sent it, after twice `propagation`.
    Required for an `app` of kind 'loopback'. The default is false."""
    moderation: str
    """Time from a frame's completion in memory to an interrupt, unless `moderation_frames` completions come first.
    With `rings.quirks.throttle`, the interrupt also waits for the throttle's interval, and the completions that
    arrive while software polls wait for the interval alone: a busy queue then never waits for `moderation`. The
    default is 16 us."""
    moderation_frames: int
    """Number of completions that raise the interrupt without waiting for `moderation`. The default is 32."""
    mtu: str
    """Largest IP packet. The default is 9000 B."""
    name: str | None
    """Name by which tenants refer to the NIC, where there are several."""
    node: int
    """Node that the NIC is attached to, in whose memory its buffers lie. The default is 0."""
    page: str
    """Size of a physically contiguous page of `pool`; pages lie anywhere in memory. The kernel counts the users of
    each page. The default is 4 KiB."""
    pool: str
    """Size of the memory for each core's received frames; its pages are reused after that many bytes, so that a
    larger one changes nothing for fewer bytes. The default is 24 MiB."""
    propagation: str
    """Flight time of a frame, MAC to MAC. The default is 100 ns."""
    receive_buffer: str
    """Size of the NIC's receive buffer, which decides only where packets come faster than they go on to memory. The
    default is 130,944 B."""
    rings: RingsSpec | None
    """Descriptor rings in memory, for a poll-mode driver and for the kernel's UDP. When absent, the keys of this
    table have their defaults."""
    tags: int
    """Maximum number of PCIe read requests that the NIC has outstanding. The default is 64."""


class EthernetSpec(Section):
    """An Ethernet NIC behind a PCIe port, driven by the kernel (TCP or UDP) or by a poll-mode driver."""
    descriptors: int
    """Number of receive descriptors of each core's queue, one per frame. The default is 1024. With descriptor rings
    in memory, `rings.receive` applies instead."""
    flow_director: list[FlowRule]
    """Flow director rules, each of which directs one flow of `traffic.flows` to a given queue; RSS spreads the
    other flows by their Toeplitz hash."""
    framing: int
    """Bytes of a frame on the wire in addition to the IP packet: preamble, header, FCS, gap. The default is 38."""
    headers: int
    """Bytes of the IP and TCP headers, including timestamps. The default is 52."""
    host_mark: int | None
    """Number of IIO write-buffer entries in use, as a moving average, at or above which the NIC marks arriving
    frames, so that senders learn of host congestion (hostCC, SIGCOMM'23). When absent, no frame is marked."""
    host_response: HostResponse | None
    """Response of the host itself to congestion on the host (hostCC's host-local response). When absent, the host
    does not respond."""
    lanes: int
    """PCIe lanes of the NIC's port: 1, 2, 4, 8, 12 or 16. The default is 16."""
    link: str
    """Rate of the Ethernet link. The default is 100 Gbps."""
    loopback: bool
    """Whether the far end of the wire returns each frame to the queue that sent it, after twice `propagation`.
    Required for an `app` of kind 'loopback'. The default is false."""
    moderation: str
    """Time from a frame's completion in memory to an interrupt, unless `moderation_frames` completions come first.
    With `rings.quirks.throttle`, the interrupt also waits for the throttle's interval, and the completions that
    arrive while software polls wait for the interval alone: a busy queue then never waits for `moderation`. The
    default is 16 us."""
    moderation_frames: int
    """Number of completions that raise the interrupt without waiting for `moderation`. The default is 32."""
    mtu: str
    """Largest IP packet. The default is 9000 B."""
    name: str | None
    """Name by which tenants refer to the NIC, where there are several."""
    node: int
    """Node that the NIC is attached to, in whose memory its buffers lie. The default is 0."""
    page: str
    """Size of a physically contiguous page of `pool`; pages lie anywhere in memory. The kernel counts the users of
    each page. The default is 4 KiB."""
    pool: str
    """Size of the memory for each core's received frames; its pages are reused after that many bytes, so that a
    larger one changes nothing for fewer bytes. The default is 24 MiB."""
    propagation: str
    """Flight time of a frame, MAC to MAC. The default is 100 ns."""
    receive_buffer: str
    """Size of the NIC's receive buffer, which decides only where packets come faster than they go on to memory. The
    default is 130,944 B."""
    rings: RingsSpec | None
    """Descriptor rings in memory, for a poll-mode driver and for the kernel's UDP. When absent, the keys of this
    table have their defaults."""
    tags: int
    """Maximum number of PCIe read requests that the NIC has outstanding. The default is 64."""


class FastPathCosts(Section):
    """Instructions of TAS's fast path in addition to those of the NIC's driver. The defaults were counted in TAS
    (d3926ba, gcc -O3, x86-64-v3), in a harness that simulates NIC and application, as the difference between bursts
    of one and of sixteen packets."""
    acknowledgement: int
    """Instructions per segment without data, which only acknowledges. The default is 422."""
    burst: int
    """Fixed instructions of a received burst. The default is 101."""
    data: int
    """Instructions per segment with data: look-up, parsing, flow state, entry for the application, acknowledgement.
    The default is 654."""
    entry: int
    """Instructions per entry of the application: flow state, and the flow's place in the queue manager, which
    limits the rate of flows (TAS's default). The default is 501."""
    segment: int
    """Instructions per sent segment. The default is 375."""
    turn: int
    """Instructions of a turn in which the thread finds no work: NIC, queue manager, sixteen contexts, slow path.
    The default is 2004."""


class FittedPackets(Section):
    """Origin of a fitted `receive_packets`: the links of the NIC that was measured."""
    generation: Literal['gen3'] | Literal['gen4'] | Literal['gen5'] | Literal['gen6']
    """PCIe generation of the measured NIC's port; a faster one here changes no result, and causes a warning."""
    lanes: int
    """PCIe lanes of the measured NIC's port; more of them here change no result, and cause a warning."""
    link: str
    """Rate of the Ethernet link of the measured NIC; a faster one here changes no result, and causes a warning."""
    receive_packets: int
    """Value of `receive_packets` that was fitted. Another value of `receive_packets` is one's own, and is not
    judged."""
    to: str
    """Result of the measured NIC that the value reproduces, as a result has it: '76 million packets of 64 B a
    second'."""


class FlowRule(Section):
    """Exact-match rule of the flow director."""
    flow: int
    """Number of the flow, from 0."""
    queue: int
    """Queue of the flow, and so the tenant's core that serves it, from 0."""


class GapbsAppSpec(Section):
    """A kernel of the GAP Benchmark Suite on a random graph."""
    contiguous: str
    """Contiguity of the arrays' physical memory: 'buddy' (the default) for memory as Linux's buddy allocator
    provides it, or the size of contiguous pieces, such as '32 KiB'. The pieces lie anywhere in memory."""
    degree: int
    """Edges per node that the generator draws, a multiple of 4; each edge is stored at both of its ends. The
    default is 16."""
    kernel: Literal['pagerank'] | Literal['betweenness']
    """Graph kernel that the cores run: 'pagerank' (the default) or 'betweenness'."""
    kind: Literal['gapbs']
    scale: int
    """Binary logarithm of the number of nodes (10 to 30)."""


class HierarchySpec(Section):
    """Private caches of every core, the shared LLC and the crossbar between them."""
    l1d: CacheSpec
    """Level-one data cache, one per core."""
    l2: CacheSpec
    """Level-two (mid-level) cache, one per core."""
    l2_inclusive: bool
    """Whether the L2 holds every line of its L1. False when absent."""
    llc: LlcSpec
    """Last-level cache, one per node."""
    noc_cycles: int
    """Cycles of the uncore clock for one traversal of the crossbar in one direction."""
    uncore_clock: str
    """Clock frequency of the LLC, the crossbar and the home agent."""


class HostResponse(Section):
    """hostCC's host-local response: levels that delay the memory requests of the other tenants' cores. While the
    IIO is congested and the network receives less than `target`, the level rises; while the IIO is not congested
    and the network receives more than `target`, the level falls."""
    interval: str
    """Time between two evaluations of the host's congestion. The default is assumed: about the time that a change
    of throttling takes."""
    levels: list[str]
    """Time for which a miss of the other tenants' cores additionally waits for a line fill buffer, one entry per
    level from level 1 on; level 0 adds no wait. The defaults are assumed: with each level hostCC throttles the
    cores of more nodes, and at the last level it stops these cores."""
    occupancy: int
    """IIO write-buffer entries in use, as a moving average, above which the IIO is congested."""
    patience: str
    """Minimum time between two decreases of the level. The default is the value in hostCC's code."""
    target: str
    """Rate that the network is meant to receive, in bytes of frames that reach memory."""


class IatSpec(Section):
    """Control loop that adapts the number of DDIO ways at run time."""
    epoch: str
    """Time between two decisions of the control loop."""
    grow_above: float
    """Write misses per line written above which the NIC gets one more way, up to `max_ways`."""
    max_ways: int
    """Largest number of LLC ways that the NIC may have."""
    min_ways: int
    """Smallest number of LLC ways that the NIC keeps, which matters once the loop has shrunk so far."""
    shrink_below: float
    """Write misses per line written below which the NIC loses one way, down to `min_ways`. Changes nothing while
    the misses stay above it."""


class IdioQuirks(Section):
    """Details of IDIO that its description leaves open."""
    average: int
    """Number of intervals over which write-backs are averaged; 8192 by default."""
    burst: Literal['edge'] | Literal['level']
    """Condition under which packets are marked as a burst; `edge` by default."""
    hint_overflow: Literal['drop'] | Literal['stall']
    """Treatment of a prefetch hint that finds the queue full."""
    hint_queue: int
    """Number of prefetch hints that the queue of an L2's prefetcher holds; 32 by default."""
    invalidate: Literal['mlc'] | Literal['llc']
    """Caches that invalidations of spent buffers reach; `llc` by default."""
    invalidate_form: Literal['line'] | Literal['range']
    """Lines that one invalidate instruction covers: `line` or `range` (all lines of a packet, the default)."""
    status: Literal['saturated'] | Literal['upper']
    """States of a core's FSM in which payload stays in the LLC; `saturated` (0b11 only) by default."""
    sticky: bool
    """Whether only a burst, and not low pressure, ends state 0b11 of the FSM; false by default."""


class IdioSpec(Section):
    """Thresholds, intervals and choices of IDIO."""
    burst_threshold: str
    """Rate of traffic to one core above which the NIC signals a burst (rxBurstTHR); 10 Gbps by default."""
    class1_dscp: list[int]
    """DSCP values, 0 to 63, of packets of class 1, whose payload software reads rarely or late; none by default."""
    interval: str
    """Interval of the NIC's byte counters and of the control plane; 1 us by default, at least 10 ns."""
    mlc_threshold: str
    """Rate of an L2's write-backs beyond their average at or above which pressure on the L2 is high (mlcTHR); 50
    Mps by default."""
    quirks: IdioQuirks
    """Details of IDIO that its description leaves open; scenarios leave them alone."""


class IioQuirks(Section):
    """Habits of I/O controllers that processors and simulators differ in."""
    fetch_partial: bool
    """Whether a write of a part of a line reads the line first. A cache in front of the home agent does so when it
    writes back whole lines. When false (the default), a partial write proceeds like a write of a whole line."""
    line_header: str | None
    """Part of `line_interval` that a write takes regardless of how many bytes of its line it carries; the remainder
    of `line_interval` is in proportion to the bytes. When absent, every line takes all of `line_interval`."""
    register_answer: str | None
    """Time from the effect of a register write at the device to its answer at the IIO. A serialising instruction
    waits for the answer of each doorbell, and an in-order core waits for it at once. When absent, register writes
    are posted and have no answer."""
    register_write: str
    """Time that a register write takes in addition to the link: in the bridges in front of the link, and in the
    register itself. The default is 0."""
    shared_with_cores: bool
    """Whether requests of cores also use the path to the home agent, for `line_interval` each. A modified line that
    an L2 writes back to the LLC then takes `write_back_interval` on this path, which is the path of the NIC's port.
    The default is false."""
    write_back_buffer: int
    """Number of lines that may wait to be written back when `write_back_interval` is not 0; when more lines wait,
    requests wait for the oldest. The default is 1."""
    write_back_interval: str
    """Time that each write-back of a cache in front of the home agent takes on the path to the home agent. Such a
    cache keeps the lines that devices write to caches, and lines that devices read while the LLC had them modified.
    Each such line is written back once, after requests, and the `line_interval` of a request then covers no data.
    The default, 0, means that there is no such cache."""


class IioSpec(Section):
    """Integrated I/O controllers: their buffers, and the time and bandwidth of the path to the home agent."""
    count: int
    """Number of I/O controllers, each with buffers of its own; devices are assigned to the controllers round
    robin."""
    from_cha: str
    """Time from the home agent's answer to the release of the buffer entry."""
    line_interval: str
    """Time between two lines on their way to the home agent, those that devices write and requests for those that
    they read alike: one clock period of the IIO's coherent side. The default is 0."""
    ownership: str
    """Time that a write spends at the home agent to obtain ownership of its line, in addition to the path to the
    memory controller; a write proceeds only with ownership."""
    quirks: IioQuirks
    """Habits of the I/O controllers, which a platform sets; scenarios leave them alone."""
    read_buffer: int
    """Read-buffer entries of each controller, one per cache line: credits of the P2M-Read domain."""
    to_cha: str
    """Time from an entry's allocation to the request's arrival at the home agent."""
    write_buffer: int
    """Write-buffer entries of each controller, one per cache line: credits of the P2M-Write domain."""


class L1PrefetchQuirks(Section):
    """Habits of the prefetchers of the L1 that processors differ in."""
    instructions: int
    """Number of instructions whose strides the stride prefetcher follows; 0 disables the prefetcher. Each load at
    its instruction's stride prefetches the line one stride further on."""
    longest: str
    """Longest stride that the stride prefetcher follows, between 64 B and 4 KiB; longer distances between loads are
    ignored."""
    misses: int
    """Number of line fill buffers (`core.lfb`) in use at which the L1's prefetchers pause. On a core with fewer,
    they pause when all are in use."""
    recent: int
    """Number of most recently loaded lines that the next-line prefetcher remembers; 0 disables the prefetcher. A
    load of the line that follows a remembered line, or several loads of one line, make the prefetcher fetch the
    line after the loaded one."""
    stores: int
    """Number of consecutive stores, counted in lines, after which the next load prefetches nothing."""
    trigger: int
    """Number of loads at one distance, including the first load, at or above which the stride prefetcher fetches
    lines."""


class L1PrefetchSpec(Section):
    """Prefetchers of the L1: a next-line prefetcher and a stride prefetcher."""
    enabled: bool
    """Whether the L1's prefetchers work."""
    quirks: L1PrefetchQuirks
    """Habits of the L1's prefetchers, which a platform sets; scenarios leave them alone."""


class L2FwdAppSpec(Section):
    """Layer-2 forwarder: edits the header and sends the packet in place, or drops it."""
    instructions: int
    """Instructions per packet in addition to the header's load and store. The default is 100."""
    kind: Literal['l2fwd']
    payload: Literal['forward'] | Literal['drop']
    """Action on a packet after its header has been processed: 'forward' (the default) or 'drop'."""


class L3FwdAppSpec(Section):
    """Layer-3 forwarder."""
    instructions: int
    """Instructions per packet in addition to loads and stores of lines. The default is 150."""
    kind: Literal['l3fwd']
    rules: int
    """Number of routes, each a /24 prefix or a 5-tuple; packets spread evenly over the routes."""
    table: Literal['lpm'] | Literal['exact_match']
    """Route look-up: 'lpm' (longest-prefix match, the default) or 'exact_match'."""
    table_entries: int | None
    """Number of keys that an exact-match table has room for, at least `rules`; only for `table = 'exact_match'`.
    The default is twice `rules`."""
    zero_copy: bool
    """Whether the forwarder edits the packet in its receive buffer and sends it from there. When false (the
    default), the forwarder copies the packet to a transmit buffer."""


class LlcAntagonistAppSpec(Section):
    """Random reads and writes of a private buffer; its metric is cycles per instruction."""
    buffer: str
    """Size of each core's buffer."""
    gap_instructions: int
    """Instructions between two accesses. The default is 4."""
    kind: Literal['llc_antagonist']
    writes: float
    """Share of the accesses that are writes (0 to 1). The default is 0.5."""


class LlcQuirks(Section):
    """Habits of the LLC and its home agent that processors and simulators differ in."""
    clean_victim: Literal['allocate'] | Literal['allocate_fetched'] | Literal['drop']
    """Destination of clean victims of L2s."""
    clean_victim_cleans: bool
    """Whether a clean victim of an L2 marks its line in the LLC clean although the LLC's copy is dirty, so that
    data is lost. Sweeper's published runs do so by mistake; no processor does. False when absent."""
    device_read: Literal['snapshot'] | Literal['demote'] | Literal['install']
    """Treatment of a line's copies when a device reads the line."""
    device_read_ages: bool
    """Whether a device's read of a line in the LLC gives the line the oldest age, because no further use is
    expected; otherwise the read counts as a use. Needs `replacement = 'srrip'`. False when absent."""
    device_ways: Literal['lowest'] | Literal['highest']
    """LLC ways that the first ways of a placement policy (`placement.ways`) are mapped to."""
    inclusive_ways: int
    """Number of directory-inclusive ways, which hold lines that a core also has. These ways lie at the other end of
    a set than the ways of devices (`device_ways`), and victims of L2s go to other ways. 0, the default, means none;
    any other number needs `role = 'victim'`."""
    memory_link: MemoryLinkSpec | None
    """Link between the caches of a node and its memory controllers, for one node; when absent, lines cross at any
    rate."""
    modified_read: Literal['share'] | Literal['take']
    """Treatment of a line that another core of the node has modified when a core reads it; `take` needs `role =
    'victim'` and `read_hit = 'migrate'`."""
    mshrs: int
    """Number of miss status holding registers (MSHRs) of each slice; 0, the default, means no limit. A miss holds
    an MSHR until its data has reached the requester and the memory controller has accepted the line that it
    displaced. While a slice has no free MSHR, all requests to it wait, hits included; victims of L2s that miss take
    one in any case. With MSHRs, `write_buffer` and `nic_credits` limit nothing but write-backs that are `admitted`
    (`writebacks`)."""
    nic_credits: int
    """Number of entries of `write_buffer` that only the integrated NIC may use, so that data from the wire has
    priority. 0 when absent; if `mshrs` is set, it has an effect only with `writebacks = 'admitted'`."""
    preset: Literal['skylake_sp'] | Literal['zsim'] | Literal['gem5'] | None
    """Named set of quirks that the other keys of this table override. When absent, the defaults of the keys
    apply."""
    read_hit: Literal['retain'] | Literal['migrate']
    """Treatment of the LLC's copy when a core's read hits it, for `role = 'victim'`; other LLCs retain the line."""
    response_cycles: int
    """Cycles of the uncore clock that a line takes through the LLC on its way from DRAM to the requester; 0 when
    absent."""
    store_hit: Literal['move'] | Literal['retain']
    """Treatment of the LLC's copy when a store hits it, for `role = 'victim'`; other LLCs retain the line."""
    upgrade_miss: Literal['grant'] | Literal['fetch']
    """Request of a store whose core has a clean copy of a line that the LLC has evicted; `fetch` needs `device_read
    = 'install'`."""
    write_back_uses: bool
    """Whether a dirty victim of an L2 that finds its line in the LLC counts as a use of the line. True when
    absent."""
    writebacks: Literal['immediate'] | Literal['admitted']
    """Way in which a victim of an L2 reaches the home agent."""


class LlcSpec(Section):
    """Shared last-level cache and its home agent (CHA)."""
    indexing: Literal['modulo'] | Literal['hashed_slices'] | Literal['interleaved_slices'] | Literal['even_slices'] | Literal['folded_slices']
    """Function that spreads lines over slices and sets."""
    latency_cycles: int
    """Cycles of the uncore clock that a look-up adds to an access."""
    quirks: LlcQuirks
    """Habits of the LLC and its home agent, which a platform sets; scenarios leave them alone."""
    replacement: Literal['lru'] | Literal['lru_scan'] | Literal['tree_plru'] | Literal['srrip'] | Literal['nru'] | Literal['random'] | Literal['nmru']
    """Replacement policy of the LLC."""
    role: Literal['victim'] | Literal['inclusive'] | Literal['strictly_inclusive']
    """Inclusion policy of the LLC for fills from DRAM for cores."""
    size: str
    """Capacity of the LLC, all slices together."""
    slices: int
    """Number of slices; the number of sets of a slice must be a power of two."""
    ways: int
    """Associativity of the LLC, 1 to 24."""
    write_ack: str
    """Time of a write from the home agent to the memory controller, and of the acknowledgement that its queue has
    accepted the write; 0 when absent."""
    write_buffer: int
    """Number of writes that may wait at the home agent for a full write pending queue (`memory.wpq`) before it
    stops admitting requests, the second stage of backpressure. If `mshrs` is set, it limits nothing but write-
    backs, and those only with `writebacks = 'admitted'`."""
    write_order: Literal['arrival'] | Literal['round_robin']
    """Order in which writes that wait at the home agent enter a channel's write queue."""


class LoadGeneratorAppSpec(Section):
    """Load generator in software: sends the requests of a scenario's traffic and takes the replies, on the host of
    `[client]`."""
    kind: Literal['load_generator']
    reply_instructions: int
    """Instructions of a reply in addition to the load of its first line: matching the reply to its request, and
    measuring the latency. The default, 50, is assumed."""
    request_instructions: int
    """Instructions of a request in addition to the stores of its lines: due time, text, time stamp. The default,
    100, is assumed."""


class LoopbackAppSpec(Section):
    """Sender of packets through CC-NIC, or through a PCIe NIC in loopback mode, which reads the packets that
    return."""
    bytes: str
    """Size of a packet (1 B to 32 KiB), all of which lies in memory. Behind a PCIe NIC a frame has its check
    sequence in addition."""
    kind: Literal['loopback']
    touch: Literal['payload'] | Literal['header']
    """Part of a packet that the host writes and reads: 'payload' (all lines, the default) or 'header' (the first
    line), which are the same for packets of one line."""


class MemcachedAppSpec(Section):
    """Key-value server that answers a capture of memcached over UDP."""
    get_atomics: int
    """Atomic operations per key that is read: locks that are taken and released, and the item's reference count.
    The default is 0."""
    hash_power: int | None
    """Binary logarithm of the number of buckets in the hash table (1 to 32). When absent, there are at least as
    many buckets as keys."""
    instructions: int
    """Instructions per request in addition to loads and stores of lines (parsing, hashing, formatting). The default
    is 1200."""
    item_overhead: int
    """Bytes of an item before its value: header, key, flags. The default is 80."""
    kind: Literal['memcached']
    populations: int
    """Number of copies of the captured key population, each with its own items: the table of a server that keeps
    more items than one short capture accesses. All requests of one pass over the capture go to one copy. The
    default is 1."""
    set_atomics: int
    """Atomic operations per item that is stored: locks that are taken and released, and the item's reference count.
    The default is 0."""
    set_instructions: int | None
    """Instructions per request that stores an item, in addition to loads and stores of lines. When absent, the
    value of `instructions`."""


class MemoryLinkSpec(Section):
    """Link between the caches of a node and its memory controllers. AMD's processors since Zen 2 have one link for
    each chip of cores, which is wider for reads than for writes. Accesses of devices do not cross the link."""
    read: str
    """Rate of lines from memory to cores."""
    write: str
    """Rate of lines that caches and cores write to memory. Lines that wait for the link count as writes that wait
    at the home agent (`caches.llc.write_buffer`)."""


class MemoryTraceAppSpec(Section):
    """Memory trace of another simulator (Ramulator 2, DRAMsim3 or ChampSim), which each core executes over and
    over."""
    entries: int
    """Number of lines of a text trace, or of instructions of a ChampSim trace, that a core executes before it
    begins again at the first. A shorter trace is executed whole. The default is 1,000,000."""
    file: str
    """Trace to execute: a text trace of Ramulator 2 (`LD ADDRESS` and `ST ADDRESS`, or `BUBBLES LOAD [STORE]`) or
    of DRAMsim3 (`ADDRESS READ CYCLE`), or a ChampSim trace. The content tells the format. The file is looked for
    beside the scenario and in the folders of platforms."""
    gap_instructions: int | None
    """Instructions before each access of a trace that counts no instructions. The default is 0."""
    kind: Literal['memory_trace']


class MicaAppSpec(Section):
    """MICA key-value store."""
    buckets: int
    """Number of buckets of 8 entries, over all partitions."""
    copy: Literal['cached'] | Literal['streaming']
    """Kind of stores with which a SET writes the log: 'cached' (the default) or 'streaming'."""
    get_fraction: float
    """Fraction of requests that are GETs."""
    instructions: int
    """Instructions per request in addition to loads and stores of lines. The default is 250."""
    item_size: str
    """Size of an item in the log, including header and key; also the size of a SET's packet. At least 64 B."""
    kind: Literal['mica']
    log_size: str
    """Size of the log of each partition."""
    pairs: int
    """Number of key-value pairs loaded before the run, over all partitions."""
    update: Literal['in_place'] | Literal['append']
    """Effect of a SET of a known key: 'append' (the default) or 'in_place'."""
    zipf: float
    """Skew of key popularity within a partition: Zipf exponent; 0 is uniform."""


class NicSpec(Section):
    """Timing of an integrated NIC, on the chip."""
    line_interval: str
    """Time between two lines that the receive engine or a transmit engine moves."""
    notify: str
    """Time from the sending of a message to its effect: a queue entry (from the NIC to a polling core, or from a
    core to the NIC), or a sweep."""
    pipeline: str
    """Time from the wire to the write of a packet's first line, and from the read of a reply's last line to the
    wire."""
    ring_start: Literal['random'] | Literal['first']
    """Slot at which each of the NIC's rings begins."""


class NodeLinkSpec(Section):
    """Links between two nodes (UPI, CXL). A hash of a line's address assigns the line to one of the links; every
    value is for one direction."""
    credits: int
    """Number of requests of a node that may be outstanding over the links."""
    data: str
    """Size of a message with a line of 64 B, including its header."""
    latency: str
    """Latency of a link from one agent to the other, without serialisation."""
    links: int
    """Number of parallel links."""
    message: str
    """Size of a message without data (a request, a snoop or a response), including its header."""
    rate: str
    """Data rate of one link, in bytes per second."""
    spare: str
    """Bytes of `data` that a line leaves free in its flits. Messages without data that find the link busy use them.
    0 when absent."""


class NodesQuirks(Section):
    """Choices of the coherence protocol between nodes, which is MESIF."""
    directory_writes: bool
    """Whether memory keeps the directory of the copies in the other node with each line, so that a new state costs
    a write. The home node writes a line that the other node takes from the home's caches, and one that it reads
    from memory first. False when absent."""
    migratory: bool
    """Whether a read that finds the line modified in the other node takes the line with the permission to write.
    Otherwise the line is written to its home and both nodes share it. True when absent."""
    speculative: bool
    """Whether a miss on a line of the reader's own memory that the other node may have modified reads memory in
    parallel with the snoop. True when absent."""
    speculative_penalty: str
    """Time that a speculative read whose data is not used adds to the miss that caused the read, beyond the wait
    for the read; see `speculative`. 0 when absent."""


class NodesSpec(Section):
    """Nodes of a machine: sockets, or a processor and an accelerator with coherent memory."""
    cores: int | None
    """Number of cores of a node. When absent, `core.count`."""
    count: int
    """Number of nodes, 1 or 2; each has caches and memory controllers as the platform specifies. Two nodes need
    `link`."""
    crossing_cycles: int
    """Cycles of one crossing between a node's home agents and its link agent, and between a home agent and a memory
    controller, at the node's uncore clock. With 0, the default, `link.latency` and `memory.static_latency_ns`
    include these crossings."""
    link: NodeLinkSpec | None
    """Links between two nodes; needed when `count` is 2."""
    quirks: NodesQuirks
    """Habits of the coherence protocol between nodes, which a platform sets; scenarios leave them alone."""
    uncore_clock: list[str]
    """Clock frequencies of LLC, crossbar and home agent, by node. Nodes beyond the list have
    `caches.uncore_clock`."""


class PageReuseAppSpec(Section):
    """Directed test of a page that changes its owner."""
    guard: Literal['none'] | Literal['clwb'] | Literal['dma']
    """Method with which the kernel makes the page safe for its next owner: 'none' (the default), 'clwb' or
    'dma'."""
    kind: Literal['page_reuse']
    page: str
    """Size of the page."""


class PcapSpec(Section):
    """A capture to replay."""
    file: str
    """Path of a pcap or pcapng file, relative to the scenario's file. Where it is not there, it is looked for in
    the current directory and in the folders of platforms."""
    lenient: bool
    """Whether the packets before the damage of a truncated or corrupt file are replayed. When false (the default),
    such a file is refused. Without damage, both replay the whole file."""
    port: int | None
    """UDP port of the memcached server, for an `app` of kind 'memcached' (11211 when absent). For other
    applications, the UDP or TCP port whose packets are replayed; when absent, all IP packets."""
    timing: Literal['original'] | Literal['poisson'] | Literal['fixed']
    """Schedule of the replayed packets: 'original' (the default), 'poisson' or 'fixed'."""


class PcieQuirks(Section):
    """Habits of links that simulators of PCIe have."""
    cut_through: bool
    """Whether the receiver of a packet acts on its header while the payload still occupies the link. When false
    (the default), the receiver waits for the whole packet."""
    lane_rate: str | None
    """Rate of one lane after the line code, instead of the rate of `generation`: for a bus that is not a PCIe
    link."""
    train: int
    """Number of packets for consecutive lines that are simulated as one packet with all their bytes. All of them
    arrive with the last packet, which delays the first packets by the time that the others occupy the link, and
    makes a simulation faster. The default is 1."""


class PcieSpec(Section):
    """PCIe links between the devices and the IIO."""
    completion_overhead: int
    """Bytes of a completion in addition to its payload."""
    dllp_share: float
    """Share of the link (0 to 0.5) that data-link-layer packets and skip ordered sets take."""
    generation: Literal['gen3'] | Literal['gen4'] | Literal['gen5'] | Literal['gen6']
    """PCIe generation of the links: signalling rate and line code."""
    max_payload: str
    """Largest payload of a memory write or a completion."""
    max_read_request: str
    """Largest memory read request."""
    non_posted: int
    """Non-posted header credits of a port of four lanes: the number of read requests that may wait for IIO entries.
    A wider port has this number for each four of its lanes."""
    posted_lines: int
    """Posted-data credits of a port of four lanes, in lines: the number of written lines that have been sent and
    whose IIO entries are not yet free. A wider port has this number for each four of its lanes."""
    propagation: str
    """Flight time of a packet from transmitter to receiver, controllers included."""
    quirks: PcieQuirks
    """Habits of the links of a simulator, which a platform sets; scenarios leave them alone."""
    read_request: int
    """Bytes of a memory read request."""
    write_overhead: int
    """Bytes of a memory write in addition to its payload: framing, sequence number, header, CRC."""


class PingpongAppSpec(Section):
    """Counter that two threads exchange through two registers in coherent memory."""
    kind: Literal['pingpong']
    layout: Literal['S0'] | Literal['S1'] | Literal['Rd'] | Literal['Wr'] | Literal['S0C'] | Literal['S1C']
    """Location of the two registers."""
    peer_node: int
    """Node of the other thread of each pair. The default is 0."""


class PipelineSpec(Section):
    """Pipeline of a tenant's cores in pairs: the first half of the cores receive packets, and each of the other
    cores works on the packets that its partner hands over."""
    burst_instructions: int
    """Instructions to put a burst into the ring or to take a burst out, in addition to the accesses. The default,
    40, is assumed."""
    ring: int
    """Number of packets that the software ring of a pair holds: a power of two. A receiving core takes no more
    packets from the NIC than the ring has room for. The default is 1024."""


class PlacementSpec(Section):
    """Placement of inbound lines and treatment of spent buffers."""
    iat: IatSpec | None
    """Control loop that moves LLC ways between the NIC and the cores at run time; needs `policy = 'ddio'`. The
    number of ways is fixed when absent."""
    idio: IdioSpec | None
    """Thresholds, intervals and choices of IDIO; needs `policy = 'idio'`. `policy = 'table'` takes its classes and
    its queue of hints."""
    mode: Literal['invalidate'] | Literal['prefetch'] | Literal['static'] | Literal['dynamic'] | None
    """Set of IDIO's mechanisms that are active; needs `policy = 'idio'`. `dynamic` when absent."""
    policy: Literal['dma'] | Literal['ddio'] | Literal['ideal'] | Literal['idio'] | Literal['table']
    """Policy that chooses the destination of inbound lines."""
    resq: bool
    """Whether receive rings are shortened so that all receive buffers fit into the LLC ways that `ways` gives the
    NIC (ResQ). Rings whose buffers fit stay as they are."""
    sweep_rx: bool
    """Whether software relinquishes a receive buffer after its last read (Sweeper). A buffer that the application
    sends in place has no last read; where every tenant sends in place, as forwarders with `stack = 'poll_mode'` do,
    the key changes nothing."""
    sweep_tx: Literal['none'] | Literal['nic'] | Literal['cpu']
    """Agent that sweeps transmit buffers after transmission (Sweeper); none by default. Applications that send
    nothing have no such buffers."""
    table: TableSpec | None
    """Destination of each class of lines; needs `policy = 'table'`."""
    ways: int | str
    """LLC ways into which writes of devices may allocate. A number counts from way 0 up, whereas the number of
    `tenant.llc_ways` counts from the top way down; a string such as '0-3' names a range, '0x600' is the bit mask of
    '9-10', and 'all' stands for every way of the platform's LLC. 2, which are ways 0 and 1, when absent. Where
    `caches.llc.quirks.device_ways = 'highest'`, ways count from the other end."""


class Platform(Section):
    """Hardware, and the software costs that come with it."""
    background_read_gbs: float
    """Memory reads by a system that is otherwise idle, in GB/s: reads of lines anywhere, at random times. The
    default is 0."""
    block: BlockSpec | None
    """Kernel's block layer; required for SSDs with `cores` above 0."""
    caches: HierarchySpec
    """Cache hierarchy and the crossbar to the LLC."""
    ccnic: CcnicSpec | None
    """Defaults of CC-NIC, for the keys that a scenario's table `ccnic` leaves out."""
    core: CoreSpec
    """Cores, with their clock, pipeline and prefetchers."""
    description: str
    """Machine that the platform models, in words."""
    ethernet: EthernetSpec | None
    """Defaults of the Ethernet NIC behind a PCIe port, for the keys that a `[[peripheral]]` of kind 'ethernet'
    leaves out."""
    iio: IioSpec | None
    """Integrated I/O controllers (IIO) between PCIe ports and the home agent; required for a `[[peripheral]]`."""
    memory: DramSpec
    """Memory controllers and DRAM."""
    name: str
    """Name by which scenarios refer to the platform."""
    nic: NicSpec
    """Integrated NIC, on the chip."""
    nodes: NodesSpec | None
    """Nodes with coherent memory: sockets, or a processor and an accelerator. When absent, there is one node. The
    tables `caches` and `memory`, and `core.count`, are per node, unless `nodes.cores` gives the number of cores per
    node."""
    pcie: PcieSpec | None
    """PCIe links between peripherals and the I/O controllers; required for a `[[peripheral]]`."""
    poll_mode: PollModeSpec | None
    """Poll-mode driver of an Ethernet NIC; required for `stack = 'poll_mode'`."""
    provenance: Section
    """Sources of the platform's numbers: a map from key path to 'datasheet: ...', 'paper: ...', 'artifact: ...',
    'standard: ...', 'measured: ...', 'fitted: ...', 'read: ...', 'base: ...' or 'assumed: ...'."""
    queue_pair: QpSpec
    """Queue-pair library for the integrated NIC."""
    tcp: TcpSpec | None
    """Kernel's TCP receive path; required for `stack = 'kernel'` and for an `app` of kind 'tcp_receive'."""
    udp: UdpSpec | None
    """Kernel's UDP sockets; required for `stack = 'kernel'`."""


class PollModeQuirks(Section):
    """Habits of poll-mode drivers and their memory pools that NICs differ in."""
    allocate_instructions: int
    """Instructions to allocate a buffer for a reply. Use 0, the default, where the application's own instructions
    include the allocation."""
    detach_instructions: int
    """Additional instructions per freed buffer whose metadata represents data elsewhere, to release the data and
    restore the metadata. The default is 0."""
    free_sent: Literal['threshold'] | Literal['reuse'] | Literal['burst']
    """Time at which the driver frees sent buffers: 'threshold' (the default), 'burst' or 'reuse'. Sent buffers that
    the driver keeps enlarge the memory that packets use."""
    free_serialises: bool
    """Whether each freed buffer takes a serialising instruction. The default is false."""
    free_threshold: int
    """Number of free transmit descriptors below which the driver frees sent buffers (DPDK: `tx_free_thresh`): as
    many buffers as this number, or as the burst needs. Not with `free_sent = 'burst'`. The default is 32."""
    mbuf_lines: int
    """Number of lines of a buffer's metadata that the driver accesses: 1 or 2. The default is 2."""
    mempool: int | None
    """Number of buffers of each core's mempool. When absent or 0, as many buffers as both rings, two caches and two
    bursts can hold."""
    mempool_cache: int
    """Number of buffers in a core's cache of the mempool. The default is 250. With 0 there is no cache, and buffers
    are used in the order in which they were returned."""
    mempool_shared: bool
    """Whether the buffers of all cores belong to one pool. The buffers with which the rings begin then lie back to
    back, queue by queue, in the order in which the set-up of the rings takes them, and the other buffers lie behind
    them. When false (the default), each core's pool has separate memory."""
    poll_serialises: bool
    """Whether each `rx_burst` begins with a serialising instruction, such as the read of the thread pointer on
    AArch64 in gem5. The default is false."""
    prefetch: bool
    """Whether the driver prefetches each packet's first line and the next buffer's metadata. The default is
    true."""
    rearm: int
    """Number of receive descriptors that the driver refills with fresh buffers before it tells the NIC (DPDK:
    `rx_free_thresh`). The default is 32."""
    receive_branches: int
    """Taken branches per received packet, each of which costs `core.quirks.taken_branch_cycles`; without that key
    they change nothing. The default is 0."""
    transmit_branches: int
    """Taken branches per packet to be sent, those that free a buffer among them, each of which costs
    `core.quirks.taken_branch_cycles`; without that key they change nothing. The default is 0."""
    transmit_burst: int | None
    """Number of packets that the driver gathers for a `tx_burst`, unless no more packets arrive; also the maximum
    of one `tx_burst`. When absent, the driver sends the packets of an `rx_burst` as soon as they have been
    served."""


class PollModeSpec(Section):
    """Parameters of a poll-mode driver, and its costs in addition to the memory accesses that are simulated
    (descriptors, mbufs, packets)."""
    burst: int
    """Maximum number of packets that an `rx_burst` returns. The default is 32."""
    burst_instructions: int
    """Fixed instructions of an `rx_burst` that finds packets, and of a `tx_burst`."""
    free_instructions: int
    """Instructions per freed buffer."""
    poll_instructions: int
    """Instructions of an `rx_burst` that finds no packet."""
    quirks: PollModeQuirks
    """Habits of the NIC's driver and its memory pools, which a platform sets; scenarios leave them alone."""
    receive_instructions: int
    """Instructions per received packet."""
    transmit_instructions: int
    """Instructions per packet to be sent."""


class PrefetchQuirks(Section):
    """Habits of the prefetcher of the L2 or the LLC that processors and simulators differ in."""
    adjacent: bool
    """Whether a line that an access fetches into the L2 also brings the other line of its 128 bytes ('spatial
    prefetcher')."""
    into: Literal['l2'] | Literal['llc']
    """Cache that the prefetcher belongs to; `llc` needs `pattern = 'stride'` and `adjacent = false`."""
    network: bool
    """Whether the prefetcher also follows accesses to a NIC's receive buffers."""
    next_page: bool
    """Whether a stream that reaches the end of its page of 4 KiB goes on in the page with the next virtual
    addresses ('next-page prefetcher', Intel SDM volume 4, MSR 1A4H). Otherwise each page begins a stream of its
    own. Excludes `pattern = 'stride'` and `waiting`."""
    ownership: bool
    """Whether prefetches that a request for ownership causes ask for ownership as well (Intel's event `PF_L2_RFO`);
    otherwise all prefetches are reads. Excludes `waiting`."""
    pattern: Literal['stream'] | Literal['stride']
    """Pattern of accesses that the prefetcher follows."""
    preset: Literal['gem5'] | None
    """Named set of quirks that the other keys of this table override. When absent, the defaults of the keys
    apply."""
    reserve: int
    """Number of the L2's MSHRs (`core.quirks.l2_mshrs`) that prefetches leave to accesses. Prefetch hints of a NIC
    leave these MSHRs free as well, even if the prefetcher is not enabled."""
    waiting: int
    """Largest number of prefetches that wait for a free MSHR of the L2 (`core.quirks.l2_mshrs`); a further prefetch
    displaces the oldest. With 0, prefetches that find no free MSHR are dropped."""


class PrefetchSpec(Section):
    """Hardware prefetcher of the L2 or the LLC."""
    credits: int
    """Largest number of outstanding prefetches; on hardware, the entries of the L2's request queue that line fill
    buffers do not claim."""
    degree: int
    """Largest number of lines that one access prefetches."""
    distance: int
    """Largest distance, in lines, between the newest access and a prefetched line of its stream; a stream leaves
    its page of 4 KiB only with `quirks.next_page`. With `pattern = 'stride'` only `degree` limits the distance."""
    enabled: bool
    """Whether the prefetcher is on."""
    quirks: PrefetchQuirks
    """Habits of the prefetcher, which a platform sets; scenarios leave them alone."""
    streams: int
    """Number of pages watched at a time, each with one stream; with `pattern = 'stride'`, number of
    instructions."""
    trigger: int
    """Number of accesses in one direction (with `pattern = 'stride'`, at one stride), including the first access,
    at or above which the prefetcher fetches: 2 to 16, or 2 to 6 for strides."""


class ProbeDeviceAppSpec(Section):
    """Directed test of a load from a device, or of a burst of write-combining stores to it."""
    access: Literal['load'] | Literal['store']
    """Access to the device: 'load' or 'store'."""
    bytes: int
    """Bytes of the load or of each store (1 to 64)."""
    kind: Literal['probe_device']
    stores: int
    """Number of stores in the burst. The default is 1."""


class ProbeLatencyAppSpec(Section):
    """Directed test of one load's latency, by the location of the line."""
    kind: Literal['probe_latency']
    place: Literal['local_l1'] | Literal['local_l2'] | Literal['local_llc'] | Literal['local_dram'] | Literal['other_l2'] | Literal['remote_llc'] | Literal['remote_dram'] | Literal['remote_l2_rh'] | Literal['remote_l2_lh']
    """Location of the line that is loaded."""


class ProbePlaceAppSpec(Section):
    """Directed test of one request of a device, by the location of the line."""
    dirty: bool
    """Whether the core has modified its copy of the line, where it has one. The default is false."""
    kind: Literal['probe_place']
    place: Literal['mlc'] | Literal['both'] | Literal['llc'] | Literal['ddio'] | Literal['dram']
    """Location of the line before the request."""
    request: Literal['write'] | Literal['read']
    """Request that the device makes: 'write' or 'read'."""


class QpQuirks(Section):
    """Habits of libraries of queue pairs that simulators differ in."""
    batch_of: Literal['entries'] | Literal['packets']
    """Entries that `batch` counts: 'entries' (all entries, the default) or 'packets' (only packets)."""
    batch_polls: int
    """Number of polls without a packet after which software serves an incomplete batch. With 0, the default,
    software serves the batch as soon as the queue is empty."""
    empty_poll_instructions: int | None
    """Instructions to poll an empty completion queue. When absent, the value of `poll_instructions`."""
    send_completions: bool
    """Whether a reply that has been sent also puts an entry into the completion queue, behind the packets that wait
    there. Such entries count towards `traffic.depth` of 'keep_depth' arrivals, and each takes `poll_instructions`.
    The default is false."""


class QpSpec(Section):
    """Costs of the queue-pair library per packet, and its batching."""
    batch: int
    """Maximum number of entries that software takes from the completion queue before it serves the first packet of
    the batch. The default is 1."""
    free_instructions: int
    """Instructions to return a receive buffer."""
    poll_instructions: int
    """Instructions to take a packet from the completion queue."""
    post_instructions: int
    """Instructions to write a work queue entry."""
    quirks: QpQuirks
    """Habits of the library, which a platform sets; scenarios leave them alone."""


class RecordedAppSpec(Section):
    """Real program: each packet runs what `hostnet record` has recorded for a packet."""
    file: str
    """Recording that `hostnet record` has written. The file is looked for beside the scenario and in the folders of
    platforms."""
    footprint: str
    """Size of the program's tables in relation to the recorded size: 'x1' (the default) to 'x1024'. Each packet
    uses one of the copies, drawn at random. Lines that more than half of the recorded packets access have one
    copy."""
    kind: Literal['recorded']
    memory: Literal['shared'] | Literal['own']
    """Cores that share the program's memory: 'shared' (all cores of the tenant, the default) or 'own' (none)."""
    order: Literal['recorded'] | Literal['random'] | Literal['size'] | Literal['flow']
    """Order in which recorded packets are replayed: 'recorded' (the default), 'random', 'size' or 'flow'."""


class RedisAppSpec(Section):
    """Redis servers, each queried by a client that keeps a pipeline of queries waiting."""
    command: Literal['get'] | Literal['set']
    """Command of every query: 'get' (the default) or 'set'. Keys are uniformly random."""
    connections: int
    """Number of connections of each server. The default is 2."""
    contiguous: str
    """Contiguity of the heap's physical memory: 'buddy' (the default) for memory as Linux's buddy allocator
    provides it, or the size of contiguous pieces, such as '32 KiB'. The pieces lie anywhere in memory."""
    keys: int
    """Number of keys of each server."""
    kind: Literal['redis']
    pipeline: int
    """Number of queries that a connection has waiting when its turn comes. The default is 32."""
    query_instructions: int
    """Instructions of a query in addition to its copies: parsing, hashing, dispatch, reply header. The default is
    2300."""
    socket: str
    """Size of the socket memory of each server; copies pass through this memory in turn. The default is 208 KiB."""
    turn_instructions: int
    """Instructions of a connection's turn in addition to its queries: poll, receive, send. The default is
    12,300."""
    value: str
    """Size of a value (64 B to 64 KiB)."""


class RingSpec(Section):
    """Buffers through which the integrated NIC and the cores exchange packets."""
    buffer_size: str
    """Size of a receive buffer and of a transmit buffer."""
    proactive_drop: int
    """Proactive drop, as in NeBuLa: number of packets waiting at a core at or above which arrivals are dropped. 0,
    the default, turns it off."""
    rx_buffers: int
    """Receive buffers per core, used cyclically: a power of two."""
    tx_buffers: int
    """Transmit buffers per core, used cyclically. The default is 64."""


class RingsQuirks(Section):
    """Habits of NICs with descriptor rings in memory that devices and simulators differ in."""
    fetch_delay: str
    """Time from the decision to fetch descriptors to the read request. The time also covers what the NIC spends on
    descriptors after they have arrived. The default is 0."""
    fitted: FittedPackets | None
    """Origin of `receive_packets` where it was fitted to one NIC; a NIC with faster links that keeps the value is
    warned of."""
    one_engine: bool
    """Whether one DMA engine serves both directions, and issues all lines of a packet, or of a group of
    descriptors, before those of another. When false (the default), reads and writes take turns on the link."""
    queue_requests: int | None
    """Number of outstanding read requests of one transmit queue at which the queue begins no further frame. Each
    frame takes one request for its descriptor, and one for every `pcie.max_read_request` bytes of its data. When
    absent, a queue has no limit of its own."""
    queue_turnaround: str
    """Time from the arrival of a frame's last line in the NIC until its requests no longer count towards
    `queue_requests`. The default is 0."""
    receive_cache: int
    """Receive descriptors of each queue that the NIC caches, free and used ones together. The default is 64."""
    receive_turnaround: str
    """Time from a packet's last line in memory to the start of the DMA of the next packet, when `receive_packets`
    packets were in flight. The default is 0."""
    replenish: int
    """Number of free cached receive descriptors below which the NIC fetches more. The default is 32. It changes
    nothing at rates at which the NIC has fetched descriptors long before packets come."""
    strip_fcs: bool
    """Whether frames lie in memory without their check sequence, which the NIC removes on reception and adds on
    transmission. When false, every byte of a frame lies in memory, as in a simulator whose frames have no check
    sequence. The default is true."""
    throttle: Literal['off'] | Literal['dynamic'] | Literal['dynamic_conservative']
    """Interrupt throttling of each queue by the kernel's driver. A poll-mode driver takes no interrupts, and the
    platform's value changes nothing there."""
    transmit_buffer: str
    """Size of the buffer for frames between the transmit DMA and the wire, which fills where the wire is slower.
    The default is 128 KiB."""
    transmit_cache: int
    """Transmit descriptors of each queue that the NIC caches, free and used ones together. The default is 64."""
    transmit_packets: int
    """Maximum number of frames whose payload is being read from memory, up to 4096. The default is 256."""
    transmit_turnaround: str
    """Time from the arrival of a frame's last line in the NIC to the start of the read of the next frame, when
    `transmit_packets` frames were in flight. The default is 0."""
    transmit_write_back: int
    """Number of sent transmit descriptors at or above which the NIC writes these descriptors back. The NIC always
    writes back the last posted descriptor. The default is 32."""
    write_back_completion: str
    """Time from the end of a write-back until the ring's next write-back may begin and the places of the written
    descriptors in the cache are free. Software sees the descriptors earlier, at the end of the write-back. The
    default is 0."""
    write_back_delay: str
    """Time from the decision to write descriptors back to the write. The default is 0."""
    write_back_idle: bool
    """Whether the NIC also writes used receive descriptors back when its receive buffer runs empty, which changes
    nothing with `write_back.after = 1`. The default is true."""


class RingsSpec(Section):
    """Descriptor rings in memory, and the NIC's caches of their descriptors."""
    buffer_size: str
    """Size of the buffer of one descriptor, into which a whole frame must fit: the data room of an mbuf under a
    poll-mode driver, and of a socket buffer under the kernel. A multiple of 128 B within 1 KiB to 16 KiB. The
    default is 2 KiB."""
    descriptor: str
    """Size of a descriptor: a power of two up to a cache line. The default is 16 B."""
    quirks: RingsQuirks
    """Habits of the NIC and its driver, which a platform sets; scenarios leave them alone."""
    receive: int
    """Receive descriptors of each queue: a multiple of 8. One of them is never used, so that a full ring differs
    from an empty one. The default is 1024."""
    receive_packets: int
    """Maximum number of packets whose receive DMA is in flight, up to 4096. The default is 256."""
    transmit: int
    """Transmit descriptors of each queue: a multiple of 8. One of them is never used, so that a full ring differs
    from an empty one. The default is 1024."""
    write_back: str | WriteBackTable
    """Rule by which the NIC writes used receive descriptors back: 'all_used', or a table with `after`."""


class RocePeripheralSpec(Section):
    """RoCE NIC with priority flow control."""
    buffer: str
    """Size of the memory that messages go to, or come from, one after the other: a multiple of `message`. The
    default is 64 KiB."""
    contiguous: str
    """Contiguity of the physical memory of `buffer`: 'buddy' (the default) for memory as Linux's buddy allocator
    provides it, or the size of contiguous pieces, such as '32 KiB'. The pieces lie anywhere in memory."""
    kind: Literal['roce']
    lanes: int
    """PCIe lanes of the NIC's port: 1, 2, 4, 8, 12 or 16. The default is 16."""
    link: str
    """Rate of the Ethernet link. The default is 100 Gbps."""
    message: str
    """Bytes of a message: a multiple of `mtu`. The default is 64 KiB."""
    mtu: str
    """Payload of a packet. The default is 4096 B."""
    node: int
    """Node that the NIC is attached to, in whose memory its buffers lie. The default is 0."""
    op: Literal['p2m_read'] | Literal['p2m_write']
    """Direction of the DMA: the peer writes to this host (p2m_write) or reads from it (p2m_read)."""
    propagation: str
    """Flight time of a packet, MAC to MAC. For `op = 'p2m_write'`, whose peer reacts to a pause after this time.
    The default is 100 ns."""
    quirks: RoceQuirks
    """Details of the wire and of flow control, which scenarios leave alone."""
    receive_buffer: str
    """Size of the NIC's receive buffer for the lossless class: at least `xoff` and the headroom for what arrives
    before a paused peer stops. For `op = 'p2m_write'`. The default is 130,944 B."""
    tags: int
    """Maximum number of PCIe read requests that the NIC has outstanding. For `op = 'p2m_read'`. The default is
    64."""


class RoceQuirks(Section):
    """Details of RoCE and of priority flow control that NICs differ in."""
    message_overhead: int
    """Bytes on the wire of a message's first packet in addition to its payload and `overhead`: the RETH. The
    default is 16."""
    overhead: int
    """Bytes of a packet on the wire in addition to its payload: preamble, Ethernet, IPv4, UDP, BTH, ICRC, FCS, gap.
    The default is 82."""
    pause_response: str
    """Time from a pause frame's arrival at the peer to its effect there. For `op = 'p2m_write'`. The default is
    2,017.28 ns."""
    transmit_buffer: str
    """Size of the buffer for data that the NIC reads ahead of the wire: a multiple of `mtu`. For `op = 'p2m_read'`.
    The default is 32 KiB."""
    xoff: str
    """Bytes in the receive buffer at or above which the NIC pauses the peer. For `op = 'p2m_write'`. The default is
    87,920 B."""
    xon: str
    """Bytes in the receive buffer at which the NIC resumes a paused peer; at most `xoff`. For `op = 'p2m_write'`.
    The default is 83,720 B."""


class RunSpec(Section):
    """Length of the run, and objective of a search for a rate."""
    load: Literal['fixed'] | Literal['peak_slo'] | Literal['peak_nodrop'] | Literal['peak_loss'] | Literal['saturate'] | Literal['none']
    """Load of the run: a given one ('fixed', 'saturate'), or a search for a rate ('peak_slo', 'peak_nodrop',
    'peak_loss')."""
    loss: float | str
    """Objective of `load = 'peak_loss'`: maximum share of the offered packets that may be lost. Packets by which
    queues grow count as lost. A number, or a percentage such as '1 %'. The default is 0.01."""
    precision: float | str | None
    """Half-width of the 95 % intervals, relative to their values, at which the measurement ends, such as 0.02 or '2
    %'. The measurement then lasts for at most `requests` or `time`, and for at least an eighth of that. Shares are
    also precise enough when the half-width is at most this number itself. Warm-ups and steps of a search then end
    as soon as they may, too. Windows of fewer than 1,024 `requests` are measured whole. When absent, the
    measurement lasts for `requests` or `time`."""
    precision_of: list[str]
    """Metrics whose intervals `precision` is about. When empty, these are the metrics that lead a table of several
    runs."""
    requests: int
    """Number of measured requests, over all tenants that serve packets. The default is 60,000."""
    search_tolerance: float | str
    """Relative width of the bracket at which a search stops, such as 0.01 or '1 %'. The default is 0.006."""
    slo_multiple: float
    """Objective of `load = 'peak_slo'`: maximum ratio of p99 latency to mean service time. The default is 100."""
    step: str | None
    """Grid of the rates that a search tries, which are multiples of this. When absent, `search_tolerance` alone
    determines the resolution."""
    time: str
    """Simulated time that is measured when no tenant serves packets. The default is 500 us."""
    timeline: str | None
    """Width of the bins of the table `timeline`, which shows the traffic in each bin and the locations of received
    lines. When absent, the table has only a few samples."""
    trace: str | None
    """Sampling interval of the trace of the I/O controllers' buffers and of pauses. When absent, there is no
    trace."""
    warmup_requests: int | None
    """Number of requests before the measurement, and at most so many with `precision`. When absent, the end of the
    warm-up is detected."""
    warmup_time: str | None
    """Simulated time before the measurement when no tenant serves packets; caches are first filled in functional
    mode, without timing."""


class RxptxAppSpec(Section):
    """Receives a burst of packets, waits, and sends the burst."""
    instructions: int
    """Instructions per packet in addition to the access to its first line, whose addresses are exchanged. The
    default is 20."""
    interval: str
    """Time for which the core waits in a loop after each received burst."""
    kind: Literal['rxptx']


class SizeWeight(Section):
    """A size of frames, with its weight."""
    size: str
    """Bytes of the frame, checksum included."""
    weight: int
    """Relative frequency of packets of this size."""


class SpikeSpec(Section):
    """Rare long stalls of the application (Sweeper, section VI-F)."""
    max: str
    """Longest stall."""
    min: str
    """Shortest stall."""
    probability: float
    """Probability of a stall per request (0 to 1)."""


class SsdPeripheralSpec(Section):
    """NVMe SSDs that move blocks to or from memory."""
    block: str
    """Bytes of a command; the command's buffer in memory has the same size."""
    contiguous: str
    """Contiguity of the buffers' physical memory: 'buddy' (the default) for memory as Linux's buddy allocator
    provides it, or the size of contiguous pieces, such as '32 KiB'. The pieces lie anywhere in memory."""
    cores: int
    """Number of cores for the kernel's block layer, which does the accounting of every page that these SSDs move.
    These cores are numbered after all tenants' cores. At most `count`. With 0, the default, the accounting is not
    simulated."""
    count: int
    """Number of SSDs. The default is 1."""
    kind: Literal['ssd']
    lanes: int
    """PCIe lanes of each SSD's port: 1, 2, 4, 8, 12 or 16. The default is 4."""
    media_rate: str | None
    """Maximum rate of each SSD's medium. When absent, only the link limits the rate."""
    node: int
    """Node that the SSDs are attached to, in whose memory their buffers lie, and that has their cores. The default
    is 0."""
    op: Literal['p2m_read'] | Literal['p2m_write']
    """Direction of the DMA: storage reads write memory (p2m_write), storage writes read memory (p2m_read)."""
    page: str
    """Size of the page for which the kernel's block layer does its accounting, with `cores`. The default is 4 KiB,
    because the authors' scripts request no huge pages."""
    queue_depth: int
    """Number of commands that each SSD has outstanding at all times."""
    quirks: SsdQuirks
    """Details of the device, which scenarios leave alone."""
    tags: int
    """Maximum number of PCIe read requests that each SSD has outstanding. For `op = 'p2m_read'`. The default is
    64."""


class SsdQuirks(Section):
    """Details of NVMe SSDs that devices differ in."""
    command_latency: str
    """Time from the end of one command to the first byte of the next command in the same place of the queue:
    medium, firmware and the submitting thread. The default is 10 us. It changes nothing in a run in which no
    command ends: 64 commands of 8 MiB take 41 ms at 13 GB/s."""
    interleave: str
    """Number of bytes that an SSD moves for one command before the SSD continues with another: a power of two that
    divides `block`. The default is 4 KiB."""


class StreamAppSpec(Section):
    """Sequential or random reads or updates of a private buffer, as fast as memory allows."""
    access: Literal['sequential'] | Literal['random']
    """Order in which the lines are accessed: 'sequential' (the default) or 'random'."""
    buffer: str
    """Size of each core's buffer."""
    contiguous: str
    """Contiguity of the buffer's physical memory: 'buddy' (the default) for memory as Linux's buddy allocator
    provides it, or the size of contiguous pieces, such as '32 KiB'. The pieces lie anywhere in memory."""
    instructions: int
    """Instructions per line in addition to the access: address, arithmetic, loop. The default is 3."""
    kind: Literal['stream']
    read_fraction: float
    """Share of reads in all memory traffic (0.5 to 1). With 1, the default, there are only loads; with 0.5 every
    line is stored to."""
    run_lines: int
    """Number of consecutive lines in a run, with `access = 'random'`. The default is 1."""


class StreamTransferAppSpec(Section):
    """Streams from writers to readers, in pairs."""
    buffer: str | None
    """Size of a pair's buffer, which is contiguous in physical memory: whole chunks. The default is 4 MiB. With
    `stores = 'none'` the default is 256 MiB, which exceeds all caches."""
    chunk: str
    """Number of bytes that a writer writes before it notifies the reader: whole lines, at least 4 KiB. The default
    is 1 MiB."""
    kind: Literal['stream_transfer']
    peer_node: int
    """Node of the readers, or of the memory that is read with `stores = 'none'`. The default is 0."""
    stores: Literal['cached'] | Literal['nontemporal'] | Literal['none']
    """Kind of stores that write the buffer: 'cached' (the default), 'nontemporal' or 'none'."""


class TableSpec(Section):
    """Destination of each class of lines that devices write."""
    descriptor: str
    """Used descriptors and completions that a NIC behind PCIe writes back. 'llc' by default."""
    header: str
    """First line of each packet, which holds its headers: 'dram', 'llc', 'mlc' (the L2 of the packet's core), or
    the latter two with ways, such as 'llc 2-5'. 'llc' by default."""
    payload: str
    """Other lines of each packet, and lines that RDMA NICs and SSDs write, which are for no core: 'mlc' is 'llc'
    for them. 'llc' by default."""
    payload_class1: str | None
    """Other lines of packets of class 1, whose DSCP `placement.idio.class1_dscp` lists; as `payload` when
    absent."""


class TcpEchoAppSpec(Section):
    """RPC server that returns requests over TCP as a service (TAS), whose fast path has cores of its own."""
    calls: Literal['sockets'] | Literal['low_level']
    """Interface through which the application uses TAS: 'sockets' (the default) or 'low_level'."""
    flows: int
    """Number of TCP connections. RSS spreads them over the queues of the NIC."""
    kind: Literal['tcp_echo']
    pipelined: int
    """Number of requests that a connection has outstanding at any time. The default, 64, is the value of TAS's own
    client."""
    quirks: FastPathCosts
    """Instructions of the fast path."""
    rpc: str
    """Bytes of a request and of its reply (1 to 1448)."""


class TcpQuirks(Section):
    """Habits of the kernel's receive path that kernels and drivers differ in."""
    head: str
    """Bytes at the beginning of a frame that the driver copies to the socket buffer: a multiple of 64 B."""
    line: int
    """Instructions that copy a line, in addition to a load and a store."""
    merge: str
    """Maximum payload that GRO merges into a segment."""
    piece: int
    """Instructions before each piece of a copy, including the start-up of the string instruction. A piece ends with
    its page; the head of a frame is a piece of its own."""
    poll_budget: int
    """Maximum number of frames that one poll takes (NAPI weight)."""


class TcpReceiveAppSpec(Section):
    """Receiver of long TCP flows through the kernel, one per core, which drops the data (iperf)."""
    gap_instructions: int
    """Instructions between two buffers: iperf3 calls `select`. The default, 3300, takes half a microsecond on a
    core of 3.3 GHz with two instructions per cycle, as lmbench measures for a few TCP sockets."""
    kind: Literal['tcp_receive']
    read: str
    """Bytes that a `recv` asks for, which is also the size of each core's buffer. The default is 128 KiB."""


class TcpSpec(Section):
    """Costs of the kernel's receive path in addition to the memory accesses that are simulated (completions,
    headers, payload), and its parameters."""
    frame: int
    """Instructions per frame in the driver, in the page allocator and in GRO."""
    interrupt: int
    """Instructions per interrupt, including the start of polling."""
    quirks: TcpQuirks
    """Habits of the kernel and its driver, which a platform sets; scenarios leave them alone."""
    read: int
    """Instructions per `recv` call: system call and scheduler."""
    receive_buffer: str
    """Size of a socket's receive buffer (`tcp_rmem`, with auto-tuning off). Half of the free part is advertised as
    window (`tcp_adv_win_scale` = 1); the other half is for the kernel's overhead in addition to payload."""
    segment: int
    """Instructions per merged segment: socket buffers, protocol, acknowledgement."""
    wake: int
    """Instructions to wake the application that waits in `recv`."""


class TenantSpec(Section):
    """A group of cores that runs one application."""
    app: MicaAppSpec | L3FwdAppSpec | XmemAppSpec | StreamAppSpec | RedisAppSpec | GapbsAppSpec | TcpReceiveAppSpec | TouchdropAppSpec | L2FwdAppSpec | LlcAntagonistAppSpec | TestpmdAppSpec | LoadGeneratorAppSpec | TouchfwdAppSpec | RxptxAppSpec | MemcachedAppSpec | PingpongAppSpec | StreamTransferAppSpec | LoopbackAppSpec | CliqueMapAppSpec | BlockStoresAppSpec | TcpEchoAppSpec | RecordedAppSpec | MemoryTraceAppSpec | DirectedRxAppSpec | DirectedTxAppSpec | PageReuseAppSpec | ProbeLatencyAppSpec | ProbeDeviceAppSpec | ProbePlaceAppSpec
    """Application that the tenant's cores run."""
    ccnic: CcnicSpec | None
    """CC-NIC of this tenant, with `stack = 'ccnic'`: the keys in which it differs from the table `ccnic`. Each
    tenant has an interface of its own, with threads of the NIC, queue pairs and buffers. When absent, as in that
    table."""
    cores: int
    """Number of logical cores, taken in order from the platform's cores. With `platform.core.threads = 2`, cores
    beyond a node's number of cores are second hardware threads."""
    dscp: int
    """Differentiated services code point of the tenant's packets (0 to 63). Placement policies see whether
    `placement.idio.class1_dscp` lists it. The default is 0."""
    l2_size: str | None
    """Size of the L2 of each of the tenant's cores, instead of the platform's, with the same number of ways."""
    llc_ways: int | str | None
    """LLC ways into which the L2 victims of this tenant may be allocated (Intel CAT). A number counts from the top
    way down, whereas the number of `placement.ways` counts from way 0 up; a string such as '0-3' names a range, and
    '0xf' is the bit mask of the same ways. When absent, all ways."""
    name: str
    """Name of the tenant in messages and tables."""
    nic: str | None
    """Name of the `[[peripheral]]` of kind 'ethernet' that the tenant's packets come through. When absent, the only
    one."""
    node: int
    """Node of the tenant's cores, in whose memory its data lies. Nodes have cores and private caches of one kind,
    so that a probe of its own core's L1 or L2 finds the same on each of them. The default is 0."""
    pipeline: PipelineSpec | None
    """Pipeline of the tenant's cores in pairs, with a ring in memory between the two cores of a pair (DPDK's
    pipeline model), with `stack = 'poll_mode'`. When absent, each core runs to completion."""
    recycling: Literal['run_to_completion'] | Literal['copy'] | Literal['reallocate']
    """Treatment of a receive buffer whose packet the application has yet to process, with `stack = 'poll_mode'`.
    The default is 'run_to_completion'."""
    stack: Literal['queue_pair'] | Literal['poll_mode'] | Literal['ccnic'] | Literal['kernel'] | Literal['dispatch'] | DispatchStackSpec | None
    """Stack that hands packets to the application. When absent, queue pairs on the integrated NIC; or, for an `app`
    of kind 'tcp_receive', the kernel over a NIC that completes each frame with a line of its own."""
    traffic: TrafficSpec | None
    """Packets that this tenant receives, for the keys in which they differ from those of the table `traffic`. When
    absent, as in that table. Each tenant that serves packets has traffic of its own, at the rate that is given."""


class TestpmdAppSpec(Section):
    """Forwarder of unread packets, which can also drop packets or send its own (DPDK's testpmd)."""
    instructions: int
    """Instructions per packet in addition to the access to its first line, if there is any. The default is 20."""
    kind: Literal['testpmd']
    mode: Literal['io'] | Literal['macswap'] | Literal['rxonly'] | Literal['txonly']
    """Forwarding mode: 'io' (the default), 'macswap', 'rxonly' or 'txonly'."""


class TimingOverride(Section):
    """Timing parameters that replace those of `memory.standard`, in picoseconds. Parameters that are absent keep
    the standard's values."""
    ccd_l_ps: int | None
    """Column command to column command in the same bank group (tCCD_L) in ps."""
    cl_ps: int | None
    """Read latency (CL) in ps, from command to first data."""
    cs_ps: int | None
    """Bubble on the data bus between bursts of two ranks, in ps."""
    cwl_ps: int | None
    """Write latency (CWL) in ps, from command to first data."""
    faw_ps: int | None
    """Window that holds at most four activates of a rank (tFAW), in ps."""
    ras_ps: int | None
    """Activate to precharge (tRAS) in ps."""
    rcd_ps: int | None
    """Activate to column command (tRCD) in ps."""
    refi_ps: int | None
    """Interval between refreshes of a rank (tREFI) in ps."""
    rfc_ps: int | None
    """Refresh to activate (tRFC) in ps."""
    rp_ps: int | None
    """Precharge to activate (tRP) in ps."""
    rrd_l_ps: int | None
    """Activate to activate in the same bank group (tRRD_L) in ps."""
    rrd_s_ps: int | None
    """Activate to activate in another bank group (tRRD_S) in ps."""
    rtp_ps: int | None
    """Read to precharge (tRTP) in ps."""
    rtw_ps: int | None
    """Bubble on the data bus between a read and a following write, in ps."""
    tck_ps: int | None
    """Clock period (tCK) in ps. The period is applied first, so that timings given in clocks scale with it."""
    wr_ps: int | None
    """End of write data to precharge (tWR) in ps."""
    wtr_l_ps: int | None
    """End of write data to read in the same bank group (tWTR_L) in ps."""
    wtr_s_ps: int | None
    """End of write data to read in another bank group (tWTR_S) in ps."""


class TlbSpec(Section):
    """Last-level TLB of a core, for pages of 4 KiB."""
    entries: int
    """Number of pages whose translations the TLB holds; `entries` / `ways` must be a power of two."""
    walk_cycles: int
    """Core cycles of a page walk, not including the access to the last level of the page table."""
    ways: int
    """Associativity of the TLB, 1 to 24."""


class TouchdropAppSpec(Section):
    """Reader of every line of a packet, which then drops the packet."""
    dependent_per_byte: float
    """Instructions, of those per byte, that need the byte, so that they wait while its line is missing. The default
    is 0."""
    instructions: int
    """Instructions per packet in addition to its loads. The default is 100."""
    instructions_per_byte: float
    """Instructions per byte, between the loads of the packet's lines. With 0, the default, all loads are issued
    together."""
    kind: Literal['touchdrop']
    loads_per_byte: int
    """Loads per byte that `instructions_per_byte` does not contain because they use a unit of their own; they take
    entries of the reorder buffer. The default is 0."""
    taken_branches_per_byte: int
    """Taken branches per byte, each of which costs `core.quirks.taken_branch_cycles`; without that key they change
    nothing. The default is 0."""


class TouchfwdAppSpec(Section):
    """Reader of every byte of a packet, which then forwards the packet."""
    dependent_per_byte: float
    """Instructions, of those per byte, that need the byte, so that they wait while its line is missing. The default
    is 0."""
    instructions: int
    """Instructions per packet in addition to those per byte. The default is 20."""
    instructions_per_byte: float
    """Instructions per byte of the packet: load, compare and branch. The default is 3."""
    kind: Literal['touchfwd']
    loads_per_byte: int
    """Loads per byte that `instructions_per_byte` does not contain because they use a unit of their own; they take
    entries of the reorder buffer. The default is 0."""
    taken_branches_per_byte: int
    """Taken branches per byte, each of which costs `core.quirks.taken_branch_cycles`; without that key they change
    nothing. The default is 0."""


class TrafficSpec(Section):
    """Traffic that the clients send: arrival process, sizes and flows."""
    arrivals: Literal['poisson'] | Literal['fixed'] | Literal['uniform'] | Literal['log_normal'] | Literal['pareto'] | Literal['burst'] | Literal['closed'] | Literal['keep_depth'] | Literal['pcap'] | Literal['none']
    """Arrival process of the packets."""
    burst: int
    """Number of packets per burst, for `arrivals = 'burst'`."""
    burst_gap: str | None
    """Time from the start of a packet to the start of the next one in a burst, for `arrivals = 'burst'`. When
    absent, packets are back to back."""
    burst_period: str | None
    """Time from the start of a burst to the start of the next one, for `arrivals = 'burst'`, instead of `rate`. It
    has no effect on a run within one burst."""
    cv: float | None
    """Coefficient of variation of gaps (standard deviation over mean), for `arrivals = 'uniform'` (up to 0.577,
    which is also its default), 'log_normal' and 'pareto' (1 when absent)."""
    dctcp: DctcpSpec | None
    """Senders of the TCP flows that an `app` of kind 'tcp_receive' receives."""
    depth: int
    """Number of waiting packets per core that `arrivals = 'keep_depth'` maintains. Completions of sends count as
    well where `queue_pair.quirks.send_completions` is set."""
    destination_mac: str | None
    """Ethernet address that packets go to in the captures that `run --pcap` writes, replayed ones included. The
    default is '02:00:00:00:00:01'."""
    flows: int | None
    """Number of flows that packets belong to, chosen at random unless `spread = 'flow'`; a flow goes to one core,
    by its RSS hash, so that flows have no effect on a single core. When absent, each packet goes to a core by
    `spread`."""
    link: WireSpec | None
    """Wire between the generator and an integrated NIC. When absent, there is no wire. An Ethernet NIC has a link
    of its own."""
    outstanding: int
    """Maximum number of requests without a reply, for `arrivals = 'closed'`: over all cores together, or with CC-
    NIC per queue pair."""
    packet: str | None
    """Size of frames, checksum included, for applications whose requests do not set it. The default is 1 KiB.
    Excludes `sizes`."""
    pcap: PcapSpec | None
    """Capture to replay, for `arrivals = 'pcap'`."""
    protocol: Literal['udp'] | Literal['ethernet']
    """Protocol of the frames: 'udp' (the default) or 'ethernet'. Beside the captures that `run --pcap` writes, only
    RSS sees it, which needs 'udp' to tell `flows` apart."""
    rate: str | None
    """Mean rate over all cores, in packets or in bits of frames per second. With `run.load = 'peak_loss'`, the
    start of the search; 'peak_slo' and 'peak_nodrop' measure where to begin, and take none."""
    sizes: Literal['imix'] | list[SizeWeight] | None
    """Sizes of frames with their weights, instead of `packet`: a list of { size, weight }, or 'imix', which is 7 :
    4 : 1 of 64, 594 and 1518 B."""
    source_mac: str | None
    """Ethernet address that packets come from in the captures that `run --pcap` writes. When absent, that of the
    replayed capture, or '02:00:00:00:00:02'."""
    spikes: SpikeSpec | None
    """Rare long stalls of the application. When absent, there are none."""
    spread: Literal['random'] | Literal['round_robin'] | Literal['shortest_queue'] | Literal['flow']
    """Core of the tenant to which a packet goes that belongs to no flow: 'random' (the default), 'round_robin' or
    'shortest_queue'; or 'flow' for `arrivals = 'closed'`, with or without `flows`. Packets of a capture go to the
    cores of their flows. Without effect on a single core, and with `arrivals = 'keep_depth'`, which gives each core
    its packets."""
    stamp: int
    """Offset in bytes from the frame's start at which a frame carries its time of sending in the captures that `run
    --pcap` writes. The default is 42."""
    timeout: str
    """Time after which a request without a reply is given up and the next one is sent, for `arrivals = 'closed'`.
    The default is 1 ms. It has an effect only where a reply comes later, or not at all."""


class UdpSpec(Section):
    """Costs of datagrams in the kernel, in addition to the costs that TCP shares. `[tcp]` has the costs of frames,
    interrupts, wake-ups, calls that receive, and copies."""
    free: int
    """Instructions per freed socket buffer."""
    receive: int
    """Instructions per received datagram: IP, UDP, the socket's queue."""
    receive_buffer: str
    """Size of a socket's receive buffer (`rmem_default`), which counts socket buffers with all their overhead."""
    send: int
    """Instructions per `sendmsg` call: system call, UDP, IP, queueing discipline, driver."""


class WireSpec(Section):
    """A wire between the generator and a NIC."""
    propagation: str
    """Flight time of a frame in each direction. The default is 0."""
    rate: str
    """Rate of the wire in each direction."""


class WriteBackTable(Section):
    """Threshold of used receive descriptors at which the NIC writes the descriptors back."""
    after: int
    """Number of used receive descriptors at or above which the NIC writes the descriptors back."""


class XmemAppSpec(Section):
    """Random reads of a private array."""
    array: str
    """Size of each core's array."""
    gap_instructions: int
    """Instructions between two reads. The default is 4."""
    kind: Literal['xmem']
    order: Literal['random'] | Literal['cycle']
    """Order in which the array is read: 'random' (the default) or 'cycle' (arrays of up to 256 MiB)."""
    parallelism: int
    """Number of chains of dependent reads that are outstanding together. The default is 1."""


class Fields(Section):
    """A scenario: one point of a study, fully described."""
    ccnic: CcnicSpec | None
    """CC-NIC, the interface over coherent memory, for tenants with `stack = 'ccnic'`; keys that are left out are
    taken from `platform.ccnic`."""
    client: ClientSpec | None
    """Second host whose software is the load generator. When absent, the load generator takes no simulated time and
    loses nothing."""
    name: str
    """Name of the scenario in tables and file names."""
    peripheral: list[SsdPeripheralSpec | RocePeripheralSpec | EthernetPeripheralSpec]
    """Peripherals behind the I/O controllers."""
    placement: PlacementSpec
    """Placement of inbound data: the destination of lines that devices write, and the treatment of spent
    buffers."""
    platform: str
    """Name or path of a platform file."""
    rings: RingSpec
    """Receive and transmit buffers between the integrated NIC and cores."""
    run: RunSpec
    """Length and load of the run, or the objective of a search."""
    seed: int
    """Seed of every random stream. The default is 1."""
    tenant: list[TenantSpec]
    """Tenants: groups of cores, each of which runs one application."""
    traffic: TrafficSpec
    """Packets that the tenants receive: arrival process, sizes and flows."""
    override: Platform
    """Values that replace the platform's."""
