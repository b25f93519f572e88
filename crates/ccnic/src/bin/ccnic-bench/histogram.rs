//! Latencies in buckets whose width grows with the value, so that none is too long to be told.

/// Buckets of each power of two: a bucket is at most 1/128 of its values wide.
const STEPS: usize = 128;
/// Power of two of the first values that share a bucket with another, less one.
const EXACT: u32 = STEPS.ilog2();

/// Latencies in ticks, counted in buckets: exact below 256 ticks, within 0.4 % above.
pub struct Histogram {
    buckets: Vec<u64>,
    min: u64,
    count: u64,
}

impl Histogram {
    pub fn new() -> Histogram {
        let last = Histogram::bucket(u64::MAX);
        Histogram { buckets: vec![0; last + 1], min: u64::MAX, count: 0 }
    }

    fn bucket(ticks: u64) -> usize {
        let shift = (ticks | 1).ilog2().saturating_sub(EXACT);
        shift as usize * STEPS + (ticks >> shift) as usize
    }

    /// The middle of a bucket.
    fn middle(bucket: usize) -> f64 {
        let shift = (bucket / STEPS).saturating_sub(1);
        let first = ((bucket - shift * STEPS) as u64) << shift;
        first as f64 + ((1u64 << shift) - 1) as f64 / 2.0
    }

    pub fn add(&mut self, ticks: u64) {
        self.buckets[Histogram::bucket(ticks)] += 1;
        self.min = self.min.min(ticks);
        self.count += 1;
    }

    /// The least latency in ticks; none where nothing was counted.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The latency in ticks that a share `q` of the packets did not exceed; NaN where nothing was counted.
    pub fn quantile(&self, q: f64) -> f64 {
        let rank = (self.count as f64 * q) as u64;
        let mut seen = 0;
        for (bucket, n) in self.buckets.iter().enumerate() {
            seen += n;
            if seen > rank {
                // The least of a bucket may lie above the middle.
                return Histogram::middle(bucket).max(self.min as f64);
            }
        }
        f64::NAN
    }
}

#[cfg(test)]
mod tests {
    use super::Histogram;

    #[test]
    fn a_latency_of_minutes_is_told_within_half_a_percent() {
        // From one tick to five minutes at 5 GHz: 1.5e12 ticks.
        let mut ticks = 1u64;
        while ticks < 1_500_000_000_000 {
            let mut h = Histogram::new();
            h.add(ticks);
            for q in [0.0, 0.5, 0.99] {
                let told = h.quantile(q);
                assert!((told / ticks as f64 - 1.0).abs() < 0.005, "{ticks} ticks are told as {told}");
                assert!(told >= ticks as f64 || ticks >= 256, "{told} is below the least, {ticks}");
            }
            ticks += ticks / 3 + 1;
        }
    }

    #[test]
    fn quantiles_of_a_thousand_latencies_lie_where_they_were_put() {
        let mut h = Histogram::new();
        (1..=1000).for_each(|n| h.add(n * 1_000_000));
        assert_eq!(h.min(), Some(1_000_000));
        assert!((h.quantile(0.5) / 501e6 - 1.0).abs() < 0.005, "{}", h.quantile(0.5));
        assert!((h.quantile(0.99) / 991e6 - 1.0).abs() < 0.005, "{}", h.quantile(0.99));
    }

    #[test]
    fn every_tick_has_a_bucket_and_buckets_follow_each_other() {
        for at in (0..4096u64).chain((8..63).flat_map(|b| [(1 << b) - 1, 1 << b])) {
            let (one, next) = (Histogram::bucket(at), Histogram::bucket(at + 1));
            assert!(next == one || next == one + 1, "{at} ticks lie in {one}, one more in {next}");
        }
        let mut h = Histogram::new();
        h.add(u64::MAX);
        assert!(h.quantile(0.5) >= u64::MAX as f64);
    }
}
