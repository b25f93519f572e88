//! Metrics of a run. Each metric is declared once, in this module; result columns, help and documentation derive from
//! it.

pub mod drops;

/// Declaration of one number that a run yields.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Name, as in columns of results.
    pub name: &'static str,
    /// Unit; `fraction` for a share between 0 and 1.
    pub unit: &'static str,
    /// One sentence on what is measured.
    pub description: &'static str,
}

macro_rules! metrics {
    ($($name:ident [$unit:literal] $description:literal;)+) => {
        /// Every metric, in the order of result columns.
        pub const METRICS: &[Metric] =
            &[$(Metric { name: stringify!($name), unit: $unit, description: $description }),+];
    };
}

metrics! {
    throughput_mrps ["Mrps"] "Requests (or packets) completed per second in the measured window";
    offered_mrps ["Mrps"] "Requests offered per second in the measured window";
    net_gbps ["Gb/s"] "Received bits of completed requests per second";
    offered_gbps ["Gb/s"] "Bits of the frames that the load generator offered per second";
    achieved_gbps ["Gb/s"] "Bits of the frames that came back to the load generator per second";
    drop_rate ["fraction"] "Dropped over offered packets";
    loss_rate ["fraction"] "Dropped packets and those by which queues grew, over offered ones: what a longer run drops";
    drops ["packets"] "Packets dropped in the measured window";
    lat_mean_us ["us"] "Mean latency from arrival at the NIC to the reply on the wire";
    lat_p50_us ["us"] "Median latency";
    lat_p90_us ["us"] "90th percentile of latency";
    lat_p99_us ["us"] "99th percentile of latency";
    lat_p999_us ["us"] "99.9th percentile of latency";
    lat_max_us ["us"] "Largest latency";
    rtt_mean_us ["us"] "Mean round trip of packets that came back to the load generator";
    rtt_median_us ["us"] "Median round trip";
    rtt_sd_us ["us"] "Standard deviation of round trips";
    rtt_p90_us ["us"] "90th percentile of round trips";
    rtt_p99_us ["us"] "99th percentile of round trips";
    rtt_p999_us ["us"] "99.9th percentile of round trips";
    rtt_min_ns ["ns"] "Shortest round trip of a packet through CC-NIC";
    achieved_mpps ["Mpps"] "Packets per second that came back through CC-NIC";
    pingpong_ns ["ns"] "Median round trip of a counter between two threads";
    remote_requests ["1/trip"] "Requests of both threads' cores whose answer came from another node, for each round trip";
    stream_gbps ["Gb/s"] "Lines that readers copied from their writers, or read from the other node";
    host_reads_per_packet ["1/packet"] "Reads of CC-NIC's lines that left the L2s of the host's cores";
    host_rfos_per_packet ["1/packet"] "Requests for their ownership that left the L2s of the host's cores";
    nic_reads_per_packet ["1/packet"] "Reads of CC-NIC's lines that left the L2s of the NIC's cores";
    nic_rfos_per_packet ["1/packet"] "Requests for their ownership that left the L2s of the NIC's cores";
    host_remote_reads ["1/packet"] "Reads of CC-NIC's lines by the host's cores whose answer came from another node";
    host_remote_rfos ["1/packet"] "Requests for their ownership by the host's cores whose answer came from another node";
    nic_remote_reads ["1/packet"] "Reads of CC-NIC's lines by the NIC's cores whose answer came from another node";
    nic_remote_rfos ["1/packet"] "Requests for their ownership by the NIC's cores whose answer came from another node";
    host_remote_rfos_payload ["1/packet"] "Of host_remote_rfos, those for lines of payload";
    nic_remote_reads_descriptor ["1/packet"] "Of nic_remote_reads, those of descriptors' lines";
    nic_remote_reads_tx ["1/packet"] "Of nic_remote_reads, those of the transmit ring's descriptors and registers";
    nic_signal_reads ["1/packet"] "Of nic_remote_reads_tx, those of a packet's own lines that ended after its publication; of one packet under way";
    nic_remote_reads_register ["1/packet"] "Of nic_remote_reads, those of registers";
    nic_remote_reads_payload ["1/packet"] "Of nic_remote_reads, those of lines of payload";
    payload_lines_crossed ["1/packet"] "Lines of payload that either side's cores have asked the other node for through CC-NIC";
    signal_discovery_ns ["ns"] "Median time from when a transmit descriptor is visible to when CC-NIC's NIC has seen it";
    host_instructions_per_packet ["1/packet"] "Instructions of the host's cores for a packet through CC-NIC, empty polls included";
    nic_instructions_per_packet ["1/packet"] "The same of the NIC's cores";
    pool_ops_per_packet ["1/packet"] "Buffers that threads of CC-NIC moved from and to the pool";
    host_blanks_per_packet ["1/packet"] "Blank receive buffers that the host posted through CC-NIC";
    host_tx_frees_per_packet ["1/packet"] "Transmit buffers that the host freed after CC-NIC had sent them";
    host_writes_retained ["lines/packet"] "Lines that the host wrote to buffers that CC-NIC's NIC had sent and nobody had used since";
    small_fallbacks ["buffers"] "Large buffers for packets that fit a small one, because no small one was left";
    tcp_rpcs_per_segment ["RPCs/segment"] "Replies in a segment that TAS sent, on average";
    service_mean_us ["us"] "Mean time a core spends on a request";
    cores_busy ["cores"] "Mean number of cores serving requests";
    mem_bw_gbs ["GB/s"] "DRAM bytes moved per second, reads and writes";
    mem_read_gbs ["GB/s"] "DRAM bytes read per second";
    mem_write_gbs ["GB/s"] "DRAM bytes written per second";
    mem_utilisation ["fraction"] "DRAM bytes per second over the channels' peak";
    acc_nic_rx_wr ["lines/request"] "DRAM writes by the NIC's receive side";
    acc_nic_tx_rd ["lines/request"] "DRAM reads by the NIC's transmit side";
    acc_cpu_rx_rd ["lines/request"] "DRAM reads of receive buffers by cores";
    acc_cpu_tx_rdwr ["lines/request"] "DRAM reads of transmit buffers by cores";
    acc_cpu_other_rd ["lines/request"] "DRAM reads of application data by cores";
    acc_rx_evct ["lines/request"] "DRAM writes of evicted receive buffers";
    acc_tx_evct ["lines/request"] "DRAM writes of evicted transmit buffers";
    acc_other_evct ["lines/request"] "DRAM writes of evicted application data";
    acc_io_wr ["lines/request"] "DRAM writes by peripherals behind the IIO";
    acc_io_rd ["lines/request"] "DRAM reads by peripherals behind the IIO";
    acc_io_evct ["lines/request"] "DRAM writes of evicted peripheral buffers";
    acc_background_rd ["lines/request"] "DRAM reads of the system behind what is simulated";
    acc_total ["lines/request"] "64-byte DRAM transfers per completed request";
    rx_evct_premature ["lines/request"] "Receive-buffer evictions before the first read";
    rx_evct_consumed ["lines/request"] "Receive-buffer evictions after the first read";
    mmio_read_ns ["ns"] "One uncached load from a device, from its issue to the data";
    mmio_store_ns ["ns"] "The last of a burst of combining stores to a device, from the one before until a buffer has taken it";
    mmio_burst_ns ["ns"] "All of the burst";
    access_ns ["ns"] "Latency of the one load of probe_latency, from issue to data";
    mlc_copies_after ["lines"] "Copies of probe_place's line in private caches after the request";
    in_ddio_ways_after ["lines"] "Whether its line is in a way of the LLC that devices allocate into, after the request";
    llc_allocations ["lines"] "Lines of the LLC that the request took";
    ways_allocated ["ways"] "Ways of the LLC that hold lines after writes of all receive buffers that no cache had";
    link_utilisation ["fraction"] "Time that links between nodes are busy, mean over the links of the busier direction";
    link_out_util ["fraction"] "Time that links from the first node to the other are busy, mean over links";
    link_in_util ["fraction"] "The same of links to the first node";
    link_data_gbps ["Gb/s"] "Bits of lines, without headers, over links between nodes in the busier direction";
    link_out_gbs ["GB/s"] "Bytes with headers over links from the first node to the other";
    link_in_gbs ["GB/s"] "The same of links to the first node";
    link_request_ns ["ns"] "Mean time that a request to the other node's memory holds a credit";
    remote_reads ["requests"] "Reads of cores whose answer came from another node";
    remote_rfos ["requests"] "The same for ownership";
    speculative_reads ["requests"] "Reads of memory beside a snoop of the other node that were for nothing";
    dram_lat_avg_ns ["ns"] "Mean latency of DRAM reads, controller queueing included";
    dram_lat_p50_ns ["ns"] "Median latency of DRAM reads";
    dram_lat_p99_ns ["ns"] "99th percentile of DRAM read latency";
    dram_row_hit_ratio ["fraction"] "DRAM accesses that found their row open";
    amat_cycles ["cycles"] "Mean time of a line access as the cores see it";
    llc_miss_ratio ["fraction"] "Core accesses at the LLC that missed";
    llc_app_share ["fraction"] "Share of application data in the first tenant's and the NIC's LLC accesses";
    llc_rx_lines ["lines"] "LLC lines that hold receive buffers, mean over samples";
    llc_rx_lines_outside_ddio ["lines"] "Of these, lines outside the ways open to the NIC";
    clsweeps_per_req ["1/request"] "clsweep instructions per request";
    sweep_messages_per_req ["1/request"] "Sweep messages at the home agent per request";
    mlc_wb ["lines"] "Lines that cores' L2s gave to the LLC: victims, and what devices' reads took down";
    mlc_wb_mtps ["M/s"] "The same per time";
    mlc_wb_consumed ["lines"] "Of these, lines of packets that had been read";
    mlc_invalidations ["lines"] "Lines that devices' writes took from private caches";
    llc_wb ["lines"] "Dirty lines that the LLC gave to memory to make room";
    llc_wb_unread ["lines"] "Of these, lines of packets that nobody had read";
    llc_wb_victim ["lines"] "The others: what had come from cores, or had been read";
    dma_mtps ["M/s"] "Lines that devices read and wrote per time";
    hints ["lines"] "Lines that L2s were told to fetch";
    hints_dropped ["lines"] "Of these, hints that found the queue full";
    hints_fetched ["lines"] "Of these, hints that became a prefetch";
    burst_start_us ["us"] "From the first line that the NIC writes of a burst to when a core takes its first packet, mean";
    batch_held ["fraction"] "Lines of packets that their core's caches have when the batch ends, of all; with run.timeline";
    burst_us ["us"] "From the first line that the NIC writes of a burst to the end of its last packet, mean";
    t0_cpi ["cycles"] "Cycles of an instruction on the first tenant's cores, polls included";
    t1_cpi ["cycles"] "Cycles of an instruction on the second tenant's cores";
    t0_mops ["Mops"] "Operations per second of the first tenant (requests, packets or accesses)";
    t0_llc_miss_ratio ["fraction"] "LLC miss ratio of the first tenant";
    t1_mops ["Mops"] "Operations per second of the second tenant";
    t1_llc_miss_ratio ["fraction"] "LLC miss ratio of the second tenant";
    prefetch_rate ["1/us"] "Lines that the cores' L2 prefetchers asked for";
    prefetch_occ ["lines"] "Prefetches under way, mean per core";
    c2m_gbs ["GB/s"] "Lines that streaming applications finished, 64 bytes each, read or updated";
    p2m_gbs ["GB/s"] "Payload that peripherals moved";
    p2m_llc_miss_ratio ["fraction"] "LLC miss ratio of peripherals";
    p2m_write_miss_ratio ["fraction"] "Lines that the LLC did not have of those that peripherals wrote";
    p2m_write_uncached_ratio ["fraction"] "Lines that no cache had, private ones included, of those that peripherals wrote";
    p2m_read_miss_ratio ["fraction"] "Lines that the LLC did not have of those that peripherals read";
    p2m_iops ["1/s"] "Blocks that peripherals completed per second";
    mem_c2m_read_gbs ["GB/s"] "DRAM bytes read for cores";
    mem_c2m_write_gbs ["GB/s"] "DRAM bytes written for cores";
    mem_p2m_read_gbs ["GB/s"] "DRAM bytes read for devices";
    mem_p2m_write_gbs ["GB/s"] "DRAM bytes written for devices";
    lfb_credits ["lines"] "Line fill buffers of a core";
    lfb_occ ["lines"] "Line fill buffers in use, mean over time and cores";
    lfb_peak ["lines"] "Most line fill buffers that any core had in use at once";
    lfb_rate ["1/us"] "Line fill buffers taken, all cores";
    lfb_lat_ns ["ns"] "Mean residence in a line fill buffer, measured";
    lfb_little_ns ["ns"] "The same by Little's law: occupancy over rate";
    c2m_read_lat_ns ["ns"] "C2M-Read domain: from the line fill buffer's allocation to the data";
    c2m_write_lat_ns ["ns"] "C2M-Write domain: from a write-back's departure to its admission at the home agent";
    cha_dram_read_c2m_ns ["ns"] "Core reads, from the home agent to data there";
    cha_dram_read_p2m_ns ["ns"] "Device reads, from the home agent to data there";
    cha_mc_write_c2m_ns ["ns"] "Core write-backs, from the home agent to its knowing that a write queue has them";
    cha_mc_write_p2m_ns ["ns"] "Device writes, from the home agent to its knowing that a write queue has them";
    cha_c2m_read_occ ["lines"] "Core reads that the home agent has sent to memory and holds";
    cha_c2m_write_occ ["lines"] "Core write-backs that the home agent has sent to memory and holds";
    cha_p2m_read_occ ["lines"] "Device reads that the home agent has sent to memory and holds";
    cha_p2m_write_occ ["lines"] "Device writes that the home agent holds";
    cha_adm_c2m_ns ["ns"] "Mean wait of a core's request for admission by the home agent";
    cha_adm_p2m_ns ["ns"] "Mean wait of a device's request for admission by the home agent";
    cha_wait_writes ["lines"] "Writes that wait at the home agent for a full write queue, mean";
    cha_wait_peak ["lines"] "The most of them at once";
    cha_wait_credits ["lines"] "Writes that may wait there before nothing is admitted";
    rpq_occ ["entries"] "Occupancy of a channel's read queue, mean over channels";
    wpq_occ ["entries"] "Occupancy of a channel's write queue, mean over channels";
    rpq_full_frac ["fraction"] "Time that a read queue held memory.rpq_full_mark entries or more, mean over channels";
    wpq_full_frac ["fraction"] "Time that a write queue held memory.wpq_full_mark entries or more, mean over channels";
    wpq_at_capacity_frac ["fraction"] "Time that a write queue had no entry left, mean over channels";
    lines_read ["lines"] "Lines read from DRAM in the window";
    lines_written ["lines"] "Lines written to DRAM in the window";
    wr_switches ["switches"] "Changes from write mode to read mode, all channels; writes that only fill gaps between reads are not one";
    act_read ["activates"] "Activates for reads, all channels";
    act_write ["activates"] "Activates for writes, all channels";
    pre_conflict ["precharges"] "Precharges because another row was open, all channels";
    pre_conflict_read ["precharges"] "Of these, those that a read wanted";
    pre_conflict_write ["precharges"] "Of these, those that a write wanted";
    row_miss_ratio ["fraction"] "Activates for reads over lines read";
    bank_dev_p50 ["x"] "Busiest of four banks over their mean, per 1000 reads of them: median";
    bank_dev_15_frac ["fraction"] "Share of such samples at or above 1.5";
    bank_dev_20_frac ["fraction"] "Share of such samples at or above 2";
    iio_write_credits ["lines"] "IIO write buffer entries";
    iio_write_occ ["lines"] "IIO write buffer entries in use, mean";
    iio_write_peak ["lines"] "Most IIO write buffer entries in use at once";
    iio_write_lat_ns ["ns"] "Mean residence in the IIO write buffer (P2M-Write domain), measured";
    iio_write_little_ns ["ns"] "The same by Little's law";
    iio_read_credits ["lines"] "IIO read buffer entries";
    iio_read_occ ["lines"] "IIO read buffer entries in use, mean";
    iio_read_peak ["lines"] "Most IIO read buffer entries in use at once";
    iio_read_lat_ns ["ns"] "Mean residence in the IIO read buffer (P2M-Read domain), measured";
    iio_read_little_ns ["ns"] "The same by Little's law";
    pcie_up_util ["fraction"] "Time that links carry packets from devices, mean over ports";
    pcie_down_util ["fraction"] "Time that links carry packets to devices, mean over ports";
    pfc_pause_fraction ["fraction"] "Time that priority flow control paused the peer of a RoCE NIC";
    pfc_pauses ["frames"] "Pause frames that stopped the peer";
    nic_buffer_peak_kib ["KiB"] "Most bytes in a NIC's receive buffer";
    cpu_utilisation ["fraction"] "Time that cores whose packets come through descriptor rings neither slept nor polled in vain, mean over cores";
    client_utilisation ["fraction"] "The same of the cores of a software load generator on a host of its own";
    client_drops ["packets"] "Replies that its NIC lost in the measured window";
    client_late ["packets"] "Requests that were due there at the end and had not been begun";
    drop_dma_share ["fraction"] "Lost packets whose cause was the NIC's receive DMA (DmaDrop), of all lost";
    drop_core_share ["fraction"] "Lost packets whose cause was the core (CoreDrop), of all lost";
    drop_tx_share ["fraction"] "Lost packets whose cause was transmission (TxDrop), of all lost";
    descriptors_per_write_back ["descriptors"] "Receive descriptors that a NIC with rings in memory writes back at once, mean";
    doorbells_per_packet ["1/packet"] "Doorbells of transmit rings that came to a NIC whose rings lie in memory";
    tx_fetches_per_packet ["1/packet"] "Fetches of transmit descriptors by the NIC";
    tx_payload_reads_per_packet ["1/packet"] "Reads of frames' payload by the NIC";
    frame_bytes_moved ["B/packet"] "Bytes of frames that a NIC whose rings lie in memory wrote to memory and read from it, without descriptors";
    dma_read_min_ns ["ns"] "Shortest read of memory by a device behind a port, from its request to the last data";
    dma_peak_gbs ["GB/s"] "Receive DMA of such a NIC in the busiest 100 ns";
    dma_busy ["fraction"] "Time that such a NIC's receive DMA had lines on their way to memory";
    net_gbs ["GB/s"] "Payload that TCP receivers copied to their applications";
    packet_loss ["fraction"] "Frames that a NIC under TCP lost, of those that came";
    net_busy ["cores"] "Cores' worth of time that TCP receivers were busy";
    net_copy_share ["fraction"] "Of that time, copying payload to applications";
    net_poll_share ["fraction"] "Of that time, interrupts, driver and protocol";
    net_lfb_occ ["lines"] "Line fill buffers in use on cores that receive TCP, mean over time and cores";
    net_lfb_peak ["lines"] "Most line fill buffers that any of them had in use at once";
    net_lfb_rate ["1/us"] "Line fill buffers taken by all of them";
    net_lfb_lat_ns ["ns"] "Mean residence in a line fill buffer of theirs, measured";
    net_lfb_little_ns ["ns"] "The same by Little's law";
    mem_net_read_gbs ["GB/s"] "DRAM bytes read for cores that receive TCP";
    tcp_rtt_us ["us"] "Mean time from a segment's transmission to its acknowledgement at the sender";
    tcp_cwnd ["segments"] "Congestion window at the window's end, mean over flows";
    tcp_retransmits ["fraction"] "Segments sent again, of all sent";
    dctcp_alpha ["fraction"] "DCTCP's estimate of the marked share at the window's end, mean over flows";
    host_level ["levels"] "Level of the host's own response to congestion (hostCC), mean over time";
    storage_busy ["cores"] "Cores' worth of time that the kernel's block layer worked for SSDs";
    t_trans_ns ["ns"] "Time that one line takes on a memory channel";
    t_rcd_ns ["ns"] "Activate to column command";
    t_rp_ns ["ns"] "Precharge to activate";
    c2m_read_unloaded_ns ["ns"] "Sum of the hops of a core's read whose row is open";
    c2m_write_unloaded_ns ["ns"] "Sum of the hops of a core's write-back to the home agent";
    p2m_read_unloaded_ns ["ns"] "Sum of the hops of a device's read whose row is open";
    p2m_write_unloaded_ns ["ns"] "Sum of the hops of a device's write to a write queue, mean over the lines of a packet";
    predicted_c2m_gbs ["GB/s"] "What the closed form gives the streaming applications, from platform and traffic alone";
    predicted_p2m_gbs ["GB/s"] "What the closed form gives the peripherals, from platform and traffic alone";
    sim_lines ["lines"] "DRAM lines moved in the measured window";
    packets_between_pauses ["packets"] "Packets accepted between two moments at which the ring ran full";
    rx_footprint_mib ["MiB"] "Receive buffers of all cores";
    rx_footprint_per_llc ["fraction"] "The same over the LLC's capacity";
    ddio_capacity_mib ["MiB"] "LLC capacity of the ways open to the NIC";
    total_rx_entries ["buffers"] "Receive buffers of all cores";
    llc_mib ["MiB"] "LLC capacity";
    l1l2_kib ["KiB"] "L1 data cache and L2 of one core together";
    cores ["cores"] "Cores that serve packets";
    channels ["channels"] "Memory channels";
    mem_peak_gbs ["GB/s"] "Peak bandwidth of all channels";
    dram_reads_per_block ["1/block"] "Directed test: DRAM reads per cache block of the packet";
    dram_writes_per_block ["1/block"] "Directed test: DRAM writes per cache block of the packet";
    first_read_cycles ["cycles"] "Directed test: the core's first read of the packet";
    evct_dirty_fraction ["fraction"] "Directed test: forced evictions that wrote DRAM";
    copies_left ["copies"] "Directed test: valid copies of the packet's blocks at the end";
    llc_dirty_blocks ["blocks"] "Directed test: dirty LLC copies after the core's read";
    tx_writes_per_block ["1/block"] "Directed test: DRAM writes per transmitted block";
    sweep_delay_ns ["ns"] "Directed test: from transmission to the last sweep";
    stale_blocks_readable ["blocks"] "Directed test: blocks of the previous owner that the new one can read";
    clsweeps ["instructions"] "Directed test: clsweep instructions";
    sweep_messages ["messages"] "Directed test: sweep messages at the home agent";
    unloaded_dram_ns ["ns"] "Directed test: DRAM part of an unloaded LLC miss";
    sim_events ["events"] "Events that the run took, searches included";
    sim_requests ["requests"] "Requests simulated, warm-up and searches included";
}

/// Old and new name of each metric that has a new name; whoever reads results by name accepts the old one in this version.
pub const RENAMED: &[(&str, &str)] = &[("p2m_write_nowhere_ratio", "p2m_write_uncached_ratio")];

/// Index of a metric in [`METRICS`].
///
/// # Panics
/// Panics when no metric is called `name`.
pub fn index(name: &str) -> usize {
    METRICS.iter().position(|m| m.name == name).unwrap_or_else(|| panic!("undeclared metric {name}"))
}

/// Values of all metrics in the order of [`METRICS`]; `None` where a metric has no meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct Values(pub Vec<Option<f64>>);

impl Default for Values {
    fn default() -> Self {
        Values(vec![None; METRICS.len()])
    }
}

impl Values {
    /// Sets the metric `name`, or clears it when `v` is not finite.
    ///
    /// # Panics
    /// Panics when no metric is called `name`.
    pub fn set(&mut self, name: &str, v: f64) {
        self.0[index(name)] = v.is_finite().then_some(v);
    }
    /// The value of the metric `name`, where it has one.
    ///
    /// # Panics
    /// When nobody declared `name`.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0[index(name)]
    }
}
