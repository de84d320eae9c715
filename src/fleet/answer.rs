//! Answers of the query API (<https://prometheus.io/docs/prometheus/latest/querying/api/>).

use super::query_error::QueryError;
use crate::sanitize::sanitize;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Names and values of labels, as the server has them: not sanitized.
pub type LabelSet = BTreeMap<String, String>;

/// A series with its values; an instant query has one of each series.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerSeries {
    /// Its labels; the name of the metric is `__name__`.
    pub labels: LabelSet,
    /// Seconds since 1970 and value, oldest first. No value is infinite or not a number.
    pub points: Vec<(f64, f64)>,
}

impl AnswerSeries {
    /// The value of a label; empty if it has none, as in Prometheus.
    pub fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }

    /// The newest value.
    pub fn value(&self) -> Option<f64> {
        self.points.last().map(|point| point.1)
    }
}

#[derive(Deserialize)]
struct ApiAnswer {
    status: String,
    data: Option<ApiData>,
    #[serde(default, rename = "errorType")]
    error_type: String,
    error: Option<String>,
}

#[derive(Deserialize)]
struct ApiData {
    #[serde(rename = "resultType")]
    kind: String,
    #[serde(default)]
    result: Vec<ApiSeries>,
}

#[derive(Deserialize)]
struct ApiSeries {
    #[serde(default)]
    metric: LabelSet,
    value: Option<(f64, String)>,
    #[serde(default)]
    values: Vec<(f64, String)>,
}

/// The series of an answer.
///
/// # Errors
/// The server refused the query or is about to end, or this is no answer of the query API.
pub fn parse_answer(body: &[u8]) -> Result<Vec<AnswerSeries>, QueryError> {
    let answer: ApiAnswer = serde_json::from_slice(body).map_err(|err| {
        let start: String = String::from_utf8_lossy(body).chars().take(40).collect();
        QueryError::Garbage(format!("it begins with \"{}\" ({})", sanitize(start), sanitize(err.to_string())))
    })?;
    if answer.status != "success" {
        let why = answer.error.unwrap_or_else(|| format!("status {}", answer.status));
        // A server that shuts down cancels the queries it still has.
        let is_ending = matches!(answer.error_type.as_str(), "canceled" | "unavailable");
        return Err(if is_ending { QueryError::Unavailable } else { QueryError::Refused }(sanitize(why)));
    }
    let data = answer.data.ok_or_else(|| QueryError::Garbage("it has no data".into()))?;
    if !matches!(data.kind.as_str(), "vector" | "matrix") {
        return Err(QueryError::Garbage(format!("its result is of the type \"{}\"", sanitize(&data.kind))));
    }
    Ok(data.result.into_iter().map(into_series).collect())
}

fn into_series(series: ApiSeries) -> AnswerSeries {
    let points = series.value.into_iter().chain(series.values);
    let points = points.filter_map(|(time, text)| Some((time, text.parse::<f64>().ok().filter(|v| v.is_finite())?)));
    AnswerSeries { labels: series.metric, points: points.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_and_matrices_are_series() {
        let vector = br#"{"status":"success","data":{"resultType":"vector","result":[
            {"metric":{"__name__":"up","instance":"a:1"},"value":[1700000000.5,"1"]},
            {"metric":{"instance":"b:1"},"value":[1700000000.5,"NaN"]}]}}"#;
        let series = parse_answer(vector).unwrap();
        assert_eq!((series[0].label("instance"), series[0].value()), ("a:1", Some(1.0)));
        assert_eq!((series[1].label("job"), series[1].value()), ("", None));
        let matrix = br#"{"status":"success","data":{"resultType":"matrix","result":[
            {"metric":{},"values":[[1,"2"],[2,"+Inf"],[3,"4.5"]]}]},"warnings":["x"]}"#;
        assert_eq!(parse_answer(matrix).unwrap()[0].points, [(1.0, 2.0), (3.0, 4.5)]);
    }

    #[test]
    fn a_server_that_shuts_down_refuses_no_single_query() {
        let error = |kind: &str| {
            let body = format!(r#"{{"status":"error","errorType":"{kind}","error":"no"}}"#);
            parse_answer(body.as_bytes()).unwrap_err()
        };
        assert!(error("canceled").concerns_server() && error("unavailable").concerns_server());
        assert!(!error("timeout").concerns_server() && !error("execution").concerns_server());
    }

    #[test]
    fn anything_else_is_an_error_that_can_be_shown() {
        let error = |body: &str| parse_answer(body.as_bytes()).unwrap_err().to_string();
        for (body, wanted) in [
            (r#"{"status":"error","errorType":"timeout","error":"query timed out"}"#, "query timed out"),
            ("<html>\u{1b}[2J", "begins with"),
            ("", "begins with"),
            (r#"{"status":"success"}"#, "no data"),
            (r#"{"status":"success","data":{"resultType":"scalar","result":[]}}"#, "scalar"),
            (r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":1}}]}}"#, "begins with"),
        ] {
            let text = error(body);
            assert!(text.contains(wanted), "{text}");
            assert!(text.chars().all(crate::sanitize::is_safe), "{text}");
        }
    }
}
