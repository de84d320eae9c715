//! Counters of a recording that is played again and again: they go on where the last pass ended, as those of a machine do.

use std::collections::BTreeMap;

/// Texts of a pass that may have a counter for the first time, with what it had counted before the recording. One that
/// appears later counted nothing before.
const FIRST_TEXTS: u32 = 2;

/// What counters had counted before the current pass.
#[derive(Debug, Default)]
pub struct ContinuedCounters {
    series: BTreeMap<String, ContinuedCounter>,
    texts: u32,
}

#[derive(Debug, Default, Clone, Copy)]
struct ContinuedCounter {
    /// Added to what the pass says.
    offset: f64,
    /// Its first and newest values in this pass.
    pass: Option<(f64, f64)>,
}

impl ContinuedCounters {
    /// Begins the next pass: the texts that follow count from the start again.
    pub fn begin_pass(&mut self) {
        self.texts = 0;
        for counter in self.series.values_mut() {
            if let Some((first, newest)) = counter.pass.take() {
                counter.offset += newest - first;
            }
        }
    }

    /// The text of the next sample of a recording, its counters continued.
    pub fn apply(&mut self, text: &str) -> String {
        self.texts += 1;
        let mut out = String::with_capacity(text.len());
        for line in text.lines() {
            match counter_of(line) {
                Some((series, value)) => {
                    let before = if self.texts <= FIRST_TEXTS { value } else { 0.0 };
                    let counter = self.series.entry(series.to_owned()).or_default();
                    let (first, _) = counter.pass.unwrap_or((before, value));
                    counter.pass = Some((first, value));
                    out.extend([series, " ", &(value + counter.offset).to_string()]);
                }
                None => out.push_str(line),
            }
            out.push('\n');
        }
        out
    }
}

/// The series and its value, if the line is a counter's or part of a histogram.
fn counter_of(line: &str) -> Option<(&str, f64)> {
    let (series, value) = line.rsplit_once(' ').filter(|_| !line.starts_with('#'))?;
    let name = series.split_once('{').map_or(series, |(name, _)| name);
    let is_counter = ["_total", "_bucket", "_sum", "_count"].iter().any(|suffix| name.ends_with(suffix));
    Some((series, value.parse().ok()?)).filter(|_| is_counter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_go_on_from_pass_to_pass_and_gauges_do_not() {
        let mut counters = ContinuedCounters::default();
        let pass = [
            "# TYPE a counter\na_total{x=\"b c\"} 10\ng 1\n",
            "a_total{x=\"b c\"} 12\ng 2\n",
            "a_total{x=\"b c\"} 17\nb_sum 3.5\ng 3\n",
        ];
        let mut play = || {
            counters.begin_pass();
            pass.map(|text| counters.apply(text))
        };
        assert_eq!(play(), pass);
        assert_eq!(
            play(),
            [
                "# TYPE a counter\na_total{x=\"b c\"} 17\ng 1\n",
                "a_total{x=\"b c\"} 19\ng 2\n",
                "a_total{x=\"b c\"} 24\nb_sum 7\ng 3\n"
            ]
        );
        assert_eq!(play()[2], "a_total{x=\"b c\"} 31\nb_sum 10.5\ng 3\n");
    }
}
