//! Shallow buffering after ResQ: receive rings are shortened so that all receive buffers fit the DDIO ways (Sweeper,
//! sections II-C and VI-F; Tootoonchian et al., NSDI 2018).

/// Largest power-of-two ring size, at most `asked`, with which `cores` rings of `buffer` bytes each fit `capacity`
/// bytes; at least one buffer.
pub fn ring(asked: u32, cores: u32, buffer: u64, capacity: u64) -> u32 {
    let fit = capacity / (u64::from(cores) * buffer).max(1);
    let fit = if fit == 0 { 1 } else { 1 << fit.ilog2() };
    asked.min(fit.try_into().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    #[test]
    fn rings_of_24_cores_in_two_ways_are_capped_at_256_buffers_of_1_kib() {
        // 6 MiB / (24 x 1 KiB) = 256, the deepest ring that fits according to section VI-F.
        assert_eq!(super::ring(2048, 24, 1024, 6 << 20), 256);
        assert_eq!(super::ring(128, 24, 1024, 6 << 20), 128);
    }
}
