//! The tables on the screen as JSON: columns by their names, figures as they are printed. `snapshot --format json`
//! has the figures themselves.

use super::Shot;
use crate::export::sheet::Sheet;
use serde_json::{Map, Value, json};

/// One object with the panes' tables.
pub fn json(shot: &Shot) -> String {
    let panes: Vec<Value> = shot.sheets.iter().map(sheet).collect();
    let mut out = json!({ "title": shot.title, "panes": panes }).to_string();
    out.push('\n');
    out
}

/// A table: a row is an object where the columns have names, else a list.
pub fn sheet(sheet: &Sheet) -> Value {
    let rows: Vec<Value> = sheet.rows.iter().map(|row| line(&sheet.heads, row)).collect();
    json!({ "title": sheet.title, "columns": sheet.heads, "rows": rows, "notes": sheet.notes })
}

fn line(heads: &[String], row: &[String]) -> Value {
    let named = heads.len() >= row.len() && heads.iter().enumerate().all(|(i, h)| !heads[..i].contains(h));
    if !named {
        return json!(row);
    }
    Value::Object(heads.iter().cloned().zip(row.iter().map(|cell| json!(cell))).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_go_by_their_columns() {
        let mut table = Sheet::new("Devices", &[("Device", false), ("tps", true)]);
        table.rows.push(vec!["sda".into(), "1.00".into()]);
        table.notes.push("1 hidden".into());
        let got = sheet(&table);
        assert_eq!(got["rows"], json!([{ "Device": "sda", "tps": "1.00" }]));
        assert_eq!((&got["columns"], &got["notes"]), (&json!(["Device", "tps"]), &json!(["1 hidden"])));
        table.heads[1] = "Device".into();
        assert_eq!(sheet(&table)["rows"], json!([["sda", "1.00"]]), "two columns of one name");
    }
}
