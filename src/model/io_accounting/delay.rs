//! How much of a task's waiting for a device is due to another task.

/// How a task uses a device.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct QueueUse {
    /// Mean number of requests in flight.
    pub in_flight: f64,
    /// Requests completed per second.
    pub requests_per_s: f64,
}

/// Returns the share, 0 to 1, of the mean time of a task's requests (`request_s`, seconds) that would go if another task
/// stopped, for a device that serves one request after the other. A device that serves several at once gains less. `None`
/// if one of the two has no requests.
///
/// A request finds those of the other task in flight, the first of them half served (Kleinrock, Queueing Systems I, ch. 1).
/// Each takes what the device needs for one, which keeps it busy all the time or, with fewer than one in flight, for that
/// part of it.
pub fn gain_without(request_s: f64, other: QueueUse) -> Option<f64> {
    if request_s <= 0.0 || other.requests_per_s <= 0.0 {
        return None;
    }
    let busy = other.in_flight.min(1.0);
    let each_s = busy / other.requests_per_s;
    let ahead = other.in_flight - busy / 2.0;
    Some((ahead * each_s / request_s).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_behind_a_queue_gain_most_of_their_time() {
        // Eight in flight of 10 ms each: a request waits 75 ms and takes 10 ms itself.
        let scanner = QueueUse { in_flight: 8.0, requests_per_s: 100.0 };
        assert!((gain_without(0.085, scanner).unwrap() - 75.0 / 85.0).abs() < 1e-9);
    }

    #[test]
    fn one_stream_delays_by_half_of_its_request_while_it_is_there() {
        let stream = QueueUse { in_flight: 0.5, requests_per_s: 50.0 };
        assert!((gain_without(0.0125, stream).unwrap() - 0.2).abs() < 1e-9);
    }

    #[test]
    fn without_requests_nothing_is_said() {
        assert_eq!(gain_without(0.0, QueueUse { in_flight: 1.0, requests_per_s: 9.0 }), None);
        assert_eq!(gain_without(0.01, QueueUse::default()), None);
    }
}
