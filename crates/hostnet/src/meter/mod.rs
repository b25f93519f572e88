//! Metrics of a run. Each metric is declared once, in this module; result columns, help and documentation derive from
//! it.

pub mod drops;
pub mod table;

/// Declaration of one number that a run yields.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Name of the metric and of its column in tables of results.
    pub name: &'static str,
    /// Unit; `fraction` for a share between 0 and 1.
    pub unit: &'static str,
    /// One sentence that says what is measured.
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
    loss_rate ["fraction"] "Dropped packets plus growth of queues, over offered packets: the drop rate of a longer run";
    drops ["packets"] "Packets dropped in the measured window";
    lat_mean_us ["us"] "Mean latency from arrival at the NIC to the reply on the wire";
    lat_p50_us ["us"] "Median latency";
    lat_p90_us ["us"] "90th percentile of latency";
    lat_p99_us ["us"] "99th percentile of latency";
    lat_p999_us ["us"] "99.9th percentile of latency";
    lat_max_us ["us"] "Largest latency";
    rtt_mean_us ["us"] "Mean round trip of packets that came back to the load generator";
    rtt_median_us ["us"] "Median round trip of packets that came back to the load generator";
    rtt_sd_us ["us"] "Standard deviation of round trips of packets that came back to the load generator";
    rtt_p90_us ["us"] "90th percentile of round trips of packets that came back to the load generator";
    rtt_p99_us ["us"] "99th percentile of round trips of packets that came back to the load generator";
    rtt_p999_us ["us"] "99.9th percentile of round trips of packets that came back to the load generator";
    rtt_min_ns ["ns"] "Shortest round trip of a packet through CC-NIC";
    achieved_mpps ["Mpps"] "Packets that came back through CC-NIC per second";
    pingpong_ns ["ns"] "Median round trip of a counter between two threads";
    remote_requests ["1/trip"] "Requests of both threads' cores that another node answered, per round trip of pingpong";
    stream_gbps ["Gb/s"] "Bits of the lines that readers copied from their writers, or read from the other node, per second";
    host_reads_per_packet ["1/packet"] "Reads of CC-NIC's lines that left the L2s of the host's cores, per packet";
    host_rfos_per_packet ["1/packet"] "Requests for ownership of CC-NIC's lines that left the L2s of the host's cores, per packet";
    nic_reads_per_packet ["1/packet"] "Reads of CC-NIC's lines that left the L2s of the NIC's cores, per packet";
    nic_rfos_per_packet ["1/packet"] "Requests for ownership of CC-NIC's lines that left the L2s of the NIC's cores, per packet";
    host_remote_reads ["1/packet"] "Reads of CC-NIC's lines by the host's cores that another node answered, per packet";
    host_remote_rfos ["1/packet"] "Requests for ownership of CC-NIC's lines by the host's cores that another node answered, per packet";
    nic_remote_reads ["1/packet"] "Reads of CC-NIC's lines by the NIC's cores that another node answered, per packet";
    nic_remote_rfos ["1/packet"] "Requests for ownership of CC-NIC's lines by the NIC's cores that another node answered, per packet";
    host_remote_rfos_payload ["1/packet"] "Part of host_remote_rfos for lines of payload";
    nic_remote_reads_descriptor ["1/packet"] "Part of nic_remote_reads for lines of descriptors";
    nic_remote_reads_tx ["1/packet"] "Part of nic_remote_reads for descriptors and registers of the transmit ring";
    nic_signal_reads ["1/packet"] "Part of nic_remote_reads_tx for a packet's own lines that ended after the packet's publication; of one packet in flight";
    nic_remote_reads_register ["1/packet"] "Part of nic_remote_reads for registers";
    nic_remote_reads_payload ["1/packet"] "Part of nic_remote_reads for lines of payload";
    payload_lines_crossed ["1/packet"] "Lines of payload that cores of either side requested from the other node through CC-NIC, per packet";
    signal_discovery_ns ["ns"] "Median time from a transmit descriptor becoming visible to CC-NIC's NIC seeing it";
    host_instructions_per_packet ["1/packet"] "Instructions of the host's cores per packet through CC-NIC, including empty polls";
    nic_instructions_per_packet ["1/packet"] "Instructions of the NIC's cores per packet through CC-NIC, including empty polls";
    pool_ops_per_packet ["1/packet"] "Buffers that threads of CC-NIC took from the pool and returned to it, per packet";
    host_blanks_per_packet ["1/packet"] "Blank receive buffers that the host posted through CC-NIC, per packet";
    host_tx_frees_per_packet ["1/packet"] "Transmit buffers that the host freed after CC-NIC had sent them, per packet";
    host_writes_retained ["lines/packet"] "Lines that the host wrote to buffers that CC-NIC's NIC had sent and no packet had used since, per packet";
    small_fallbacks ["buffers"] "Packets that fit a small buffer of CC-NIC but took a large one, because no small one was left";
    tcp_rpcs_per_segment ["RPCs/segment"] "Mean number of replies in a segment that TAS sent";
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
    acc_background_rd ["lines/request"] "DRAM reads of the background, which stands for the system that is not simulated";
    acc_total ["lines/request"] "64-byte DRAM transfers per completed request";
    rx_evct_premature ["lines/request"] "Receive-buffer evictions before the first read";
    rx_evct_consumed ["lines/request"] "Receive-buffer evictions after the first read";
    mmio_read_ns ["ns"] "Time of one uncached load from a device, from its issue to the data";
    mmio_store_ns ["ns"] "Time of the last of a burst of combining stores to a device, from the previous store until a buffer has accepted it";
    mmio_burst_ns ["ns"] "Time of a whole burst of combining stores to a device";
    access_ns ["ns"] "Latency of the one load of probe_latency, from issue to data";
    mlc_copies_after ["lines"] "Whether private caches hold a copy of probe_place's line after the request (0 or 1)";
    in_ddio_ways_after ["lines"] "Whether probe_place's line is in an LLC way that devices allocate into, after the request (0 or 1)";
    llc_allocations ["lines"] "Lines of the LLC that probe_place's request allocated";
    ways_allocated ["ways"] "Ways of the LLC that hold lines after device writes of whole buffers that no cache held";
    link_utilisation ["fraction"] "Share of time that inter-socket links are busy, mean over the links of the busier direction";
    link_out_util ["fraction"] "Share of time that inter-socket links from the first node are busy, mean over links";
    link_in_util ["fraction"] "Share of time that inter-socket links to the first node are busy, mean over links";
    link_data_gbps ["Gb/s"] "Bits of lines, without headers, over inter-socket links in the busier direction per second";
    link_out_gbs ["GB/s"] "Bytes, with headers, over inter-socket links from the first node per second";
    link_in_gbs ["GB/s"] "Bytes, with headers, over inter-socket links to the first node per second";
    link_request_ns ["ns"] "Mean time that a request to the other node's memory holds a credit of the inter-socket link";
    remote_reads ["requests"] "Reads of cores that another node answered";
    remote_rfos ["requests"] "Requests of cores for ownership that another node answered";
    speculative_reads ["requests"] "Speculative reads of memory, in parallel with a snoop of the other node, whose data was not used";
    dram_lat_avg_ns ["ns"] "Mean latency of DRAM reads, controller queueing included";
    dram_lat_p50_ns ["ns"] "Median latency of DRAM reads";
    dram_lat_p99_ns ["ns"] "99th percentile of DRAM read latency";
    dram_row_hit_ratio ["fraction"] "Share of DRAM accesses that found their row open";
    amat_cycles ["cycles"] "Mean time of a line access as the cores see it";
    llc_miss_ratio ["fraction"] "Share of core accesses to the LLC that missed";
    llc_app_share ["fraction"] "Share of application data in the LLC accesses of the first tenant and the NIC";
    llc_rx_lines ["lines"] "LLC lines that hold receive buffers, mean over time samples";
    llc_rx_lines_outside_ddio ["lines"] "LLC lines that hold receive buffers and lie outside the NIC's ways, mean over time samples";
    clsweeps_per_req ["1/request"] "clsweep instructions per request";
    sweep_messages_per_req ["1/request"] "Sweep messages at the home agent per request";
    mlc_wb ["lines"] "Lines that cores' L2s evicted to the LLC: victims, and lines that reads of devices demoted";
    mlc_wb_mtps ["M/s"] "Lines that cores' L2s evicted to the LLC per second";
    mlc_wb_consumed ["lines"] "Part of mlc_wb of packets that had been read";
    mlc_invalidations ["lines"] "Lines that writes of devices invalidated in private caches";
    llc_wb ["lines"] "Dirty lines that the LLC evicted to memory";
    llc_wb_unread ["lines"] "Part of llc_wb of packets that no core had read";
    llc_wb_victim ["lines"] "Part of llc_wb that came from cores or had been read";
    dma_mtps ["M/s"] "Lines that devices read and wrote per second";
    hints ["lines"] "Prefetch hints of devices to the L2s of cores";
    hints_dropped ["lines"] "Part of hints that was dropped because the hint queue was full";
    hints_fetched ["lines"] "Part of hints that became a prefetch";
    burst_start_us ["us"] "Mean time from the first line that the NIC writes of a burst to a core taking the burst's first packet";
    batch_cached ["fraction"] "Share of a batch's packet lines that their core's caches hold when the batch ends; needs run.timeline";
    burst_us ["us"] "Mean time from the first line that the NIC writes of a burst to the end of the burst's last packet";
    t0_cpi ["cycles"] "Cycles per instruction on the first tenant's cores, including polls";
    t1_cpi ["cycles"] "Cycles per instruction on the second tenant's cores, including polls";
    t0_mops ["Mops"] "Operations per second of the first tenant (requests, packets or accesses)";
    t0_llc_miss_ratio ["fraction"] "LLC miss ratio of the first tenant";
    t1_mops ["Mops"] "Operations per second of the second tenant (requests, packets or accesses)";
    t1_llc_miss_ratio ["fraction"] "LLC miss ratio of the second tenant";
    prefetch_rate ["1/us"] "Lines that the cores' prefetchers requested per microsecond, all cores";
    prefetch_occ ["lines"] "Outstanding prefetches of a core, mean over time and cores";
    c2m_gbs ["GB/s"] "Bytes of the lines that streaming applications completed (read or updated) per second";
    p2m_gbs ["GB/s"] "Payload bytes that peripherals moved per second";
    p2m_llc_miss_ratio ["fraction"] "Share of the lines read and written by peripherals that missed the LLC";
    p2m_write_miss_ratio ["fraction"] "Share of the lines written by peripherals that missed the LLC";
    p2m_write_uncached_ratio ["fraction"] "Share of the lines written by peripherals that no cache held, private caches included";
    p2m_read_miss_ratio ["fraction"] "Share of the lines read by peripherals that missed the LLC";
    p2m_iops ["1/s"] "Blocks that peripherals completed per second";
    mem_c2m_read_gbs ["GB/s"] "DRAM bytes read for cores per second";
    mem_c2m_write_gbs ["GB/s"] "DRAM bytes written for cores per second";
    mem_p2m_read_gbs ["GB/s"] "DRAM bytes read for devices per second";
    mem_p2m_write_gbs ["GB/s"] "DRAM bytes written for devices per second";
    lfb_credits ["lines"] "Line fill buffers of a thread, mean over threads; two threads of a core have half of its buffers each";
    lfb_occ ["lines"] "Line fill buffers in use, mean over time and cores";
    lfb_peak ["lines"] "Largest number of line fill buffers that any core had in use at one time";
    lfb_rate ["1/us"] "Line fill buffers taken per microsecond, all cores";
    lfb_lat_ns ["ns"] "Mean residence in a line fill buffer, measured for each miss";
    lfb_little_ns ["ns"] "Mean residence in a line fill buffer by Little's law (occupancy over rate)";
    c2m_read_lat_ns ["ns"] "C2M-Read domain: from the line fill buffer's allocation to the data";
    c2m_write_lat_ns ["ns"] "C2M-Write domain: from a write-back's departure to its admission at the home agent";
    cha_dram_read_c2m_ns ["ns"] "Mean time of core reads from arrival at the home agent to the data";
    cha_dram_read_p2m_ns ["ns"] "Mean time of device reads from arrival at the home agent to the data there";
    cha_mc_write_c2m_ns ["ns"] "Mean time of core write-backs at the home agent until a write queue has acknowledged them";
    cha_mc_write_p2m_ns ["ns"] "Mean time of device writes at the home agent until a write queue has acknowledged them";
    cha_c2m_read_occ ["lines"] "Core reads from memory that the home agent holds, mean";
    cha_c2m_write_occ ["lines"] "Core write-backs to memory that the home agent holds, mean";
    cha_p2m_read_occ ["lines"] "Device reads from memory that the home agent holds, mean";
    cha_p2m_write_occ ["lines"] "Device writes that the home agent holds, mean";
    cha_adm_c2m_ns ["ns"] "Mean wait of a core's request for admission by the home agent";
    cha_adm_p2m_ns ["ns"] "Mean wait of a device's request for admission by the home agent";
    cha_wait_writes ["lines"] "Writes that wait at the home agent for a full write queue, mean";
    cha_wait_peak ["lines"] "Largest number of writes that waited at the home agent for a full write queue";
    cha_wait_credits ["lines"] "Number of writes that may wait at the home agent before it stops admitting requests";
    rpq_occ ["entries"] "Occupancy of a channel's read queue, mean over channels";
    wpq_occ ["entries"] "Occupancy of a channel's write queue, mean over channels";
    rpq_full_frac ["fraction"] "Share of time that a read queue held memory.rpq_full_mark entries or more, mean over channels";
    wpq_full_frac ["fraction"] "Share of time that a write queue held memory.wpq_full_mark entries or more, mean over channels";
    wpq_at_capacity_frac ["fraction"] "Share of time that a write queue had no entry left, mean over channels";
    lines_read ["lines"] "Lines read from DRAM in the window";
    lines_written ["lines"] "Lines written to DRAM in the window";
    wr_switches ["switches"] "Ends of write mode, all channels; writes that only fill gaps between reads do not count";
    act_read ["activates"] "Activates for reads, all channels";
    act_write ["activates"] "Activates for writes, all channels";
    pre_conflict ["precharges"] "Precharges of banks in which another row was open, all channels";
    pre_conflict_read ["precharges"] "Part of pre_conflict that a read caused";
    pre_conflict_write ["precharges"] "Part of pre_conflict that a write caused";
    row_miss_ratio ["fraction"] "Activates for reads over lines read";
    bank_dev_p50 ["x"] "Median ratio of the busiest of four banks to their mean, per sample of 1000 reads";
    bank_dev_15_frac ["fraction"] "Share of the samples of bank_dev_p50 at or above 1.5";
    bank_dev_20_frac ["fraction"] "Share of the samples of bank_dev_p50 at or above 2";
    iio_write_credits ["lines"] "IIO write buffer entries";
    iio_write_occ ["lines"] "IIO write buffer entries in use, mean";
    iio_write_peak ["lines"] "Largest number of IIO write buffer entries in use at one time";
    iio_write_lat_ns ["ns"] "Mean residence in the IIO write buffer (P2M-Write domain), measured for each line";
    iio_write_little_ns ["ns"] "Mean residence in the IIO write buffer by Little's law";
    iio_read_credits ["lines"] "IIO read buffer entries";
    iio_read_occ ["lines"] "IIO read buffer entries in use, mean";
    iio_read_peak ["lines"] "Largest number of IIO read buffer entries in use at one time";
    iio_read_lat_ns ["ns"] "Mean residence in the IIO read buffer (P2M-Read domain), measured for each line";
    iio_read_little_ns ["ns"] "Mean residence in the IIO read buffer by Little's law";
    pcie_up_util ["fraction"] "Share of time that PCIe links carry packets from devices, mean over ports";
    pcie_down_util ["fraction"] "Share of time that PCIe links carry packets to devices, mean over ports";
    iio_path_util ["fraction"] "Share of time that the path from an I/O controller to the home agent carries lines, of the busiest controller";
    pfc_pause_fraction ["fraction"] "Share of time that priority flow control paused the peer of a RoCE NIC";
    pfc_pauses ["frames"] "Pause frames by which a RoCE NIC stopped its peer";
    nic_buffer_peak_kib ["KiB"] "Largest fill of a NIC's receive buffer";
    cpu_utilisation ["fraction"] "Share of time that cores with descriptor rings neither slept nor polled in vain, mean over cores";
    client_utilisation ["fraction"] "Share of time that cores of a software load generator on its own host neither slept nor polled in vain, mean over cores";
    client_drops ["packets"] "Replies that the load generator's host lost in the measured window";
    client_late ["packets"] "Requests that were due at the load generator's host at the end of the window and had not been started";
    drop_dma_share ["fraction"] "Share of lost packets whose cause was the NIC's receive DMA (DmaDrop)";
    drop_core_share ["fraction"] "Share of lost packets whose cause was the core (CoreDrop)";
    drop_tx_share ["fraction"] "Share of lost packets whose cause was transmission (TxDrop)";
    descriptors_per_write_back ["descriptors"] "Receive descriptors per write-back of a NIC with descriptor rings in memory, mean";
    doorbells_per_packet ["1/packet"] "Transmit doorbells per packet at a NIC with descriptor rings in memory";
    tx_fetches_per_packet ["1/packet"] "Fetches of transmit descriptors per packet by a NIC with descriptor rings in memory";
    tx_payload_reads_per_packet ["1/packet"] "Reads of frames' payload per packet by a NIC with descriptor rings in memory";
    frame_bytes_moved ["B/packet"] "Bytes of frames, without descriptors, that a NIC with descriptor rings wrote to memory and read from it, per packet";
    dma_read_min_ns ["ns"] "Shortest read of memory by a device on a port, from its request to the last data";
    dma_peak_gbs ["GB/s"] "Receive DMA of a NIC with descriptor rings in memory in the busiest 100 ns";
    dma_busy ["fraction"] "Share of time that the receive DMA of a NIC with descriptor rings in memory had lines in flight";
    net_gbs ["GB/s"] "Payload bytes that TCP receivers copied to their applications per second";
    packet_loss ["fraction"] "Share of the frames arriving for TCP receivers that the NIC lost";
    net_busy ["cores"] "Number of cores' worth of time that TCP receivers were busy";
    net_copy_share ["fraction"] "Share of net_busy spent copying payload to applications";
    net_poll_share ["fraction"] "Share of net_busy spent on interrupts, driver and protocol";
    net_lfb_occ ["lines"] "Line fill buffers in use on cores that receive TCP, mean over time and cores";
    net_lfb_peak ["lines"] "Largest number of line fill buffers that any core receiving TCP had in use at one time";
    net_lfb_rate ["1/us"] "Line fill buffers taken per microsecond, all cores that receive TCP";
    net_lfb_lat_ns ["ns"] "Mean residence in a line fill buffer of cores that receive TCP, measured for each miss";
    net_lfb_little_ns ["ns"] "Mean residence in a line fill buffer of cores that receive TCP by Little's law";
    mem_net_read_gbs ["GB/s"] "Bytes of the LLC misses of cores that receive TCP, per second";
    tcp_rtt_us ["us"] "Mean time from a segment's transmission to its acknowledgement at the sender";
    tcp_cwnd ["segments"] "Congestion window at the window's end, mean over flows";
    tcp_retransmits ["fraction"] "Share of segments that were retransmissions";
    dctcp_alpha ["fraction"] "DCTCP's estimate of the marked share of segments at the window's end, mean over flows";
    host_level ["levels"] "Level of the host's own response to congestion (hostCC), mean over time";
    storage_busy ["cores"] "Number of cores' worth of time that the kernel's block layer worked for SSDs";
    t_trans_ns ["ns"] "Time that one line takes on a memory channel";
    t_rcd_ns ["ns"] "Time from activate to column command (tRCD)";
    t_rp_ns ["ns"] "Time from precharge to activate (tRP)";
    c2m_read_unloaded_ns ["ns"] "Unloaded latency of a core's read whose row is open: sum of its hops";
    c2m_write_unloaded_ns ["ns"] "Unloaded latency of a core's write-back to the home agent: sum of its hops";
    p2m_read_unloaded_ns ["ns"] "Unloaded latency of a device's read whose row is open: sum of its hops";
    p2m_write_unloaded_ns ["ns"] "Unloaded latency of a device's write to a write queue: sum of its hops, mean over the lines of a packet";
    predicted_c2m_gbs ["GB/s"] "Throughput of streaming applications that the closed form predicts from platform and traffic alone";
    predicted_p2m_gbs ["GB/s"] "Throughput of peripherals that the closed form predicts from platform and traffic alone";
    sim_lines ["lines"] "DRAM lines moved in the measured window";
    packets_between_pauses ["packets"] "Packets accepted between two moments at which the receive ring became full";
    rx_footprint_mib ["MiB"] "Size of the receive buffers of all cores";
    rx_footprint_per_llc ["fraction"] "Size of the receive buffers of all cores over the capacity of the LLC";
    ddio_capacity_mib ["MiB"] "Capacity of the LLC ways open to the NIC";
    total_rx_entries ["buffers"] "Number of receive buffers of all cores";
    llc_mib ["MiB"] "Capacity of the LLC";
    l1l2_kib ["KiB"] "Capacity of the L1 data cache and the L2 of one core together";
    cores ["cores"] "Number of cores that serve packets";
    channels ["channels"] "Number of memory channels";
    mem_peak_gbs ["GB/s"] "Peak bandwidth of all memory channels";
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
    sim_events ["events"] "Events that the run took, including those of searches";
    sim_requests ["requests"] "Requests simulated, including warm-up and searches";
}

/// Old and new name of each renamed metric; code that reads results by name accepts the old name in this version.
pub const RENAMED: &[(&str, &str)] =
    &[("p2m_write_nowhere_ratio", "p2m_write_uncached_ratio"), ("batch_held", "batch_cached")];

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
    /// Panics when no metric is called `name`.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0[index(name)]
    }
}
