//! How much of a task's waiting for a device is due to another task.

/// How a task uses a device.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct QueueUse {
    /// Mean number of requests in flight.
    pub in_flight: f64,
    /// Requests completed per second.
    pub requests_per_s: f64,
}

/// Returns the share, 0 to 1, of the mean time of a task's requests (`request_s`, seconds, of which it has `requests_per_s`)
/// that would go if another task stopped, for a device that serves one request after the other. A device that serves several
/// at once gains less. `None` if one of the two has no requests.
///
/// A request finds those of the other task in flight, the first of them half served (Kleinrock, Queueing Systems I, ch. 1).
/// Each takes what the device needs for one: with fewer than one in flight the time that it is there, and never more than
/// the device has for each request of both.
pub fn gain_without(request_s: f64, requests_per_s: f64, other: QueueUse) -> Option<f64> {
    if request_s <= 0.0 || other.requests_per_s <= 0.0 {
        return None;
    }
    let each_s = (other.in_flight / other.requests_per_s).min(1.0 / (other.requests_per_s + requests_per_s));
    let ahead = other.in_flight - other.in_flight.min(1.0) / 2.0;
    Some((ahead * each_s / request_s).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_behind_a_queue_gain_most_of_their_time() {
        // Eight in flight of 10 ms each: a request waits 75 ms and takes 10 ms itself.
        let scanner = QueueUse { in_flight: 8.0, requests_per_s: 100.0 };
        assert!((gain_without(0.085, 0.1, scanner).unwrap() - 75.0 / 85.0).abs() < 1e-2);
    }

    #[test]
    fn the_device_serves_the_task_too() {
        // A device of 8 ms a request, with four in flight of the other and one of the task.
        let other = QueueUse { in_flight: 4.0, requests_per_s: 100.0 };
        assert!((gain_without(0.036, 25.0, other).unwrap() - 28.0 / 36.0).abs() < 1e-9);
    }

    #[test]
    fn one_stream_delays_by_half_of_its_request_while_it_is_there() {
        let stream = QueueUse { in_flight: 0.5, requests_per_s: 50.0 };
        assert!((gain_without(0.0125, 0.0, stream).unwrap() - 0.2).abs() < 1e-9);
    }

    #[test]
    fn without_requests_nothing_is_said() {
        assert_eq!(gain_without(0.0, 1.0, QueueUse { in_flight: 1.0, requests_per_s: 9.0 }), None);
        assert_eq!(gain_without(0.01, 1.0, QueueUse::default()), None);
    }
}
