//! Every metric of a run, declared once, with a constant that names it.

use super::declaration::metrics;
use super::tenant_column;

metrics! {
    /// Every metric, in the order of result columns.
    METRICS, MetricId;

    THROUGHPUT_MRPS ["Mrps", Speed, Host] "Requests (or packets) completed per second in the measured window"
        marks(Packets) run(Packets, 1) sweep(Packets, 1);
    OFFERED_MRPS ["Mrps", Speed, Host] "Requests offered per second in the measured window"
        run(Packets, 2) run(CcNic, 2);
    NET_GBPS ["Gb/s", Nic, Host] "Received bits of completed requests per second"
        run(Packets, 1);
    OFFERED_GBPS ["Gb/s", Speed, Host] "Bits of the frames that load generators offered per second, to CC-NIC as well where other packets come from a wire";
    ACHIEVED_GBPS ["Gb/s", Speed, Host] "Bits of the frames that came back to load generators per second"
        run(CcNic, 4);
    DROP_RATE ["fraction", Nic, Host] "Dropped over offered packets"
        run(Packets, 2) sweep(Packets, 4);
    LOSS_RATE ["fraction", Nic, Host] "Dropped packets plus growth of queues, over offered packets: the drop rate of a longer run"
        run_under(Packets, 3, Speed) run_under(CcNic, 3, Speed) sweep(Packets, 5);
    DROPS ["packets", Nic, Host] "Packets dropped in the measured window" total();
    LAT_MEAN_US ["us", Speed, Host] "Mean latency from arrival at the NIC, or with `tcp_echo` from the request of the client, to the reply on the wire; packets through CC-NIC alone have round trips instead";
    LAT_P50_US ["us", Speed, Host] "Median of the latency of lat_mean_us"
        run(Packets, 4) sweep(Packets, 2);
    LAT_P90_US ["us", Speed, Host] "90th percentile of the latency of lat_mean_us";
    LAT_P99_US ["us", Speed, Host] "99th percentile of the latency of lat_mean_us"
        run(Packets, 5) sweep(Packets, 3);
    LAT_P999_US ["us", Speed, Host] "99.9th percentile of the latency of lat_mean_us";
    LAT_MAX_US ["us", Speed, Host] "Largest latency of lat_mean_us" single();
    RTT_MEAN_US ["us", Speed, Host] "Mean round trip of packets that came back to the load generator";
    RTT_MEDIAN_US ["us", Speed, Host] "Median round trip of packets that came back to the load generator"
        run_beside(Packets, 6, PCIE_UP_UTIL) run(CcNic, 6) sweep(CcNic, 2);
    RTT_SD_US ["us", Speed, Host] "Standard deviation of round trips of packets that came back to the load generator";
    RTT_P90_US ["us", Speed, Host] "90th percentile of round trips of packets that came back to the load generator";
    RTT_P99_US ["us", Speed, Host] "99th percentile of round trips of packets that came back to the load generator"
        run(CcNic, 7);
    RTT_P999_US ["us", Speed, Host] "99.9th percentile of round trips of packets that came back to the load generator";
    RTT_MIN_NS ["ns", Speed, Host] "Shortest round trip of a packet through CC-NIC" single()
        run(CcNic, 5);
    ACHIEVED_MPPS ["Mpps", Speed, Host] "Packets that came back through CC-NIC per second, all tenants on CC-NIC"
        marks(CcNic) run(CcNic, 1) sweep(CcNic, 1);
    PINGPONG_NS ["ns", Speed, Host] "Median round trip of a counter between two threads, all pairs";
    REMOTE_REQUESTS ["1/trip", Memory, Node] "Requests of both threads' cores that another node answered, per round trip of pingpong, all pairs";
    STREAM_GBPS ["Gb/s", Speed, Host] "Bits of the lines that all readers copied from their writers, or read from the other node, per second";
    HOST_READS_PER_PACKET ["1/packet", Nic, Host] "Reads of CC-NIC's lines that left the L2s of the host's cores, per packet";
    HOST_RFOS_PER_PACKET ["1/packet", Nic, Host] "Requests for ownership of CC-NIC's lines that left the L2s of the host's cores, per packet";
    NIC_READS_PER_PACKET ["1/packet", Nic, Host] "Reads of CC-NIC's lines that left the L2s of the NIC's cores, per packet";
    NIC_RFOS_PER_PACKET ["1/packet", Nic, Host] "Requests for ownership of CC-NIC's lines that left the L2s of the NIC's cores, per packet";
    HOST_REMOTE_READS ["1/packet", Nic, Node] "Reads of CC-NIC's lines by the host's cores that another node answered, per packet"
        run(CcNic, 1) sweep(CcNic, 3);
    HOST_REMOTE_RFOS ["1/packet", Nic, Node] "Requests for ownership of CC-NIC's lines by the host's cores that another node answered, per packet"
        run(CcNic, 2) sweep(CcNic, 5);
    NIC_REMOTE_READS ["1/packet", Nic, Node] "Reads of CC-NIC's lines by the NIC's cores that another node answered, per packet"
        run(CcNic, 3) sweep(CcNic, 4);
    NIC_REMOTE_RFOS ["1/packet", Nic, Node] "Requests for ownership of CC-NIC's lines by the NIC's cores that another node answered, per packet"
        run(CcNic, 4);
    HOST_REMOTE_RFOS_PAYLOAD ["1/packet", Nic, Node] "Part of host_remote_rfos for lines of payload";
    NIC_REMOTE_READS_DESCRIPTOR ["1/packet", Nic, Node] "Part of nic_remote_reads for lines of descriptors";
    NIC_REMOTE_READS_TX ["1/packet", Nic, Node] "Part of nic_remote_reads for descriptors and registers of the transmit ring";
    NIC_SIGNAL_READS ["1/packet", Nic, Host] "Part of nic_remote_reads_tx for a packet's own lines that ended after the packet's publication; of one packet in flight";
    NIC_REMOTE_READS_REGISTER ["1/packet", Nic, Node] "Part of nic_remote_reads for registers";
    NIC_REMOTE_READS_PAYLOAD ["1/packet", Nic, Node] "Part of nic_remote_reads for lines of payload";
    PAYLOAD_LINES_CROSSED ["1/packet", Nic, Host] "Lines of payload that cores of either side requested from the other node through CC-NIC, per packet";
    SIGNAL_DISCOVERY_NS ["ns", Nic, Host] "Median time from a transmit descriptor becoming visible to CC-NIC's NIC seeing it";
    HOST_INSTRUCTIONS_PER_PACKET ["1/packet", Nic, Host] "Instructions of the host's cores per packet through CC-NIC, including empty polls"
        run(CcNic, 5);
    NIC_INSTRUCTIONS_PER_PACKET ["1/packet", Nic, Host] "Instructions of the NIC's cores per packet through CC-NIC, including empty polls";
    POOL_OPS_PER_PACKET ["1/packet", Nic, Host] "Buffers that threads of CC-NIC took from the pool and returned to it, per packet"
        run(CcNic, 6);
    HOST_BLANKS_PER_PACKET ["1/packet", Nic, Host] "Blank receive buffers that the host posted through CC-NIC, per packet";
    HOST_TX_FREES_PER_PACKET ["1/packet", Nic, Host] "Transmit buffers that the host freed after CC-NIC had sent them, per packet";
    HOST_WRITES_RETAINED ["lines/packet", Nic, Host] "Lines that the host wrote to buffers that CC-NIC's NIC had sent and no packet had used since, per packet";
    SMALL_FALLBACKS ["buffers", Nic, Host] "Packets that fit a small buffer of CC-NIC but took a large one, because no small one was left" total();
    TCP_RPCS_PER_SEGMENT ["RPCs/segment", Speed, Host] "Mean number of replies in a segment that TAS sent";
    SERVICE_MEAN_US ["us", Speed, Host] "Mean time in which a core dispatches the instructions of a request; loads that are outstanding after the last one are not part of it";
    CORES_BUSY ["cores", Speed, Host] "Mean number of cores serving requests";
    MEM_BW_GBS ["GB/s", Memory, Host] "DRAM bytes moved per second, reads and writes"
        marks(Host) run(Packets, 1) run(CcNic, 1) run(Tcp, 1) run(Host, 1) sweep(Packets, 6) sweep(Tcp, 5) sweep(Host, 5);
    MEM_READ_GBS ["GB/s", Memory, Host] "DRAM bytes read per second, from DRAM itself (lines_read) or from the controllers' write queues";
    MEM_WRITE_GBS ["GB/s", Memory, Host] "DRAM bytes written per second, to DRAM itself (lines_written) or merged in the controllers' write queues";
    MEM_UTILISATION ["fraction", Memory, Host] "DRAM bytes per second over the peak of all nodes' channels; mem_channel_util is the time in which data move"
        run(Packets, 2) run(CcNic, 2) run(Tcp, 2) run(Host, 2);
    ACC_NIC_RX_WR ["lines/request", Memory, Host] "DRAM writes by the NIC's receive side";
    ACC_NIC_TX_RD ["lines/request", Memory, Host] "DRAM reads by the NIC's transmit side";
    ACC_CPU_RX_RD ["lines/request", Memory, Host] "DRAM reads of receive buffers by cores";
    ACC_CPU_TX_RDWR ["lines/request", Memory, Host] "DRAM reads of transmit buffers by cores";
    ACC_CPU_OTHER_RD ["lines/request", Memory, Host] "DRAM reads of application data by cores";
    ACC_RX_EVCT ["lines/request", Memory, Host] "DRAM writes of evicted receive buffers";
    ACC_TX_EVCT ["lines/request", Memory, Host] "DRAM writes of evicted transmit buffers";
    ACC_OTHER_EVCT ["lines/request", Memory, Host] "DRAM writes of evicted application data";
    ACC_IO_WR ["lines/request", Memory, Host] "DRAM writes by peripherals behind the IIO";
    ACC_IO_RD ["lines/request", Memory, Host] "DRAM reads by peripherals behind the IIO";
    ACC_IO_EVCT ["lines/request", Memory, Host] "DRAM writes of evicted peripheral buffers";
    ACC_BACKGROUND_RD ["lines/request", Memory, Host] "DRAM reads of the background, which stands for the system that is not simulated";
    ACC_TOTAL ["lines/request", Memory, Host] "64-byte DRAM transfers per completed request"
        run(Packets, 3) sweep(Packets, 7);
    RX_EVCT_PREMATURE ["lines/request", Nic, Host] "Receive-buffer evictions before the first read"
        run(Packets, 6);
    RX_EVCT_CONSUMED ["lines/request", Nic, Host] "Receive-buffer evictions after the first read"
        run(Packets, 5);
    MMIO_READ_NS ["ns", DirectedTest, Port] "Time of one uncached load from a device, from its issue to the data"
        marks(Directed) run(Directed, 14) sweep(Directed, 14);
    MMIO_STORE_NS ["ns", DirectedTest, Port] "Time of the last of a burst of combining stores to a device, from the previous store until a buffer has accepted it"
        marks(Directed) run(Directed, 15) sweep(Directed, 15);
    MMIO_BURST_NS ["ns", DirectedTest, Port] "Time of a whole burst of combining stores to a device"
        marks(Directed) run(Directed, 16) sweep(Directed, 16);
    ACCESS_NS ["ns", DirectedTest, Host] "Latency of the one load of probe_latency, from issue to data"
        marks(Directed) run(Directed, 13) sweep(Directed, 13);
    MLC_COPIES_AFTER ["lines", DirectedTest, Host] "Whether private caches hold a copy of probe_place's line after the request (0 or 1)"
        marks(Directed) run(Directed, 17) sweep(Directed, 17);
    IN_DDIO_WAYS_AFTER ["lines", DirectedTest, Host] "Whether probe_place's line is in an LLC way that devices allocate into, after the request (0 or 1)"
        marks(Directed) run(Directed, 18) sweep(Directed, 18);
    LLC_ALLOCATIONS ["lines", DirectedTest, Host] "Lines of the LLC that probe_place's request allocated"
        marks(Directed) run(Directed, 19) sweep(Directed, 19);
    WAYS_ALLOCATED ["ways", DirectedTest, Host] "Ways of the LLC that hold lines after device writes of whole buffers that no cache held"
        marks(Directed) run(Directed, 20) sweep(Directed, 20);
    MEM_CHANNEL_UTIL ["fraction", Memory, Host] "Share of time that the data bus of a memory channel carries lines, of the busiest channel";
    MEMORY_LINK_READ_UTIL ["fraction", Memory, Host] "Share of time that the link between caches and memory controllers (`caches.llc.quirks.memory_link`) carries lines to the cores";
    MEMORY_LINK_WRITE_UTIL ["fraction", Memory, Host] "Share of time that the link between caches and memory controllers (`caches.llc.quirks.memory_link`) carries lines to memory";
    LINK_UTILISATION ["fraction", Domains, Node] "Share of time that inter-socket links are busy, mean over the links of the busier direction"
        run(CcNic, 1) sweep(CcNic, 6);
    LINK_CREDITS_UTIL ["fraction", Domains, Node] "Share of a node's credits for requests over the inter-socket links (`nodes.link.credits`) in use, of the fuller node";
    LINK_OUT_UTIL ["fraction", Domains, Node] "Share of time that inter-socket links from the first node are busy, mean over links";
    LINK_IN_UTIL ["fraction", Domains, Node] "Share of time that inter-socket links to the first node are busy, mean over links";
    LINK_DATA_GBPS ["Gb/s", Domains, Node] "Bits of lines, without headers, over inter-socket links in the busier direction per second";
    LINK_OUT_GBS ["GB/s", Domains, Node] "Bytes, with headers, that the first node sends over inter-socket links per second";
    LINK_IN_GBS ["GB/s", Domains, Node] "Bytes, with headers, that are sent over inter-socket links to the first node per second";
    LINK_REQUEST_NS ["ns", Domains, Domain] "Mean time that a request to the other node's memory holds a credit of the inter-socket link";
    REMOTE_READS ["requests", Memory, Node] "Reads of cores that another node answered" total();
    REMOTE_RFOS ["requests", Memory, Node] "Requests of cores for ownership that another node answered" total();
    SPECULATIVE_READS ["requests", Memory, Node] "Speculative reads of memory, in parallel with a snoop of the other node, whose data was not used" total();
    CHANNELS_USED ["channels", Memory, Node] "Memory channels over which lines are spread: those of a node over the sum of squares of the nodes' shares of lines";
    DIRECTORY_WRITES ["lines", Memory, Node] "Lines that home nodes wrote to memory because the directory state of the other node's copy changed; counted with the evictions of the same memory" total();
    DRAM_LAT_AVG_NS ["ns", Memory, Host] "Mean latency of reads at the memory controllers, from arrival to data; those of the background, and those that a write queue answers, are among them"
        run(Packets, 4) run(CcNic, 3) run(Tcp, 3) run(Host, 3);
    DRAM_LAT_P50_NS ["ns", Memory, Host] "Median latency of DRAM reads";
    DRAM_LAT_P99_NS ["ns", Memory, Host] "99th percentile of DRAM read latency";
    DRAM_ROW_HIT_RATIO ["fraction", Memory, Host] "Share of DRAM accesses that found their row open";
    AMAT_CYCLES ["cycles", Memory, Host] "Mean time of a line access as the cores see it";
    LLC_MISS_RATIO ["fraction", Memory, Host] "Share of core accesses to the LLC that missed"
        run(Host, 4);
    LLC_APP_SHARE ["fraction", Memory, Host] "Share of application data in the LLC accesses of the first tenant and the NIC";
    LLC_RX_LINES ["lines", Nic, Host] "LLC lines that hold receive buffers, mean over time samples";
    LLC_RX_LINES_OUTSIDE_DDIO ["lines", Nic, Host] "LLC lines that hold receive buffers and lie outside the NIC's ways, mean over time samples";
    CLSWEEPS_PER_REQ ["1/request", Nic, Host] "clsweep instructions per request";
    SWEEP_MESSAGES_PER_REQ ["1/request", Nic, Host] "Sweep messages at the home agent per request";
    MLC_WB ["lines", Memory, Host] "Lines that cores' L2s evicted to the LLC: victims, and lines that reads of devices demoted" total();
    MLC_WB_MTPS ["M/s", Memory, Host] "Lines that cores' L2s evicted to the LLC per second";
    MLC_WB_CONSUMED ["lines", Memory, Host] "Part of mlc_wb of packets that had been read" total();
    MLC_INVALIDATIONS ["lines", Memory, Host] "Lines that writes of devices invalidated in private caches" total();
    LLC_WB ["lines", Memory, Host] "Dirty lines that the LLC evicted to memory" total();
    LLC_WB_UNREAD ["lines", Memory, Host] "Part of llc_wb of packets that no core had read" total();
    LLC_WB_VICTIM ["lines", Memory, Host] "Part of llc_wb that came from cores or had been read" total();
    DMA_MTPS ["M/s", Nic, Host] "Lines that devices read and wrote per second";
    HINTS ["lines", Memory, Host] "Prefetch hints of devices to the L2s of cores" total();
    HINTS_DROPPED ["lines", Memory, Host] "Part of hints that was dropped because the hint queue was full" total();
    HINTS_FETCHED ["lines", Memory, Host] "Part of hints that became a prefetch" total();
    BURST_START_US ["us", Speed, Host] "Mean time from the first line that the NIC writes of a burst to a core taking the burst's first packet";
    BATCH_CACHED ["fraction", Memory, Host] "Share of a batch's packet lines that their core's caches hold when the batch ends; needs run.timeline";
    BURST_US ["us", Speed, Host] "Mean time from the first line that the NIC writes of a burst to the end of the burst's last packet";
    T0_CPI ["cycles", Speed, Tenant] "Cycles per instruction on all cores of the first tenant, those of its stack and NIC included, polls too";
    T1_CPI ["cycles", Speed, Tenant] "Cycles per instruction on all cores of the second tenant, those of its stack and NIC included, polls too";
    T0_MOPS ["Mops", Speed, Tenant] "Operations per second of the first tenant (requests, packets, reads of a socket or accesses)"
        run(Host, 2) sweep(Host, 3) idle_at_zero() unless(C2M_GBS) alias(tenant_column::THROUGHPUT_MOPS, 0);
    T0_LLC_MISS_RATIO ["fraction", Memory, Tenant] "LLC miss ratio of the first tenant"
        alias(tenant_column::LLC_MISS_RATIO, 0);
    T1_MOPS ["Mops", Speed, Tenant] "Operations per second of the second tenant (requests, packets, reads of a socket or accesses)"
        run(Host, 3) unless(C2M_GBS) alias(tenant_column::THROUGHPUT_MOPS, 1);
    T1_LLC_MISS_RATIO ["fraction", Memory, Tenant] "LLC miss ratio of the second tenant"
        alias(tenant_column::LLC_MISS_RATIO, 1);
    PREFETCH_RATE ["1/us", Memory, Domain] "Lines that the cores' prefetchers requested per microsecond, all cores";
    PREFETCH_UTIL ["fraction", Domains, Domain] "Share of the prefetchers' requests (`core.prefetch.credits`) in use, of the fullest core";
    PREFETCH_OCC ["lines", Memory, Domain] "Outstanding prefetches of a core, mean over time and cores";
    C2M_GBS ["GB/s", Speed, Host] "Bytes of the lines that streaming applications completed (read or updated) per second"
        run(Tcp, 2) run(Host, 1) sweep(Tcp, 2) sweep(Host, 1) idle_at_zero();
    P2M_GBS ["GB/s", Speed, Port] "Bytes of the whole 64-byte lines that peripherals moved per second, those of descriptors included"
        run(Host, 4) sweep(Host, 2) idle_at_zero();
    P2M_LLC_MISS_RATIO ["fraction", Memory, Host] "Share of the lines read and written by peripherals that missed the LLC";
    P2M_WRITE_MISS_RATIO ["fraction", Memory, Host] "Share of the lines written by peripherals that missed the LLC";
    P2M_WRITE_UNCACHED_RATIO ["fraction", Memory, Host] "Share of the lines written by peripherals that no cache held, private caches included";
    P2M_READ_MISS_RATIO ["fraction", Memory, Host] "Share of the lines read by peripherals that missed the LLC";
    P2M_IOPS ["1/s", Speed, Port] "Blocks that peripherals completed per second";
    MEM_C2M_READ_GBS ["GB/s", Memory, Host] "DRAM bytes read for cores per second";
    MEM_C2M_WRITE_GBS ["GB/s", Memory, Host] "DRAM bytes written for cores per second";
    MEM_P2M_READ_GBS ["GB/s", Memory, Host] "DRAM bytes read for devices per second";
    MEM_P2M_WRITE_GBS ["GB/s", Memory, Host] "DRAM bytes written for devices per second";
    LFB_CREDITS ["lines", Constants, Domain] "Line fill buffers of a thread, mean over threads; two threads of a core have half of its buffers each";
    LFB_OCC ["lines", Domains, Domain] "Line fill buffers in use, mean over time and cores"
        marks(Host) run(Packets, 1) run(CcNic, 2) run(Host, 1) sweep(Host, 6);
    LFB_PEAK ["lines", Domains, Domain] "Largest number of line fill buffers that any core had in use at one time" single();
    LFB_RATE ["1/us", Domains, Domain] "Line fill buffers taken per microsecond, all cores";
    LFB_LAT_NS ["ns", Domains, Domain] "Mean residence in a line fill buffer, measured for each miss";
    LFB_LITTLE_NS ["ns", Domains, Domain] "Mean residence in a line fill buffer by Little's law (occupancy over rate)";
    C2M_READ_LAT_NS ["ns", Domains, Domain] "C2M-Read domain: from a request or a prefetch of a core, which takes its credit, to the data"
        run_under(Host, 5, Speed) sweep(Host, 4);
    C2M_WRITE_LAT_NS ["ns", Domains, Domain] "C2M-Write domain: from a write-back's departure to its admission at the home agent";
    CHA_DRAM_READ_C2M_NS ["ns", Domains, Domain] "Mean time of core reads from arrival at the home agent to the data";
    CHA_DRAM_READ_P2M_NS ["ns", Domains, Domain] "Mean time of device reads from arrival at the home agent to the data there";
    CHA_MC_WRITE_C2M_NS ["ns", Domains, Domain] "Mean time of core write-backs at the home agent until a write queue has acknowledged them";
    CHA_MC_WRITE_P2M_NS ["ns", Domains, Domain] "Mean time of device writes at the home agent until a write queue has acknowledged them";
    CHA_C2M_READ_OCC ["lines", Domains, Domain] "Core reads from memory that the home agent holds, mean";
    CHA_C2M_WRITE_OCC ["lines", Domains, Domain] "Core write-backs to memory that the home agent holds, mean";
    CHA_P2M_READ_OCC ["lines", Domains, Domain] "Device reads from memory that the home agent holds, mean";
    CHA_P2M_WRITE_OCC ["lines", Domains, Domain] "Device writes that the home agent holds, mean";
    CHA_ADM_C2M_NS ["ns", Domains, Domain] "Mean wait of a core's request for admission by the home agent";
    CHA_ADM_P2M_NS ["ns", Domains, Domain] "Mean wait of a device's request for admission by the home agent";
    CHA_WAIT_WRITES ["lines", Domains, Domain] "Writes that wait at the home agent for a full write queue, mean"
        run(Packets, 2);
    CHA_WAIT_PEAK ["lines", Domains, Domain] "Largest number of writes that waited at the home agent for a full write queue" single();
    CHA_WAIT_CREDITS ["lines", Constants, Domain] "Number of writes that may wait at the home agent before it stops admitting requests";
    CHA_WAIT_UTIL ["fraction", Domains, Domain] "Share of the home agent's entries for writes that wait (`caches.llc.write_buffer`) in use, of the fullest node";
    LLC_MSHR_UTIL ["fraction", Domains, Domain] "Share of the LLC's miss status holding registers (`caches.llc.quirks.mshrs`) in use, of the fullest slice; above 1 where victims of L2s that miss take one that is not free";
    L2_MSHR_UTIL ["fraction", Domains, Domain] "Share of an L2's miss status holding registers (`core.quirks.l2_mshrs`) in use, of the fullest core";
    LFB_FULLEST_UTIL ["fraction", Domains, Domain] "Share of a core's line fill buffers (`core.lfb`) in use, of the fullest core";
    RPQ_OCC ["entries", Domains, Domain] "Occupancy of a channel's read queue, mean over channels";
    WPQ_OCC ["entries", Domains, Domain] "Occupancy of a channel's write queue, mean over channels";
    RPQ_FULL_FRAC ["fraction", Domains, Domain] "Share of time that a read queue held memory.quirks.rpq_full_mark entries or more, mean over channels";
    WPQ_FULL_FRAC ["fraction", Domains, Domain] "Share of time that a write queue held memory.quirks.wpq_full_mark entries or more, mean over channels"
        run(Packets, 3) run(Tcp, 3) run(Host, 4) sweep(Host, 8);
    WPQ_AT_CAPACITY_FRAC ["fraction", Domains, Domain] "Share of time that a write queue had no entry left, mean over channels";
    LINES_READ ["lines", Memory, Host] "Lines read from DRAM in the window" total();
    LINES_WRITTEN ["lines", Memory, Host] "Lines written to DRAM in the window" total();
    WR_SWITCHES ["switches", Memory, Host] "Ends of write mode, all channels; writes that only fill gaps between reads do not count" total();
    ACT_READ ["activates", Memory, Host] "Activates for reads, all channels" total();
    ACT_WRITE ["activates", Memory, Host] "Activates for writes, all channels" total();
    PRE_CONFLICT ["precharges", Memory, Host] "Precharges of banks in which another row was open, all channels" total();
    PRE_CONFLICT_READ ["precharges", Memory, Host] "Part of pre_conflict that a read caused" total();
    PRE_CONFLICT_WRITE ["precharges", Memory, Host] "Part of pre_conflict that a write caused" total();
    ROW_MISS_RATIO ["fraction", Memory, Host] "Activates for reads over lines read";
    BANK_DEV_P50 ["x", Memory, Host] "Median ratio of the busiest of four banks to their mean, per sample of 1000 reads";
    BANK_DEV_15_FRAC ["fraction", Memory, Host] "Share of the samples of bank_dev_p50 at or above 1.5";
    BANK_DEV_20_FRAC ["fraction", Memory, Host] "Share of the samples of bank_dev_p50 at or above 2";
    IIO_WRITE_CREDITS ["lines", Constants, Domain] "IIO write buffer entries";
    IIO_WRITE_OCC ["lines", Domains, Domain] "IIO write buffer entries in use, mean"
        run(Tcp, 2) run(Host, 2) sweep(Tcp, 6) sweep(Host, 7) idle_at_zero();
    IIO_WRITE_PEAK ["lines", Domains, Domain] "Largest number of IIO write buffer entries in use at one time" single();
    IIO_WRITE_LAT_NS ["ns", Domains, Domain] "Mean residence in the IIO write buffer (P2M-Write domain), measured for each line"
        run_under(Host, 6, Speed) idle_at_zero();
    IIO_WRITE_LITTLE_NS ["ns", Domains, Domain] "Mean residence in the IIO write buffer by Little's law";
    IIO_READ_CREDITS ["lines", Constants, Domain] "IIO read buffer entries";
    IIO_READ_OCC ["lines", Domains, Domain] "IIO read buffer entries in use, mean"
        run(Host, 3) idle_at_zero();
    IIO_READ_PEAK ["lines", Domains, Domain] "Largest number of IIO read buffer entries in use at one time" single();
    IIO_READ_LAT_NS ["ns", Domains, Domain] "Mean residence in the IIO read buffer (P2M-Read domain), measured for each line"
        run_under(Host, 7, Speed) idle_at_zero();
    IIO_READ_LITTLE_NS ["ns", Domains, Domain] "Mean residence in the IIO read buffer by Little's law";
    PCIE_UP_UTIL ["fraction", Nic, Port] "Share of time that PCIe links carry packets from devices, mean over ports"
        run(Packets, 3) run(Host, 1) idle_at_zero();
    PCIE_DOWN_UTIL ["fraction", Nic, Port] "Share of time that PCIe links carry packets to devices, mean over ports"
        run(Packets, 4) run(Host, 2) idle_at_zero();
    PCIE_BUSIEST_UTIL ["fraction", Nic, Port] "Share of time that the busiest PCIe link, of one port and one direction, carries packets";
    PCIE_POSTED_UTIL ["fraction", Domains, Port] "Share of a PCIe port's posted credits (`pcie.posted_lines`) in use, of the fullest port";
    PCIE_NON_POSTED_UTIL ["fraction", Domains, Port] "Share of a PCIe port's non-posted credits (`pcie.non_posted`) in use, of the fullest port";
    PCIE_TAGS_UTIL ["fraction", Domains, Port] "Share of a device's PCIe tags (`tags`) in use, of the device that uses most of its tags";
    NIC_ENGINE_UTIL ["fraction", Nic, Port] "Share of time that the receive engine of the integrated NIC moves packets";
    NIC_RECEIVE_UTIL ["fraction", Nic, Port] "Share of the received packets that a NIC may have in flight to memory (`rings.receive_packets`), of the fullest NIC";
    NIC_TRANSMIT_UTIL ["fraction", Nic, Port] "Share of the sent frames that a NIC may be reading from memory (`rings.quirks.transmit_packets`), of the fullest NIC";
    WIRE_IN_UTIL ["fraction", Nic, Port] "Share of time that network links to the host carry packets, of the busiest link";
    WIRE_OUT_UTIL ["fraction", Nic, Port] "Share of time that network links from the host carry packets, of the busiest link";
    SSD_MEDIA_UTIL ["fraction", Nic, Port] "Share of time that an SSD's medium (`media_rate`) is busy, of the busiest SSD";
    IIO_PATH_UTIL ["fraction", Nic, Port] "Share of time that the path from an I/O controller to the home agent carries lines, of the busiest controller";
    PFC_PAUSE_FRACTION ["fraction", Nic, Port] "Share of time that priority flow control paused the peer of a RoCE NIC, of the peer paused longest"
        run(Host, 3) idle_at_zero();
    PFC_PAUSES ["frames", Nic, Port] "Pause frames by which RoCE NICs stopped their peers" total();
    NIC_BUFFER_PEAK_KIB ["KiB", Nic, Port] "Largest fill of the receive buffer of any NIC on a port" single()
        run(Tcp, 4);
    CPU_UTILISATION ["fraction", Speed, Host] "Share of time that cores of tenants with descriptor rings neither slept nor polled in vain, mean over cores";
    CLIENT_UTILISATION ["fraction", Speed, Host] "Share of time that cores of a software load generator on its own host neither slept nor polled in vain, mean over cores";
    CLIENT_DROPS ["packets", Nic, Host] "Replies that the load generator's host lost in the measured window" total();
    CLIENT_LATE ["packets", Nic, Host] "Requests that were due at the load generator's host at the end of the window and had not been started" single();
    DROP_DMA_SHARE ["fraction", Nic, Host] "Share of lost packets whose cause was the NIC's receive DMA (DmaDrop)";
    DROP_CORE_SHARE ["fraction", Nic, Host] "Share of lost packets whose cause was the core (CoreDrop)";
    DROP_TX_SHARE ["fraction", Nic, Host] "Share of lost packets whose cause was transmission (TxDrop)";
    DESCRIPTORS_PER_WRITE_BACK ["descriptors", Nic, Port] "Receive descriptors per write-back of NICs with descriptor rings in memory, mean";
    DOORBELLS_PER_PACKET ["1/packet", Nic, Port] "Transmit doorbells per packet at NICs with descriptor rings in memory";
    TX_FETCHES_PER_PACKET ["1/packet", Nic, Port] "Fetches of transmit descriptors per packet by NICs with descriptor rings in memory";
    TX_PAYLOAD_READS_PER_PACKET ["1/packet", Nic, Port] "Reads of frames' payload per packet by NICs with descriptor rings in memory";
    FRAME_BYTES_MOVED ["B/packet", Nic, Port] "Bytes of frames, without descriptors, that NICs with descriptor rings wrote to memory and read from it, per packet";
    DMA_READ_MIN_NS ["ns", Nic, Port] "Shortest read of memory by a device on a port, from its request to the last data" single();
    DMA_PEAK_GBS ["GB/s", Nic, Port] "Receive DMA of a NIC with descriptor rings in memory in its busiest 100 ns, of the NIC with most" single();
    DMA_BUSY ["fraction", Nic, Port] "Share of time that the receive DMA of a NIC with descriptor rings in memory had lines in flight, of the busiest NIC";
    NET_GBS ["GB/s", Speed, Host] "Payload bytes that TCP receivers copied to their applications per second"
        marks(Tcp) run(Tcp, 1) sweep(Tcp, 1);
    PACKET_LOSS ["fraction", Nic, Host] "Share of the frames arriving for TCP receivers that the NIC lost"
        run(Tcp, 1) sweep(Tcp, 3);
    NET_BUSY ["cores", Speed, Host] "Number of cores' worth of time that TCP receivers were busy";
    NET_COPY_SHARE ["fraction", Speed, Host] "Share of net_busy spent copying payload to applications";
    NET_POLL_SHARE ["fraction", Speed, Host] "Share of net_busy spent on interrupts, driver and protocol";
    NET_LFB_OCC ["lines", Domains, Domain] "Line fill buffers in use on cores that receive TCP, mean over time and cores"
        run(Tcp, 1);
    NET_LFB_PEAK ["lines", Domains, Domain] "Largest number of line fill buffers that any core receiving TCP had in use at one time" single();
    NET_LFB_RATE ["1/us", Domains, Domain] "Line fill buffers taken per microsecond, all cores that receive TCP";
    NET_LFB_LAT_NS ["ns", Domains, Domain] "Mean residence in a line fill buffer of cores that receive TCP, measured for each miss"
        run_under(Tcp, 4, Speed);
    NET_LFB_LITTLE_NS ["ns", Domains, Domain] "Mean residence in a line fill buffer of cores that receive TCP by Little's law";
    MEM_NET_READ_GBS ["GB/s", Memory, Host] "Bytes of the LLC misses of cores that receive TCP, per second";
    TCP_RTT_US ["us", Speed, Host] "Mean time from a segment's transmission to its acknowledgement at the sender"
        run(Tcp, 3) sweep(Tcp, 4);
    TCP_CWND ["segments", Speed, Host] "Congestion window at the window's end, mean over flows" single();
    TCP_RETRANSMITS ["fraction", Nic, Host] "Share of segments that were retransmissions"
        run(Tcp, 2);
    DCTCP_ALPHA ["fraction", Nic, Host] "DCTCP's estimate of the marked share of segments at the window's end, mean over flows"
        run(Tcp, 3);
    HOST_LEVEL ["levels", Speed, Host] "Level of the host's own response to congestion (hostCC), mean over time";
    STORAGE_BUSY ["cores", Speed, Host] "Number of cores' worth of time that the kernel's block layer worked for SSDs";
    T_TRANS_NS ["ns", Constants, Host] "Time that one line takes on a memory channel";
    T_RCD_NS ["ns", Constants, Host] "Time from activate to column command (tRCD)";
    T_RP_NS ["ns", Constants, Host] "Time from precharge to activate (tRP)";
    C2M_READ_UNLOADED_NS ["ns", Constants, Domain] "Unloaded latency of a core's read whose row is open: sum of its hops";
    C2M_WRITE_UNLOADED_NS ["ns", Constants, Domain] "Unloaded latency of a core's write-back to the home agent: sum of its hops";
    P2M_READ_UNLOADED_NS ["ns", Constants, Domain] "Unloaded latency of a device's read whose row is open: sum of its hops";
    P2M_WRITE_UNLOADED_NS ["ns", Constants, Domain] "Unloaded latency of a device's write to a write queue: sum of its hops, mean over the lines of a packet";
    PREDICTED_C2M_GBS ["GB/s", Speed, Host] "Throughput of streaming applications that the closed form predicts from platform and traffic alone";
    PREDICTED_P2M_GBS ["GB/s", Speed, Host] "Throughput of peripherals that the closed form predicts from platform and traffic alone";
    SIM_LINES ["lines", Simulation, Host] "DRAM lines moved in the measured window, those included that write queues answer";
    PACKETS_BETWEEN_PAUSES ["packets", Nic, Port] "Packets accepted between two moments at which the receive ring became full";
    RX_FOOTPRINT_MIB ["MiB", Constants, Host] "Size of the receive buffers of all cores"
        run_under(Sizes, 1, ReceiveBuffers) sweep(Sizes, 1);
    RX_FOOTPRINT_PER_LLC ["fraction", Constants, Host] "Size of the receive buffers of all cores of a node over the capacity of its LLC, of the node with the largest"
        run_under(Sizes, 2, ReceiveBuffers) sweep(Sizes, 2);
    DDIO_CAPACITY_MIB ["MiB", Constants, Host] "Capacity of the ways of a node's LLC that are open to the NIC"
        run_under(Sizes, 3, ReceiveBuffers) sweep(Sizes, 3);
    TOTAL_RX_ENTRIES ["buffers", Constants, Host] "Number of receive buffers of all cores"
        run_under(Sizes, 4, ReceiveBuffers) sweep(Sizes, 4);
    LLC_MIB ["MiB", Constants, Host] "Capacity of a node's LLC"
        run_under(Sizes, 5, ReceiveBuffers) sweep(Sizes, 5);
    L1L2_KIB ["KiB", Constants, Host] "Capacity of the L1 data cache and the L2 of one core together";
    CORES ["cores", Constants, Host] "Number of cores that serve packets, through CC-NIC as well";
    CHANNELS ["channels", Constants, Host] "Number of memory channels of all nodes";
    MEM_PEAK_GBS ["GB/s", Constants, Host] "Peak bandwidth of the memory channels of all nodes";
    DRAM_READS_PER_BLOCK ["1/block", DirectedTest, Host] "Directed test: DRAM reads per cache block of the packet"
        marks(Directed) run(Directed, 1) sweep(Directed, 1);
    DRAM_WRITES_PER_BLOCK ["1/block", DirectedTest, Host] "Directed test: DRAM writes per cache block of the packet"
        marks(Directed) run(Directed, 2) sweep(Directed, 2);
    FIRST_READ_CYCLES ["cycles", DirectedTest, Host] "Directed test: the core's first read of the packet"
        marks(Directed) run(Directed, 3) sweep(Directed, 3);
    EVCT_DIRTY_FRACTION ["fraction", DirectedTest, Host] "Directed test: forced evictions that wrote DRAM"
        marks(Directed) run(Directed, 4) sweep(Directed, 4);
    COPIES_LEFT ["copies", DirectedTest, Host] "Directed test: valid copies of the packet's blocks at the end"
        marks(Directed) run(Directed, 5) sweep(Directed, 5);
    LLC_DIRTY_BLOCKS ["blocks", DirectedTest, Host] "Directed test: dirty LLC copies after the core's read"
        marks(Directed) run(Directed, 6) sweep(Directed, 6);
    TX_WRITES_PER_BLOCK ["1/block", DirectedTest, Host] "Directed test: DRAM writes per transmitted block"
        marks(Directed) run(Directed, 7) sweep(Directed, 7);
    SWEEP_DELAY_NS ["ns", DirectedTest, Host] "Directed test: from transmission to the last sweep"
        marks(Directed) run(Directed, 8) sweep(Directed, 8);
    STALE_BLOCKS_READABLE ["blocks", DirectedTest, Host] "Directed test: blocks of the previous owner that the new one can read"
        marks(Directed) run(Directed, 9) sweep(Directed, 9);
    CLSWEEPS ["instructions", DirectedTest, Host] "Directed test: clsweep instructions"
        marks(Directed) run(Directed, 10) sweep(Directed, 10);
    SWEEP_MESSAGES ["messages", DirectedTest, Host] "Directed test: sweep messages at the home agent"
        marks(Directed) run(Directed, 11) sweep(Directed, 11);
    UNLOADED_DRAM_NS ["ns", DirectedTest, Host] "Directed test: DRAM part of an unloaded LLC miss"
        marks(Directed) run(Directed, 12) sweep(Directed, 12);
    SIM_EVENTS ["events", Simulation, Host] "Events that the run took, including those of searches";
    SIM_REQUESTS ["requests", Simulation, Host] "Requests simulated, including warm-up and searches";
}
