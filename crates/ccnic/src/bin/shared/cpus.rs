//! The CPUs that a program may run on, for options that name one.

use ccnic::Error;

/// Checks that this process may run on the CPU that `option` names.
pub fn check(option: &str, cpu: usize) -> Result<(), Error> {
    // A thread of its own, which leaves the affinity of the caller alone.
    let valid = |cpus: Vec<usize>| -> Result<Vec<usize>, Error> {
        let pinned = move || cpus.into_iter().filter(|&cpu| ccnic::pin_to_cpu(cpu).is_ok()).collect();
        Ok(std::thread::Builder::new().spawn(pinned)?.join().expect("pinning does not panic"))
    };
    if !valid(vec![cpu])?.is_empty() {
        return Ok(());
    }
    let all = valid((0..rustix::thread::CpuSet::MAX_CPU).collect())?;
    Err(Error::Config(format!(
        "{option} {cpu} is not a CPU that this process may run on; choose from {}",
        ranges(&all)
    )))
}

/// Ascending numbers as the kernel writes them: 0-3,8.
fn ranges(numbers: &[usize]) -> String {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for &n in numbers {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == n => *last = n,
            _ => spans.push((n, n)),
        }
    }
    let text = spans.iter().map(|&(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") });
    text.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    #[test]
    fn neighbours_are_written_as_a_range() {
        assert_eq!(super::ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!(super::ranges(&[5]), "5");
    }
}
