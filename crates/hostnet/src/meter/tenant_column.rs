//! Every column of the table `tenants`, declared once: what a result says of each tenant.

use super::declaration::metrics;

metrics! {
    /// Every column of the table `tenants`, in its order.
    TENANT_COLUMNS, ColumnId;

    TENANT ["", Constants, Tenant] "Name of the tenant" run(Tenants, 1);
    APP ["", Constants, Tenant] "Kind of the tenant's application";
    STACK ["", Constants, Tenant] "Stack between the tenant's NIC and its application";
    CORES ["cores", Constants, Tenant] "Cores that run the tenant's threads";
    THROUGHPUT_MOPS ["Mops", Speed, Tenant] "Operations of the tenant per second (requests, packets, reads of a socket or accesses)" run(Tenants, 2);
    NET_GBPS ["Gb/s", Nic, Tenant] "Received bits of the tenant's completed requests per second" run(Tenants, 3);
    OFFERED_MOPS ["Mops", Speed, Tenant] "Requests offered to the tenant per second";
    DROP_RATE ["fraction", Nic, Tenant] "Dropped over offered packets of the tenant" run(Tenants, 4);
    LOSS_RATE ["fraction", Nic, Tenant] "Dropped packets of the tenant plus growth of its queues, over offered packets" run(Tenants, 5);
    LAT_MEAN_US ["us", Speed, Tenant] "Mean latency of the tenant's requests";
    LAT_P50_US ["us", Speed, Tenant] "Median latency of the tenant's requests";
    LAT_P90_US ["us", Speed, Tenant] "90th percentile of the latency of the tenant's requests";
    LAT_P99_US ["us", Speed, Tenant] "99th percentile of the latency of the tenant's requests" run(Tenants, 6);
    LAT_P999_US ["us", Speed, Tenant] "99.9th percentile of the latency of the tenant's requests";
    SERVICE_MEAN_US ["us", Speed, Tenant] "Mean time that a core of the tenant spends on a request";
    CPU_UTILISATION ["fraction", Speed, Tenant] "Share of time that the tenant's cores neither slept nor polled in vain, mean over cores" run(Tenants, 7);
    CPI ["cycles", Speed, Tenant] "Cycles per instruction on the tenant's cores, without those of its NIC, including polls";
    INSTRUCTIONS ["instructions", Speed, Tenant] "Instructions of the tenant's cores in the measured window" total();
    LLC_LOOK_UPS ["lines", Memory, Tenant] "Accesses of the tenant's cores to the LLC" total();
    LLC_MISS_RATIO ["fraction", Memory, Tenant] "Share of the accesses of the tenant's cores to the LLC that missed" run(Tenants, 8);
    DRAM_READ_GBS ["GB/s", Memory, Tenant] "DRAM bytes read for the tenant per second";
    DRAM_WRITE_GBS ["GB/s", Memory, Tenant] "DRAM bytes written for the tenant per second";
    DRAM_SHARE ["fraction", Memory, Tenant] "Share of the lines that DRAM moved which belong to the tenant; those of SSDs and RoCE NICs belong to none" run(Tenants, 9);
    NODE ["", Constants, Tenant] "Node of the tenant's cores";
}
