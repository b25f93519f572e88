//! Logical cores: hardware threads, and the cores to which they belong.

use crate::kernel::{CoreId, IdVec, Int, NodeId, ThreadId};

/// Core of each hardware thread, where `nodes` holds each thread's node, and each node has `each` cores. Threads beyond
/// the number of cores are the second threads of the first cores, as in Linux. A core has the number of its first
/// thread.
pub(super) fn cores_of(nodes: &[NodeId], each: u32) -> IdVec<ThreadId, CoreId> {
    let mut on: Vec<Vec<CoreId>> = Vec::new();
    let mut next = 0;
    let core = |node: &NodeId| {
        let node = node.index();
        on.resize(on.len().max(node + 1), Vec::new());
        let here = &mut on[node];
        let core = match here.len().checked_sub(each.to_usize()) {
            Some(first) => here[first],
            None => {
                next += 1;
                CoreId(next - 1)
            }
        };
        here.push(core);
        core
    };
    nodes.iter().map(core).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_beyond_a_node_s_cores_are_second_ones_of_its_first_cores() {
        assert_eq!(cores_of(&[0, 0, 1, 1, 1].map(NodeId), 2).as_slice(), [0, 1, 2, 3, 2].map(CoreId));
        assert_eq!(cores_of(&[1, 1, 1, 1, 0].map(NodeId), 2).as_slice(), [0, 1, 0, 1, 2].map(CoreId));
        assert_eq!(cores_of(&[0, 0, 0].map(NodeId), 3).as_slice(), [0, 1, 2].map(CoreId));
    }
}
