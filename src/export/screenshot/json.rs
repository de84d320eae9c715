//! The tables on the screen as JSON: columns by their names, figures as they are printed. `snapshot --format json`
//! has the figures themselves.

use super::Screenshot;
use crate::export::table::Table;
use serde_json::{Map, Value, json};

/// One object with the panes' tables.
pub fn to_json(shot: &Screenshot) -> String {
    let panes: Vec<Value> = shot.tables.iter().map(table_json).collect();
    let mut out = json!({ "title": shot.title, "panes": panes }).to_string();
    out.push('\n');
    out
}

/// A table: a row is an object where the columns have names, else a list.
pub fn table_json(sheet: &Table) -> Value {
    let rows: Vec<Value> = sheet.rows.iter().map(|row| row_json(&sheet.headers, row)).collect();
    json!({ "title": sheet.title, "columns": sheet.headers, "rows": rows, "notes": sheet.notes })
}

fn row_json(heads: &[String], row: &[String]) -> Value {
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
    fn cells_are_keyed_by_column_unless_names_repeat() {
        let mut table = Table::new("Devices", &[("Device", false), ("tps", true)]);
        table.rows.push(vec!["sda".into(), "1.00".into()]);
        table.notes.push("1 hidden".into());
        let got = table_json(&table);
        assert_eq!(got["rows"], json!([{ "Device": "sda", "tps": "1.00" }]));
        assert_eq!((&got["columns"], &got["notes"]), (&json!(["Device", "tps"]), &json!(["1 hidden"])));
        table.headers[1] = "Device".into();
        assert_eq!(table_json(&table)["rows"], json!([["sda", "1.00"]]), "two columns of one name");
    }
}
