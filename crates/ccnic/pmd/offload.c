/* Checksums and segmentation: between the flags of mbufs and the headers of CC-NIC's packets. */
#include <rte_ip.h>
#include <rte_net.h>
#include <rte_tcp.h>

#include "net_ccnic.h"

uint16_t ccnic_pmd_prepare(void *queue, struct rte_mbuf **pkts, uint16_t n) {
  RTE_SET_USED(queue);
  for (uint16_t i = 0; i < n; i++) {
    int rc = rte_validate_tx_offload(pkts[i]);
    rc = rc ? rc : rte_net_intel_cksum_prepare(pkts[i]);
    if (rc != 0) {
      rte_errno = -rc;
      return i;
    }
  }
  return n;
}

bool ccnic_pmd_describe(const struct rte_mbuf *m, char *frame, uint32_t room, ccnic_offload *out) {
  uint64_t l4 = m->ol_flags & RTE_MBUF_F_TX_L4_MASK;
  uint32_t at = m->l2_len + m->l3_len;
  memset(out, 0, sizeof(*out));
  if (m->ol_flags & RTE_MBUF_F_TX_TCP_SEG)
    l4 = RTE_MBUF_F_TX_TCP_CKSUM;
  if (at + sizeof(struct rte_tcp_hdr) > room && at + 8 > room)
    return false;
  if (m->ol_flags & (RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_TCP_SEG) && m->ol_flags & RTE_MBUF_F_TX_IPV4) {
    struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(frame + m->l2_len);
    ip->hdr_checksum = 0;
    ip->hdr_checksum = rte_ipv4_cksum(ip);
  }
  if (l4 == RTE_MBUF_F_TX_TCP_CKSUM || l4 == RTE_MBUF_F_TX_UDP_CKSUM) {
    out->flags = CCNIC_NEEDS_CSUM;
    out->csum_start = rte_cpu_to_le_16((uint16_t)at);
    out->csum_offset = rte_cpu_to_le_16(l4 == RTE_MBUF_F_TX_TCP_CKSUM ? 16 : 6);
  }
  if (m->ol_flags & RTE_MBUF_F_TX_TCP_SEG) {
    if (at + m->l4_len > room)
      return false;
    /* rte_net_intel_cksum_prepare leaves the length out of the pseudo header's sum for
     * segmentation; virtio's layout wants it in. */
    struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)(frame + at);
    uint32_t sum = tcp->cksum + rte_cpu_to_be_16((uint16_t)(m->pkt_len - at));
    tcp->cksum = (uint16_t)(sum + (sum >> 16));
    out->gso_type = m->ol_flags & RTE_MBUF_F_TX_IPV4 ? CCNIC_GSO_TCPV4 : CCNIC_GSO_TCPV6;
    out->hdr_len = rte_cpu_to_le_16((uint16_t)(at + m->l4_len));
    out->gso_size = rte_cpu_to_le_16(m->tso_segsz);
  }
  return true;
}

bool ccnic_pmd_understand(const char *header, uint32_t frame, struct rte_mbuf *m) {
  ccnic_offload o;
  if (ccnic_offload_parse(header, frame, &o) < 0)
    return false;
  if (o.flags & CCNIC_NEEDS_CSUM)
    m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_NONE; /* never left this machine */
  else if (o.flags & CCNIC_DATA_VALID)
    m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
  return o.gso_type == 0; /* merged packets are not agreed to */
}
