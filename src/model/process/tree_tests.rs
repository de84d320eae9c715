//! Tests of the tree of processes.

use super::tests::{key, raw, update_at};
use super::tree::ProcessTree;
use super::tree_position::TreePosition;
use super::*;
use proptest::prelude::*;

fn child(pid: u32, ppid: u32, write: u64) -> TaskRaw {
    TaskRaw { ppid, ..raw(pid, 0, write) }
}

/// A table in which these processes wrote so many bytes in the last second.
fn table(tasks: &[TaskRaw]) -> ProcessTable {
    let mut table = ProcessTable::new();
    let before = tasks.iter().map(|task| (TaskRaw { io: TaskIoRaw::Read(IoBytes::default()), ..*task }, 0));
    table.apply(&update_at(10, true, &before.collect::<Vec<_>>()));
    let ran = tasks.iter().filter(|task| task.io.bytes().is_some_and(|io| io.write > 0));
    table.apply(&update_at(11, false, &ran.map(|task| (*task, 10)).collect::<Vec<_>>()));
    table
}

fn query(sort_by: ProcessColumn, filter: ProcessFilter) -> ProcessQuery {
    ProcessQuery { sort_by, filter, height: usize::MAX, ..ProcessQuery::default() }
}

/// The rows of the tree: lines and pid, a star for a row that is only above a match.
fn lines(table: &ProcessTable, query: &ProcessQuery) -> Vec<String> {
    let window = ProcessTree::default().window(table, query);
    let line = |(at, position): (&u32, &TreePosition)| {
        let mut line = String::new();
        position.write(&mut line);
        format!("{line}{}{}", table.row(*at).pid(), if position.is_context { "*" } else { "" })
    };
    window.rows.iter().zip(&window.positions).map(line).collect()
}

/// 1 and 2 are roots; below 1 are 10 and 11, below 10 is 100, which writes most; below 2 is 20.
fn family() -> ProcessTable {
    let tasks = [(1, 0, 0), (2, 0, 5), (10, 1, 1), (11, 1, 30), (100, 10, 500), (20, 2, 40)];
    table(&tasks.map(|(pid, ppid, write)| child(pid, ppid, write)))
}

#[test]
fn the_most_loaded_subtree_leads_its_siblings() {
    let by = |sort_by, reverse| lines(&family(), &ProcessQuery { reverse, ..query(sort_by, ProcessFilter::default()) });
    assert_eq!(by(ProcessColumn::Write, false), ["1", "├─10", "│ └─100", "└─11", "2", "└─20"]);
    assert_eq!(by(ProcessColumn::Write, true), ["2", "└─20", "1", "├─11", "└─10", "  └─100"]);
    assert_eq!(by(ProcessColumn::Pid, true), ["2", "└─20", "1", "├─11", "└─10", "  └─100"]);
    assert_eq!(by(ProcessColumn::Pid, false), ["1", "├─10", "│ └─100", "└─11", "2", "└─20"]);
    // Nothing is known of swap: as siblings without any difference.
    assert_eq!(by(ProcessColumn::Swap, true), by(ProcessColumn::Pid, false));
}

#[test]
fn rows_above_a_match_stay_and_are_marked() {
    let text = |text: &str| ProcessFilter { text: Some(text.into()), ..ProcessFilter::default() };
    assert_eq!(lines(&family(), &query(ProcessColumn::Write, text("100"))), ["1*", "└─10*", "  └─100"]);
    let mut idle = family();
    idle.apply(&update_at(12, false, &[(child(100, 10, 900), 11)]));
    let active = ProcessFilter { only_active: true, ..ProcessFilter::default() };
    let window = ProcessTree::default().window(&idle, &query(ProcessColumn::Write, active.clone()));
    assert_eq!((window.matching, window.listed, window.idle), (1, 3, 3), "two idle rows are shown above it");
    assert_eq!(lines(&idle, &query(ProcessColumn::Write, active)), ["1*", "└─10*", "  └─100"]);
    assert!(lines(&family(), &query(ProcessColumn::Write, text("nothing"))).is_empty());
}

#[test]
fn a_copy_of_some_rows_has_a_tree_that_folds() {
    let table = family();
    let rows: Vec<u32> = (0..table.len() as u32).filter(|at| table.row(*at).pid() != 2).collect();
    let copy = table.copy_rows(&rows);
    let by_write = |folded_subtrees| {
        lines(&copy, &query(ProcessColumn::Write, ProcessFilter { folded_subtrees, ..ProcessFilter::default() }))
    };
    assert_eq!(by_write(vec![]), ["1", "├─10", "│ └─100", "└─11", "20"], "20 has no parent here");
    assert_eq!(by_write(vec![key(1)]), ["[+3] 1", "20"]);
}

#[test]
fn a_folded_process_has_the_sums_of_all_below_it() {
    let table = family();
    let filter = ProcessFilter { folded_subtrees: vec![key(1), key(99)], ..ProcessFilter::default() };
    let by_write = query(ProcessColumn::Write, filter);
    assert_eq!(lines(&table, &by_write), ["[+3] 1", "2", "└─20"]);
    let window = ProcessTree::default().window(&table, &by_write);
    let written = |n: usize| window.row(&table, n).and_then(|row| row.rates().write_bytes_per_s);
    assert_eq!([written(0), written(1), written(2)], [Some(531.0), Some(5.0), Some(40.0)]);
    assert_eq!((window.matching, window.listed), (6, 3));
    // Folded threads are not counted twice.
    let filter = ProcessFilter { folded_pids: vec![1], ..by_write.filter.clone() };
    let window = ProcessTree::default().window(&table, &query(ProcessColumn::Write, filter));
    assert_eq!(window.row(&table, 0).and_then(|row| row.rates().write_bytes_per_s), Some(531.0));
}

#[test]
fn threads_are_below_their_process() {
    let thread = |pid, tid| TaskRaw { key: TaskKey { tid, ..key(pid) }, ..child(pid, 1, 0) };
    let tasks = [thread(1, 1), thread(5, 5), thread(5, 6), thread(5, 7), child(8, 5, 0)];
    let mut table = ProcessTable::new();
    let rows = tasks.map(|task| (task, 0));
    table.apply(&ProcessUpdate { rows_are_threads: true, ..update_at(10, true, &rows) });
    let window = ProcessTree::default().window(&table, &query(ProcessColumn::Tid, ProcessFilter::default()));
    let tids: Vec<_> = window.rows.iter().map(|at| table.row(*at).tid()).collect();
    assert_eq!(tids, [1, 5, 6, 7, 8]);
    assert_eq!(window.positions.iter().map(|position| position.depth).collect::<Vec<_>>(), [0, 1, 2, 2, 2]);
}

#[test]
fn an_ended_parent_stays_above_its_children_and_a_reused_id_is_no_parent() {
    let mut table = family();
    table.apply(&ProcessUpdate { exited: vec![key(10)], ..update_at(12, false, &[]) });
    let by_pid = query(ProcessColumn::Pid, ProcessFilter::default());
    assert_eq!(lines(&table, &by_pid)[1..3], ["├─10", "│ └─100"]);
    table.apply(&update_at(13, false, &[]));
    assert_eq!(lines(&table, &by_pid), ["1", "└─11", "2", "└─20", "100"], "its parent is not known");
    table.apply(&update_at(14, false, &[(child(100, 1, 600), 11)]));
    assert_eq!(lines(&table, &by_pid), ["1", "├─11", "└─100", "2", "└─20"], "the kernel gave it a new one");
    let younger = TaskRaw { key: TaskKey { starttime: 1350, ..key(10) }, ..child(10, 1, 0) };
    table.apply(&update_at(15, false, &[(younger, 0), (child(100, 10, 700), 14)]));
    assert_eq!(lines(&table, &by_pid).last().map(String::as_str), Some("100"));
}

#[test]
fn deep_trees_are_cut_at_the_left() {
    let tasks: Vec<_> = (1..=20_000).map(|pid| child(pid, pid - 1, 0)).collect();
    let table = table(&tasks);
    let last = lines(&table, &query(ProcessColumn::Write, ProcessFilter::default())).pop();
    assert_eq!(last.as_deref(), Some("…                   └─20000"));
}

#[test]
fn the_buffers_are_kept_from_tick_to_tick() {
    let (table, mut tree) = (family(), ProcessTree::default());
    let by_write = query(ProcessColumn::Write, ProcessFilter::default());
    tree.window(&table, &by_write);
    let buffers = tree.buffers();
    tree.window(&table, &by_write);
    assert_eq!(tree.buffers(), buffers);
}

proptest! {
    /// Any parents, cycles included: each row is listed once, below the row that it is drawn below, and a window is a
    /// slice of the whole.
    #[test]
    fn every_process_is_listed_once(
        parents in proptest::collection::vec((0u32..12, 0u64..3), 1..12),
        offset in 0usize..14, height in 0usize..14, reverse: bool,
    ) {
        let task = |(n, (ppid, write)): (usize, &(u32, u64))| child(n as u32 + 1, *ppid, *write);
        let tasks: Vec<_> = parents.iter().enumerate().map(task).collect();
        let table = table(&tasks);
        let all = ProcessQuery { reverse, ..query(ProcessColumn::Write, ProcessFilter::default()) };
        let mut tree = ProcessTree::default();
        let whole = tree.window(&table, &all);
        prop_assert_eq!(whole.listed, tasks.len());
        let mut seen = whole.rows.clone();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..tasks.len() as u32).collect::<Vec<_>>());
        let mut path: Vec<u32> = Vec::new();
        for (at, position) in whole.rows.iter().zip(&whole.positions) {
            path.truncate(position.depth.into());
            prop_assert_eq!(tree.parent(*at), path.last().copied());
            let is_parent = path.last().is_none_or(|above| table.row(*above).pid() == table.row(*at).raw.ppid);
            prop_assert!(is_parent);
            path.push(*at);
        }
        let part = tree.window(&table, &ProcessQuery { offset, height, ..all });
        let end = offset.saturating_add(height).min(whole.rows.len());
        prop_assert_eq!(&part.rows, &whole.rows[offset.min(end)..end]);
        prop_assert_eq!(&part.positions, &whole.positions[offset.min(end)..end]);
    }
}
