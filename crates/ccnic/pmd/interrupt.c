/* Receive interrupts: what an application's epoll sleeps on, per receive queue.
 *
 * The descriptor of a queue lives as long as the device: it is an epoll descriptor over the
 * library's own, which changes with the NIC, and over an eventfd of this process alone, for packets
 * that were there before the interrupt was asked for. */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_interrupts.h>

#include "net_ccnic.h"

static void watch(int epoll, int fd) {
  struct epoll_event event = {.events = EPOLLIN};
  /* Watched already, or gone with its NIC: either way there is nothing to add. */
  (void)epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static void ring(struct pair *p) {
  uint64_t one = 1;
  /* A full count rings as well. */
  (void)!write(p->now_fd, &one, sizeof(one));
}

void ccnic_pmd_intr_free(struct rte_eth_dev *dev) {
  struct device *d = dev->data->dev_private;
  if (dev->intr_handle == NULL)
    return;
  for (uint16_t i = 0; i < d->intr_count; i++) {
    close(d->pairs[i].intr_fd);
    close(d->pairs[i].now_fd);
  }
  d->intr_count = 0;
  rte_intr_vec_list_free(dev->intr_handle);
  rte_intr_instance_free(dev->intr_handle);
  dev->intr_handle = NULL;
}

int ccnic_pmd_intr_make(struct rte_eth_dev *dev) {
  struct device *d = dev->data->dev_private;
  uint16_t n = dev->data->nb_rx_queues;
  ccnic_pmd_intr_free(dev);
  struct rte_intr_handle *h = dev->intr_handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
  /* Bytes that EAL reads from a descriptor that became readable: none, the driver does. */
  if (h == NULL || rte_intr_type_set(h, RTE_INTR_HANDLE_VDEV) != 0 || rte_intr_efd_counter_size_set(h, 0) != 0 ||
      rte_intr_vec_list_alloc(h, NULL, n) != 0 || rte_intr_nb_efd_set(h, n) != 0 ||
      rte_intr_max_intr_set(h, n + 1) != 0)
    goto fail;
  for (uint16_t i = 0; i < n; i++) {
    struct pair *p = &d->pairs[i];
    p->intr_fd = epoll_create1(EPOLL_CLOEXEC);
    p->now_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    d->intr_count = i + 1;
    if (p->intr_fd < 0 || p->now_fd < 0 || rte_intr_vec_list_index_set(h, i, RTE_INTR_VEC_RXTX_OFFSET + i) != 0 ||
        rte_intr_efds_index_set(h, i, p->intr_fd) != 0)
      goto fail;
    watch(p->intr_fd, p->now_fd);
  }
  return 0;
fail:
  LOG(ERR, "no descriptors for the receive interrupts of %u queues", n);
  ccnic_pmd_intr_free(dev);
  return -ENOMEM;
}

void ccnic_pmd_intr_attach(struct device *d) {
  for (uint16_t i = 0; i < d->intr_count; i++) {
    int fd = d->pairs[i].queue ? ccnic_event_fd(d->pairs[i].queue) : -1;
    if (fd >= 0)
      watch(d->pairs[i].intr_fd, fd);
    /* What was asked of the last NIC is forgotten. */
    ring(&d->pairs[i]);
  }
}

int ccnic_pmd_intr_enable(struct rte_eth_dev *dev, uint16_t id) {
  struct device *d = dev->data->dev_private;
  struct pair *p = &d->pairs[id];
  if (id >= d->intr_count || p->queue == NULL)
    return -ENOTSUP;
  enum passage how = gate_enter(&p->gate);
  /* A packet that waits, a fault, or a reset under way: the application has to look. */
  if (how == REFUSED || ccnic_arm(p->queue) != 0)
    ring(p);
  if (how != REFUSED)
    gate_leave(&p->gate, how);
  return 0;
}

int ccnic_pmd_intr_disable(struct rte_eth_dev *dev, uint16_t id) {
  struct device *d = dev->data->dev_private;
  struct pair *p = &d->pairs[id];
  uint64_t count;
  if (id >= d->intr_count || p->queue == NULL)
    return -ENOTSUP;
  /* Nothing to read is as well. */
  (void)!read(p->now_fd, &count, sizeof(count));
  enum passage how = gate_enter(&p->gate);
  if (how != REFUSED) {
    ccnic_disarm(p->queue);
    gate_leave(&p->gate, how);
  }
  return 0;
}
