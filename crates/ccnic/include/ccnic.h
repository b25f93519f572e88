/* ccnic: a host-NIC packet interface over cache-coherent shared memory.
 *
 * Order of calls: ccnic_config_init, ccnic_port_create, ccnic_queue_open (once per queue),
 * ccnic_port_connect (NIC process) or ccnic_port_start_loopback (NIC thread), then bursts;
 * at the end ccnic_queue_close for every queue, then ccnic_port_destroy.
 *
 * Threads: a port and each queue are used by one thread at a time; different queues of one
 * port may be used by different threads, and a buffer may be sent or freed on any queue of
 * its port. No burst call blocks or makes a system call.
 *
 * Results: counts are >= 0; failures are the negative codes below, with a sentence in
 * ccnic_last_error(). A null pointer is CCNIC_EUSAGE, except for an array of no buffers. After
 * CCNIC_EFAULT the queue stays stopped until ccnic_port_recover.
 */
#ifndef CCNIC_H
#define CCNIC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CCNIC_ECONFIG (-1) /* a configuration value is out of range */
#define CCNIC_EFAULT (-2)  /* the shared memory is corrupt */
#define CCNIC_EUSAGE (-3)  /* the caller broke this header's contract */
#define CCNIC_EPEER (-4)   /* the NIC did not answer or refused */
#define CCNIC_EIO (-5)     /* the operating system refused */

#define CCNIC_MORE 1u        /* the next buffer of the burst belongs to the same packet */
#define CCNIC_OFFLOAD 4u     /* first buffer of a packet: its payload begins with a ccnic_offload */
#define CCNIC_MAX_SEGMENTS 4 /* buffers per packet */

typedef struct ccnic_port ccnic_port;
typedef struct ccnic_queue ccnic_queue;
typedef struct ccnic_pool ccnic_pool;

/* A buffer handle: 16 bytes of plain data, alignment 8. The payload starts `addr` bytes after
 * ccnic_base(). Set `len` (and CCNIC_MORE in `flags`) before sending; `addr` may be moved
 * forward inside the buffer to strip a header. Each send or free of a
 * buffer takes one of the caller's references: one from ccnic_alloc or ccnic_rx, and one from
 * each ccnic_retain. Without a reference the handle is dead: a send is refused (CCNIC_EUSAGE), a
 * free does not count it, and neither does harm. */
typedef struct ccnic_buf {
  uint64_t addr;
  uint32_t index;
  uint16_t len;
  uint16_t flags;
} ccnic_buf;

/* What is left to the other side to do for a packet: the layout of struct virtio_net_hdr,
 * little-endian. Written in front of the frame, and counted in `len`; see CCNIC_OFFLOAD. */
typedef struct ccnic_offload {
  uint8_t flags;        /* CCNIC_NEEDS_CSUM, CCNIC_DATA_VALID */
  uint8_t gso_type;     /* 0, or CCNIC_GSO_...: the frame is to be cut, or was merged */
  uint16_t hdr_len;     /* bytes of all headers, for segmentation */
  uint16_t gso_size;    /* most payload bytes of a segment */
  uint16_t csum_start;  /* first byte that the checksum covers, from the start of the frame */
  uint16_t csum_offset; /* where it is stored, from csum_start; the pseudo header's sum is there */
  uint16_t zero;
} ccnic_offload;

#define CCNIC_NEEDS_CSUM 1u
#define CCNIC_DATA_VALID 2u
#define CCNIC_GSO_TCPV4 1u
#define CCNIC_GSO_TCPV6 4u
#define CCNIC_GSO_UDP_L4 5u

/* What a host and its NIC agree on. */
#define CCNIC_FEATURE_CHECKSUM 1u
#define CCNIC_FEATURE_SEGMENT 2u
#define CCNIC_FEATURE_EVENT 4u
#define CCNIC_FEATURE_RSS 8u
#define CCNIC_FEATURE_MERGED 16u

/* How a NIC spreads flows: Toeplitz hash under `key`, its low seven bits select a queue pair. */
typedef struct ccnic_rss {
  uint8_t key[40];
  uint8_t table[128];
  uint32_t fields; /* 1 addresses, 3 addresses and ports */
} ccnic_rss;

/* Configuration; fill it with ccnic_config_init, then change fields. Later versions append
 * fields; the library reads as many as struct_size says and takes defaults for the others. */
typedef struct ccnic_config {
  uint32_t struct_size;   /* sizeof(ccnic_config), set by ccnic_config_init */
  uint32_t queues;        /* queue pairs, 1 to 64 */
  uint32_t slots;         /* descriptors per ring, a power of two, 16 to 65536 */
  uint32_t layout;        /* 0 grouped, 1 packed, 2 padded */
  uint32_t signal;        /* 0 inline, 1 registers */
  uint32_t shared_pool;   /* 1: the NIC allocates and frees buffers */
  uint32_t recycle;       /* 1: recycle stacks on both sides */
  uint32_t nonseq;        /* 1: successive buffers are not adjacent */
  uint32_t small;         /* 1: small buffers for small packets */
  uint32_t nt_stores;     /* 1: non-temporal payload stores (Rust writers and the NIC) */
  uint32_t buffers;       /* large buffers before the split, 64 to 2^20; without a shared pool
                             at least 16 per queue are left */
  uint32_t large_bytes;   /* a power of two, 1024 to 32768 */
  uint32_t small_bytes;   /* a power of two, 64 to 1024, at most the payload of a large buffer */
  uint32_t small_percent; /* share of the large buffers that is split, 0 to 90 */
  uint32_t objects;       /* objects outside the pool */
  uint32_t object_bytes;  /* a power of two, 64 to 32768 */
  uint32_t stack;         /* buffers per recycle stack */
  uint32_t bulk;          /* buffers per pool access, 1 to 256 */
  uint32_t rx_lazy;       /* RX lines the host keeps before clearing them */
  uint32_t tx_lazy;       /* TX lines the NIC keeps before clearing them; without a shared pool fewer
                             than hold the buffers that a queue has to send */
  uint32_t huge;          /* 1: transparent 2 MiB pages; see ccnic_port_notice */
  uint32_t host_node;     /* NUMA node of the host, UINT32_MAX: do not place */
  uint32_t nic_node;      /* NUMA node of the NIC, UINT32_MAX: do not place */
  uint32_t ring_home;     /* 0 writer, 1 reader, 2 host, 3 NIC */
  uint32_t pool_home;     /* 2 host, 3 NIC */
  uint32_t served;        /* queue pairs the NIC serves, from the first on; 0: all */
  uint32_t headroom;      /* bytes before the payload of large buffers, a multiple of 64 */
  uint32_t payload;       /* most payload bytes of a large buffer; 0: all behind the headroom */
  uint32_t mtu;           /* most bytes of a frame; 0: what four large buffers hold */
  uint32_t poll_us;       /* event mode: microseconds of polling before a side sleeps; 0: never */
  uint32_t offload;       /* ccnic_offload headers, if the NIC agrees: 0 none, 1 checksums and
                             packets to be segmented, 2 also merged packets */
} ccnic_config;

/* Counters of one queue since it was opened. */
typedef struct ccnic_stats {
  uint64_t tx, tx_bytes, rx, rx_bytes;
  uint64_t units;                 /* ring lines (or slots) published */
  uint64_t pool_takes, pool_puts; /* buffers moved from and to the shared pool */
  uint64_t posts, sweeps;         /* host-only buffer management */
  uint64_t misuse;                /* buffers passed in that the caller did not own */
  uint64_t faults;                /* faults of the peer */
  uint64_t starved;               /* calls that found too few free buffers */
  uint64_t oversize;              /* packets over the MTU, or over four buffers */
  uint64_t resets;                /* resets of the port since the queue started */
  uint64_t sleeps, wakes;         /* event mode: own sleeps, and wake-ups of the other side */
  uint64_t drops;                 /* packets that the NIC says it dropped */
} ccnic_stats;

/* Version of the library; never freed. */
const char *ccnic_version(void);
/* Sentence of this thread's last failure; valid until its next one. */
const char *ccnic_last_error(void);

/* Defaults: CC-NIC with every feature, or the E810-style interface. */
void ccnic_config_init_sized(ccnic_config *config, uint32_t struct_size, int unoptimised);
static inline void ccnic_config_init(ccnic_config *config, int unoptimised) {
  ccnic_config_init_sized(config, sizeof(*config), unoptimised);
}

/* Creates the shared region and fills its pool. */
int ccnic_port_create(const ccnic_config *config, ccnic_port **out);
/* Stops the NIC thread, if any, and frees the port. Queues still open keep the memory alive
 * until they are closed. */
void ccnic_port_destroy(ccnic_port *port);
/* Hands the region to the NIC process listening on the Unix socket `path`. */
int ccnic_port_connect(ccnic_port *port, const char *path);
/* Starts a loopback NIC thread on CPU `cpu` (negative: unpinned). A CPU that the thread may not
 * use is refused, and so is a port that has a NIC. */
int ccnic_port_start_loopback(ccnic_port *port, int cpu);
/* Stops the NIC thread, or parts from the NIC process (waits at most two seconds for its
 * queues to stop); call ccnic_port_recover before the next NIC. */
void ccnic_port_stop_nic(ccnic_port *port);
/* Sets how many queue pairs, from the first on, the next NIC serves (0: all). That NIC takes the
 * queues of the RSS table modulo their number; the table stays for a later one. */
int ccnic_port_set_served(ccnic_port *port, uint32_t queues);
/* Sets the most bytes of a frame for this side and the next NIC (0: see ccnic_config). */
int ccnic_port_set_mtu(ccnic_port *port, uint32_t mtu);
/* Sets how the next NIC spreads flows over the queue pairs it serves. */
int ccnic_port_set_rss(ccnic_port *port, const ccnic_rss *rss);
/* CCNIC_FEATURE_ bits that the port and its NIC agree on; 0 without a NIC. Costs what
 * ccnic_port_peer_alive costs. */
uint32_t ccnic_port_features(const ccnic_port *port);
/* What the port does without, in a sentence (huge pages that the kernel did not give), or null.
 * Valid for the life of the port. */
const char *ccnic_port_notice(const ccnic_port *port);
/* 1 while the NIC lives. One system call when it is a process. */
int ccnic_port_peer_alive(const ccnic_port *port);
/* Resets the port after a fault or after the NIC died. `queues` are all open queues, none in
 * use by any thread. Packets in flight are lost; buffers the application holds stay valid.
 * Waits at most two seconds for a live NIC. */
int ccnic_port_recover(ccnic_port *port, ccnic_queue *const *queues, uint32_t n);
/* Times the port was reset. */
uint64_t ccnic_port_resets(const ccnic_port *port);

/* Opens queue pair `id`. One that was closed can be opened again, and goes on where it was. */
int ccnic_queue_open(ccnic_port *port, uint32_t id, ccnic_queue **out);
/* Frees the handle; the buffers of its recycle stacks go back to the pool. */
void ccnic_queue_close(ccnic_queue *queue);

/* Allocates up to `n` buffers for packets of `size_hint` bytes (0: unknown). May return
 * fewer. New buffers have len 0 and flags 0. */
int ccnic_alloc(ccnic_queue *queue, ccnic_buf *bufs, uint32_t n, uint32_t size_hint);
/* Drops one reference of each buffer. Returns how many were really the caller's. */
int ccnic_free(ccnic_queue *queue, const ccnic_buf *bufs, uint32_t n);
/* Adds a reference to those of the caller: the buffer can be sent or freed once more. It returns
 * to the pool when the caller has no reference and no transmission of it is in flight. Its payload
 * must not change while it is in flight. */
int ccnic_retain(ccnic_queue *queue, const ccnic_buf *buf);
/* Sends packets from the front of `bufs`; returns how many buffers were taken (whole packets
 * only). The rest still belong to the caller. */
int ccnic_tx(ccnic_queue *queue, const ccnic_buf *bufs, uint32_t n);
/* Receives up to `n` buffers: whole packets, if `n` is at least CCNIC_MAX_SEGMENTS; with less a
 * packet may go on in the next call (CCNIC_MORE). */
int ccnic_rx(ccnic_queue *queue, ccnic_buf *bufs, uint32_t n);
/* Waits until there may be something to receive: polls for poll_us, then sleeps until the NIC
 * wakes it. Returns 1, or 0 when `timeout_us` (or a tenth of a second asleep) is over. */
int ccnic_wait(ccnic_queue *queue, uint32_t timeout_us);
/* To sleep by other means, as epoll, in event mode: the descriptor that becomes readable when the
 * NIC wakes the queue or is gone. Owned by the port, and replaced with its NIC. */
int ccnic_event_fd(const ccnic_queue *queue);
/* Asks the NIC for one wake-up when there is something to receive. Returns 0, or 1 when something
 * waits already, and nothing was asked. Afterwards ccnic_disarm, receive, and arm again. */
int ccnic_arm(ccnic_queue *queue);
void ccnic_disarm(ccnic_queue *queue);
/* Checks a copy of the 12 bytes in front of a frame of `frame` bytes: CCNIC_EFAULT if a value
 * leads outside the frame. */
int ccnic_offload_parse(const void *bytes, uint32_t frame, ccnic_offload *out);
/* Frees retained buffers whose transmission completed; returns how many. Optional. With none it
 * looks whether the NIC has stopped on a fault (CCNIC_EFAULT), for programs that only send. */
int ccnic_sweep(ccnic_queue *queue);

/* The port's large buffers for an allocator of another framework. On a port with one queue
 * pair, open the pool before the queue. Any thread may use the handle, several at a time, but not while the port is in ccnic_port_recover. The handle
 * keeps the memory alive until it is closed. */
int ccnic_pool_open(ccnic_port *port, ccnic_pool **out);
void ccnic_pool_close(ccnic_pool *pool);
/* Takes up to `n` large buffers; may return fewer. */
int ccnic_pool_take(const ccnic_pool *pool, ccnic_buf *bufs, uint32_t n);
/* Gives buffers back (only `index` counts). Returns how many were really the caller's. */
int ccnic_pool_put(const ccnic_pool *pool, const ccnic_buf *bufs, uint32_t n);
/* Buffers in the pool; an estimate while others use it. */
int ccnic_pool_available(const ccnic_pool *pool);
/* The `i`-th large buffer, whoever owns it: its handle with length 0, its payload (returned)
 * and the bytes from there to its end; null if there are not so many. */
void *ccnic_pool_buffer(const ccnic_pool *pool, uint32_t i, ccnic_buf *buf, uint32_t *room);

/* Payload of a buffer and, if `room` is not null, the bytes to the buffer's end; null for a
 * handle that points outside the port. The NIC may write there only while it owns the
 * buffer, unless it is hostile: copy what you check. */
void *ccnic_data(const ccnic_queue *queue, const ccnic_buf *buf, uint32_t *room);
/* Start of the region, for ccnic_payload(). Constant for the life of the port. */
void *ccnic_base(const ccnic_queue *queue);
/* Copies the queue's counters, as many as `size` bytes hold. */
void ccnic_queue_stats_sized(const ccnic_queue *queue, ccnic_stats *out, size_t size);
static inline void ccnic_queue_stats(const ccnic_queue *queue, ccnic_stats *out) {
  ccnic_queue_stats_sized(queue, out, sizeof(*out));
}

/* The NIC's side: what consumes TX packets and produces RX packets, in another process
 * (ccnic_server_*) or in this one (ccnic_nic_attach). Order of calls: a NIC, its queues
 * 0 .. ccnic_nic_queues()-1 (a reset by the host waits for every open one, so poll all),
 * then bursts; at the end the queues are closed, then the NIC is destroyed. Each queue is used
 * by one thread at a time. After a fault the queue answers CCNIC_EFAULT until the host has reset
 * the port; it then goes on by itself, and buffers taken before are dead. */
typedef struct ccnic_server ccnic_server;
typedef struct ccnic_nic ccnic_nic;
typedef struct ccnic_nic_queue ccnic_nic_queue;

/* Listens for hosts on the Unix socket `path`, replacing one that a dead process left; a file of
 * another kind is left alone. A locked file `path`.lock goes with it. */
int ccnic_server_listen(const char *path, ccnic_server **out);
/* Serves hosts of this user, too, beside the NIC's own and root. Every user may then connect to the
 * socket, and those that are not named are refused. */
void ccnic_server_allow_user(ccnic_server *server, uint32_t uid);
/* Sets the most bytes of a host's region (1 GiB). */
void ccnic_server_set_limit(ccnic_server *server, uint64_t bytes);
/* Waits for the next host and maps its region. A host that sends nonsense or does not finish
 * within five seconds is refused (CCNIC_EPEER or CCNIC_ECONFIG) and delays no other; call again
 * for the next. */
int ccnic_server_accept(const ccnic_server *server, ccnic_nic **out);
/* Stops listening and removes the socket; NICs go on. */
void ccnic_server_close(ccnic_server *server);
/* Makes this process the NIC of one of its own ports. */
int ccnic_nic_attach(ccnic_port *port, ccnic_nic **out);
/* The host sees that the NIC is gone. Queues must have been closed. */
void ccnic_nic_destroy(ccnic_nic *nic);
/* 0 once the host process ended. One system call. */
int ccnic_nic_host_alive(const ccnic_nic *nic);
/* Queue pairs to open. */
uint32_t ccnic_nic_queues(const ccnic_nic *nic);
/* CCNIC_FEATURE_ bits that the host and this NIC agree on. */
uint32_t ccnic_nic_features(const ccnic_nic *nic);
/* The queue pair that the host's ccnic_rss selects for a frame in private memory. */
uint32_t ccnic_nic_rss_queue(const ccnic_nic *nic, const void *frame, uint32_t len);

/* Opens queue pair `id`, once per NIC. */
int ccnic_nic_queue_open(ccnic_nic *nic, uint32_t id, ccnic_nic_queue **out);
void ccnic_nic_queue_close(ccnic_nic_queue *queue);
/* Takes TX buffers, at most `n` (at least 4: whole lines are taken); returns how many. A buffer
 * with CCNIC_MORE is followed by the next one of its packet in the same call. */
int ccnic_nic_tx_poll(ccnic_nic_queue *queue, ccnic_buf *bufs, uint32_t n);
/* Gives the ring space of all polled buffers back; call it once their payload was read, which
 * also completes buffers that the host only lent. */
void ccnic_nic_tx_done(ccnic_nic_queue *queue);
/* Frees TX buffers (lent ones stay with the host: leave `flags` as they were) or unused RX
 * buffers. */
void ccnic_nic_free(ccnic_nic_queue *queue, const ccnic_buf *bufs, uint32_t n);
/* Buffers for one RX packet of `bytes`, lengths and CCNIC_MORE set, into `bufs`, which has
 * room for CCNIC_MAX_SEGMENTS. Returns how many: 0 when too few are free or it is too long. */
int ccnic_nic_alloc(ccnic_nic_queue *queue, uint32_t bytes, ccnic_buf *bufs);
/* Delivers packets in the order they were allocated; what the ring has no room for waits in
 * the queue for a later call (`n` may be 0). Returns how many wait. A burst with a buffer that
 * is not this queue's, or twice in it, or that ends inside a packet is refused as a whole. */
int ccnic_nic_rx_post(ccnic_nic_queue *queue, const ccnic_buf *bufs, uint32_t n);
/* One round of loopback over about `budget` buffers; returns how many were handled. Not to be
 * mixed with the four calls above. */
int ccnic_nic_loopback(ccnic_nic_queue *queue, uint32_t budget);
/* Returns recycled buffers to the shared pool, before an orderly end. */
void ccnic_nic_drain(ccnic_nic_queue *queue);
/* Start of the region, for ccnic_payload(). Constant for the life of the NIC. */
void *ccnic_nic_base(const ccnic_nic_queue *queue);
/* Event mode: sleeps until the host wakes this queue or is gone, at most a tenth of a second;
 * returns at once if there is something to do. Poll for a while first. */
int ccnic_nic_wait(ccnic_nic_queue *queue);
/* Copies the queue's counters: tx counts buffers given to the host, rx those taken from it. */
void ccnic_nic_queue_stats_sized(const ccnic_nic_queue *queue, ccnic_stats *out, size_t size);
static inline void ccnic_nic_queue_stats(const ccnic_nic_queue *queue, ccnic_stats *out) {
  ccnic_nic_queue_stats_sized(queue, out, sizeof(*out));
}

/* As ccnic_data without the check, for handles that came from this library. */
static inline void *ccnic_payload(void *base, const ccnic_buf *buf) {
  return (char *)base + buf->addr;
}

#ifdef __cplusplus
}
#endif

#endif
