//! One of the results that are kept is marked, to compare others with: what the keys for that say and do, for
//! benchmarks and experiments alike.

/// Marks a result, or takes its mark away. The error says what to do first.
pub fn toggle_mark(marked: &mut Option<String>, selected: Option<String>) -> Result<(), &'static str> {
    let id = selected.ok_or("m marks a kept result: select one in the list")?;
    *marked = if marked.as_ref() == Some(&id) { None } else { Some(id) };
    Ok(())
}

/// The marked result and the selected one. The error says what to do first.
pub fn marked_pair(marked: Option<&String>, selected: Option<String>) -> Result<Vec<String>, &'static str> {
    let second = selected.ok_or("select a kept result to compare the marked one with")?;
    match marked {
        Some(first) if *first != second => Ok(vec![first.clone(), second]),
        _ => Err("mark another result first (m), then c compares the selected one with it"),
    }
}

/// What can be done with the result `id` about marks.
pub fn mark_hint(marked: Option<&String>, id: &str) -> String {
    match marked {
        Some(marked) if marked == id => "Marked: c on another one compares the two.".into(),
        Some(marked) => format!("c compares it with {}, the marked one.", crate::sanitize::sanitize(marked)),
        None => "m marks it, to compare others with.".into(),
    }
}
