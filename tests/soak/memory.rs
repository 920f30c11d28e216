//! What the process holds on to, where the system tells it.

use std::fs;

/// A reading: resident memory in KiB and open files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) kib: u64,
    pub(crate) files: usize,
}

/// `None` off Linux.
pub(crate) fn held() -> Option<Held> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Held { kib, files: fs::read_dir("/proc/self/fd").ok()?.count() })
}

/// The middle one of what was read in these rounds.
pub(crate) fn middle(readings: &[Held]) -> Option<Held> {
    let mut sorted = readings.to_vec();
    sorted.sort_by_key(|held| held.kib);
    sorted.get(readings.len() / 2).copied()
}
